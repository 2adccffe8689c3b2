"""Which allocations of a GPU's pool TensorFlow can do without. Pure.

If it gets none of this memory, it takes another algorithm, which may be slower.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Sequence

from tfmemtop.engine.sources.pool_replay import Course, Life
from tfmemtop.events.courses import FOREVER

_NO_REGION, _TEMP, _UINT8 = 0, 2, 4  # numbers of window.h's RegionOf(), and TensorFlow's of a type


class Scratch:
    """Says it of the lives of one course; *steps* are its events at which a step began."""

    def __init__(self, course: Course, steps: Sequence[int]) -> None:
        self._steps = steps
        # TensorFlow's DnnScratchAllocator (conv_ops_gpu.h) asks for scratch memory as temporary bytes, and never waits.
        self._convolutions = {
            life.alike.operation
            for life in course.lives
            if (life.alike.region, life.alike.dtype) == (_TEMP, _UINT8) and life.alike.operation
        }
        self._nameless: dict[int, set[int]] = defaultdict(set)  # steps in which so many bytes were asked for
        for life in course.lives:
            if not life.alike.operation:
                self._nameless[life.alike.requested].add(self._step(life.begin))

    def has(self, life: Life) -> bool:
        """Whether TensorFlow can do without *life*."""
        alike = life.alike
        if not alike.operation:
            return self._tries_a_kernel(life)
        if alike.operation not in self._convolutions:
            return False
        # What has no region a convolution allocates to try its algorithms. Without it TensorFlow tries them on the
        # output itself, or leaves one out (WrapRedzoneBestEffort and AutotuneUnfusedConv in conv_ops_gpu.cc).
        return alike.region == _NO_REGION or (alike.region, alike.dtype) == (_TEMP, _UINT8)

    def _tries_a_kernel(self, life: Life) -> bool:
        """Whether XLA asks for *life* while it compiles, to try a kernel; it leaves out a kernel that gets no memory.

        What XLA allocates has no operation. Buffers of its clusters have the same sizes in the next step again.
        """
        step = self._step(life.begin)
        within = life.end != FOREVER and 0 <= step == self._step(life.end) < len(self._steps) - 1
        return within and len(self._nameless[life.alike.requested]) == 1

    def _step(self, event: int) -> int:
        """In which step it lies; -1 before the first."""
        return bisect_right(self._steps, event) - 1
