"""What of a session goes into the recording that is made of every session: all, while it is small.

Readings that say nothing new are left out. Once the recording has grown to half of what it may, readings of one thing
are taken further and further apart, but for those that are higher than any before; and output is cut short. At its
limit it ends.
"""

from collections.abc import Hashable

import msgspec

from tfmemtop.events import Event, Output
from tfmemtop.events.keep import Curve

LIMIT = 64 * 2**20
"""Bytes of a recording: more than a day of a script on one GPU with ten readings a second."""

SAME_AGAIN_S = 10.0
"""A reading that is as the one before is taken so long after it."""

_FIRST_SPACING_S, _WIDER = 1.0, 4.0
_OUTPUT_BURST = 256 * 1024
_OUTPUT_A_SECOND = 4096
_KEYS = 10_000


class Thinner:
    """Takes each event and gives back what is to be recorded of it."""

    def __init__(self, limit: int = LIMIT) -> None:
        self.limit = limit
        self.spacing_s = 0.0
        """Least time between two readings of one thing."""
        self._widen_at = limit // 2
        self._taken: dict[Hashable, Event] = {}
        self._highest: dict[Hashable, int] = {}
        self._output = _Budget()

    def grown(self, size: int) -> bool:
        """The recording has *size* bytes now; return whether it may grow further."""
        while size >= self._widen_at and self._widen_at < self.limit - 1:
            self.spacing_s = self.spacing_s * _WIDER or _FIRST_SPACING_S
            self._widen_at = self.limit - (self.limit - self._widen_at) // 2
        return size < self.limit

    def __call__(self, event: Event) -> Event | None:
        """What to record of *event*, if anything."""
        if isinstance(event, Output):
            return self._output.take(event, 1 + self.spacing_s)
        if not event.droppable or self._tells_news(event):
            return event
        return None

    def _tells_news(self, event: Event) -> bool:
        key = type(event), event.keep.key(event)
        last, rises = self._taken.get(key), self._rises(key, event)
        if last is not None and not rises:
            age = event.t - last.t
            if age < self.spacing_s or (age < SAME_AGAIN_S and msgspec.structs.replace(event, t=last.t) == last):
                return False
        if len(self._taken) > _KEYS:
            self._taken.clear()
            self._highest.clear()
        self._taken[key] = event
        return True

    def _rises(self, key: Hashable, event: Event) -> bool:
        """Whether a figure of it is higher than it was ever before."""
        if not isinstance(event.keep, Curve):
            return False
        level = max(getattr(event, name) or 0 for name in event.keep.highest)
        if level <= self._highest.get(key, -1):
            return False
        self._highest[key] = level
        return True


class _Budget:
    """How much output may be recorded: so much at once, and then so much a second."""

    def __init__(self) -> None:
        self._left = float(_OUTPUT_BURST)
        self._t = 0.0
        self._skipped = 0  # bytes since the last that was taken

    def take(self, event: Output, thrift: float) -> Output | None:
        """*event*, and how much was left out before it; ``None`` if it is to be left out too."""
        self._left = min(self._left + (event.t - self._t) * _OUTPUT_A_SECOND / thrift, _OUTPUT_BURST)
        self._t = event.t
        size = len(event.text.encode(errors="replace"))
        if size > self._left:
            self._skipped += size + event.skipped
            return None
        self._left -= size
        skipped, self._skipped = self._skipped, 0
        return msgspec.structs.replace(event, skipped=event.skipped + skipped) if skipped else event
