"""Finds the allocations of a GPU's pool that TensorFlow can do without: scratch memory. Pure.

If TensorFlow gets none of this memory, it uses another algorithm, which may be slower.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Sequence

from tfmemtop.engine.sources.pool_replay import Life, PoolCourse
from tfmemtop.events.courses import FOREVER

_NO_REGION, _TEMP, _UINT8 = 0, 2, 4  # two numbers of RegionOf() in window.h, and TensorFlow's number of a type


class Scratch:
    """Finds the scratch memory among the lives of one course. *steps* are its events at which a step began."""

    def __init__(self, course: PoolCourse, steps: Sequence[int]) -> None:
        self._steps = steps
        # TensorFlow's DnnScratchAllocator (conv_ops_gpu.h) requests scratch memory as temporary bytes, and never waits.
        self._convolutions = {
            life.alike.operation
            for life in course.lives
            if (life.alike.region, life.alike.dtype) == (_TEMP, _UINT8) and life.alike.operation
        }
        self._nameless: dict[int, set[int]] = defaultdict(set)  # by bytes requested: the steps
        for life in course.lives:
            if not life.alike.operation:
                self._nameless[life.alike.requested].add(self._step(life.begin))

    def has(self, life: Life) -> bool:
        """Return whether TensorFlow can do without the allocation *life*."""
        alike = life.alike
        if not alike.operation:
            return self._tries_a_kernel(life)
        if alike.operation not in self._convolutions:
            return False
        # A convolution makes allocations without a region to try its algorithms. Without them TensorFlow tries the
        # algorithms on the output itself, or leaves one out (WrapRedzoneBestEffort and AutotuneUnfusedConv in
        # conv_ops_gpu.cc).
        return alike.region == _NO_REGION or (alike.region, alike.dtype) == (_TEMP, _UINT8)

    def _tries_a_kernel(self, life: Life) -> bool:
        """Return whether XLA requested *life* while it compiled, to try a kernel.

        XLA leaves out a kernel that gets no memory. What XLA allocates has no operation. The buffers of its clusters
        have the same sizes again in the next step, so an allocation to try a kernel has a size of one step only.
        """
        step = self._step(life.begin)
        within = life.end != FOREVER and 0 <= step == self._step(life.end) < len(self._steps) - 1
        return within and len(self._nameless[life.alike.requested]) == 1

    def _step(self, event: int) -> int:
        """Return the number of the step in which *event* lies; -1 before the first step."""
        return bisect_right(self._steps, event) - 1
