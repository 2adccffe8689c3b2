"""What other settings would do to a process's pool: results of replays of its allocations in TensorFlow's allocator."""

from typing import Annotated

import msgspec

from tfmemtop.bounds import Few, Name, Number, Seconds, Size, Text
from tfmemtop.events.base import DescribedEnum, Event, Latest
from tfmemtop.events.probe import Unbuilt

HIGHER_LATER = 1.05
"""A factor. If a pool's peak has since risen above this times the replayed peak, the run has outgrown the replay."""


class Outcome(msgspec.Struct, frozen=True, array_like=True):
    """The result of one replay. Its figures are those at its end; a replay that does not fit ends where it fails.

    ``failed`` is the number of the event that failed: an allocation of ``asked`` bytes for ``operation``, for which
    ``lacking`` bytes were missing. ``growths`` is how often the pool took memory, ``waits`` how many allocations
    waited for room.
    """

    fits: bool
    in_use: Size
    peak: Size
    pool: Size
    peak_pool: Size
    growths: Size
    largest_free: Size
    allocations: Size
    waits: Size = 0
    failed: Size | None = None
    operation: Text = ""
    asked: Size = 0
    lacking: Size = 0


class SettingReplayed(msgspec.Struct, frozen=True, array_like=True):
    """The results with growth on or off under a limit (``None``: without one). ``collects`` is garbage collection.

    ``in_order``: the allocations come one after the other in the recorded order, or in a similar order in which the
    replay fails. ``waiting``: an allocation that finds no room waits, while other threads go on and free memory;
    ``None`` where the replay fits in all of these orders. Where the two differ, the setting fits in some runs only.
    """

    growth: bool
    collects: bool
    limit: Size | None
    in_order: Outcome
    waiting: Outcome | None = None

    @property
    def fits(self) -> bool | None:
        """Whether the setting fits; ``None`` where that depends on the order in which threads take turns."""
        if self.in_order.fits:
            return True
        return None if self.waiting is not None and self.waiting.fits else False

    @property
    def outcome(self) -> Outcome:
        """The outcome to show: ``waiting`` if there is one and ``in_order`` does not fit, else ``in_order``."""
        return self.in_order if self.waiting is None or self.in_order.fits else self.waiting


class SmallestLimits(msgspec.Struct, frozen=True, array_like=True):
    """The smallest limits in bytes, whole MiB.

    With the limit ``surely``, the run fits in the recorded order and in similar orders. With ``alike``, so does all but
    the memory to try kernels that are not taken: it is the smallest limit with the same algorithms. Below ``at_least``
    it fits in no order.
    """

    growth: bool
    collects: bool
    surely: Size
    at_least: Size
    alike: Size | None = None  # in recordings of an older tfmemtop


class Unreplayed(DescribedEnum):
    """Why a replay gave no table; in brackets, which fields of :class:`Replayed` belong to the reason."""

    UNBUILT = "unbuilt", "the replay could not be built"  # (unbuilt)
    NOT_STARTED = "not_started", "the replay cannot be started: {detail}"  # (detail: the error)
    SLOW = "slow", "the replay was not done within {count} s"  # (count: seconds)
    NO_MEMORY = "no_memory", "too little memory is free for the replay"
    ENDED = "ended", "the replay ended before it had answered: exit code {count}"  # (count: its exit status)
    NO_ANSWER = "no_answer", "the replay gave no answer"  # (detail: the last line that it printed, if any)


class Replayed(Event, tag="replayed", frozen=True):
    """The trace of one pool, replayed under many settings in TensorFlow's own BFC allocator.

    ``present`` is the setting that the process has. The trace has ``events`` events and ``steps`` steps. Of the events,
    ``allocations`` are allocations, and TensorFlow can do without ``scratch`` of these. ``whole`` and ``lost`` are the
    trace's. ``requested`` is the highest sum of requested bytes at one time, without any rounding. ``kept`` is that
    sum as the last step began, ``None`` without steps. ``before`` are the bytes in use as the trace began, if it did
    not begin with the pool's first allocation.
    ``unreplayed``, with ``detail``, ``count`` and ``unbuilt``, is the reason why there are no rows.
    """

    keep = Latest("pid", "device")

    pid: Number
    device: Name
    events: Size = 0
    allocations: Size = 0
    steps: Size = 0
    lost: Size = 0
    whole: bool = True
    scratch: Size = 0
    requested: Size = 0
    kept: Size | None = None
    before: Size = 0
    present: SettingReplayed | None = None
    rows: Annotated[list[SettingReplayed], Few] = msgspec.field(default_factory=list)
    smallest: Annotated[list[SmallestLimits], Few] = msgspec.field(default_factory=list)
    took_s: Seconds = 0.0
    unreplayed: Unreplayed | None = None
    detail: Text = ""
    count: Size | None = None
    unbuilt: Unbuilt | None = None

    @property
    def is_missing(self) -> bool:
        """Whether there are no rows."""
        return self.unreplayed is not None

    def least(self, growth: bool) -> SmallestLimits | None:
        """Return the smallest limits with growth on, or off, and garbage collection as TensorFlow sets it there."""
        return next((limits for limits in self.smallest if limits.growth is growth), None)

    def outgrown(self, peak: int, pool: int | None) -> bool:
        """Return whether a run with this *peak* in use and largest *pool*, in bytes, needed more than was replayed.

        A pool that grew further, as threads took turns in other orders, but not above the smallest limit that is
        surely enough, would have done the same under that limit.
        """
        present = self.present
        if present is None or not present.in_order.fits:
            return False
        least = self.least(present.growth)
        enough = max(present.in_order.peak_pool, least.surely if least else 0)
        return peak > present.in_order.peak * HIGHER_LATER or (pool or 0) > enough
