"""Chooses what goes into the recording that is kept of every session: almost everything, while the recording is small.

Readings without anything new are left out. Once the recording has half of the size that it may have, the time between
two recorded readings of one thing grows step by step, and output is cut short. Readings that are higher than any before
are still recorded. The next recorded reading of an allocator has the highest use of those left out before it as its
``high``. At its limit, the recording ends.
"""

from collections.abc import Hashable

import msgspec

from tfmemtop.events import Allocator, Event, Output
from tfmemtop.events.base import Curve
from tfmemtop.units import MIB

LIMIT = 64 * MIB
"""Bytes that a recording may have: more than a day of a script on one GPU with ten readings a second."""

SAME_AGAIN_S = 10.0
"""A reading that equals the one before is recorded only after this many seconds."""

_FIRST_SPACING_S, _WIDER = 1.0, 4.0
_OUTPUT_BURST = 256 * 1024
_OUTPUT_A_SECOND = 4096
_KEYS = 10_000


class Thinner:
    """A callable that takes each event and returns what is to be recorded of it."""

    def __init__(self, limit: int = LIMIT) -> None:
        self.limit = limit
        self.spacing_s = 0.0
        """Least time between two recorded readings of one thing."""
        self._widen_at = limit // 2
        self._taken: dict[Hashable, Event] = {}
        self._highest: dict[Hashable, int] = {}
        self._left_out: dict[Hashable, int] = {}
        """The highest use, in bytes, of the readings of an allocator that were left out since the last recorded one."""
        self._output = _Budget()

    def grown(self, size: int) -> bool:
        """Take the present *size* of the recording in bytes. Return whether it may grow further."""
        while size >= self._widen_at and self._widen_at < self.limit - 1:
            self.spacing_s = self.spacing_s * _WIDER or _FIRST_SPACING_S
            self._widen_at = self.limit - (self.limit - self._widen_at) // 2
        return size < self.limit

    def __call__(self, event: Event) -> Event | None:
        """Return what to record of *event*; ``None`` if nothing."""
        if isinstance(event, Output):
            return self._output.take(event, 1 + self.spacing_s)
        if not event.droppable:
            return event
        key = type(event), event.keep.key(event)
        if self._tells_news(key, event):
            return self._with_high(key, event) if isinstance(event, Allocator) else event
        if isinstance(event, Allocator):
            self._left_out[key] = max(_use(event), self._left_out.get(key, 0))
        return None

    def _with_high(self, key: Hashable, event: Allocator) -> Allocator:
        high = self._left_out.pop(key, 0)
        return msgspec.structs.replace(event, high=high) if high > _use(event) else event

    def _tells_news(self, key: Hashable, event: Event) -> bool:
        last, rises = self._taken.get(key), self._rises(key, event)
        if last is not None and not rises:
            age = event.t - last.t
            if age < self.spacing_s or (age < SAME_AGAIN_S and msgspec.structs.replace(event, t=last.t) == last):
                return False
        if len(self._taken) > _KEYS:
            self._taken.clear()
            self._highest.clear()
            self._left_out.clear()
        self._taken[key] = event
        return True

    def _rises(self, key: Hashable, event: Event) -> bool:
        """Return whether *event* is a reading of a curve and higher than all before it."""
        if not isinstance(event.keep, Curve):
            return False
        level = event.keep.height(event)
        if level <= self._highest.get(key, -1):
            return False
        self._highest[key] = level
        return True


def _use(reading: Allocator) -> int:
    """Return the most bytes in use since the reading before, as far as it is known."""
    return max(reading.in_use or 0, reading.high or 0)


class _Budget:
    """Limits the output that is recorded: a first amount at once, and then an amount for each second."""

    def __init__(self) -> None:
        self._left = float(_OUTPUT_BURST)
        self._t = 0.0
        self._skipped = 0  # bytes left out since the last output that was recorded

    def take(self, event: Output, thrift: float) -> Output | None:
        """Return *event* with the number of bytes left out before it; ``None`` if it must be left out too.

        A larger *thrift* (1 or more) allows less output for each second.
        """
        self._left = min(self._left + (event.t - self._t) * _OUTPUT_A_SECOND / thrift, _OUTPUT_BURST)
        self._t = event.t
        size = len(event.text.encode(errors="replace"))
        if size > self._left:
            self._skipped += size + event.skipped
            return None
        self._left -= size
        skipped, self._skipped = self._skipped, 0
        return msgspec.structs.replace(event, skipped=event.skipped + skipped) if skipped else event
