"""What settings would do to a process's pool, as TensorFlow's own allocator says of the recorded allocations."""

from enum import Enum
from typing import Annotated

import msgspec

from tfmemtop.bounds import Few, Name, Number, Seconds, Size, Text
from tfmemtop.events.base import Event, Origin
from tfmemtop.events.keep import Latest
from tfmemtop.events.probe import Unbuilt

HIGHER_LATER = 1.05
"""A pool whose peak has risen by more since its allocations were recorded needs what the replay does not know of."""


class Outcome(msgspec.Struct, frozen=True, array_like=True):
    """How one replay went. Figures are those of its end, which is where it failed if it did not fit.

    ``failed`` is the number of the event, an allocation of ``asked`` bytes for ``operation``, for which ``lacking``
    bytes were missing. ``growths`` is how often the pool took memory, ``waits`` how many allocations waited for room.
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
    """What happens with growth on or off under a limit (``None``: without one). ``collects`` is garbage collection.

    ``in_order``: one allocation after the other, as they came, or the order near that in which it fails. ``waiting``:
    one that finds no room waits, while other threads go on and free; ``None`` where it fits in all of these orders.
    Where the two differ, it fits in some runs.
    """

    growth: bool
    collects: bool
    limit: Size | None
    in_order: Outcome
    waiting: Outcome | None = None

    @property
    def fits(self) -> bool | None:
        """Whether it fits; ``None`` where that depends on the order in which threads take turns."""
        if self.in_order.fits:
            return True
        return None if self.waiting is not None and self.waiting.fits else False

    @property
    def outcome(self) -> Outcome:
        """The one to show: in order, unless it fits only by waiting, or fails later with it."""
        return self.in_order if self.waiting is None or self.in_order.fits else self.waiting


class SmallestLimits(msgspec.Struct, frozen=True, array_like=True):
    """The smallest limits in bytes, whole MiB.

    Under ``surely`` all fits in the recorded order, and in others near it. Below ``at_least`` it fits in no run.
    """

    growth: bool
    collects: bool
    surely: Size
    at_least: Size


class Unreplayed(Enum):
    """Why a replay gave no table; in brackets, which fields of :class:`Replayed` belong to it."""

    UNBUILT = "unbuilt"  # the program for it (unbuilt)
    NOT_STARTED = "not_started"  # (detail: the error)
    SLOW = "slow"  # not done in time (count: seconds)
    NO_MEMORY = "no_memory"  # too little was free
    REFUSED = "refused"  # the program does not take what it was given
    ENDED = "ended"  # early (count: its exit status)
    TOO_FEW = "too_few"  # answers (count: how many)
    NOT_UNDERSTOOD = "not_understood"  # its answer (detail: why)
    NO_ANSWER = "no_answer"  # (detail: the last thing that was said, if anything was)


class Replayed(Event, tag="replayed", frozen=True):
    """The trace of one pool, replayed under many settings in TensorFlow's own BFC allocator.

    ``present`` is the setting that the process has. The trace has ``events``, of them ``allocations``, in ``steps``;
    ``whole`` and ``lost`` are the trace's. ``requested`` is the most that was asked for at once, without any rounding;
    ``kept`` what was in use of that as the last step began, ``None`` without steps; ``before`` what was in use as the
    trace began, if that was not with the pool's first allocation. ``scratch`` of the allocations are
    such as TensorFlow can do without.
    ``unreplayed``, with ``detail``, ``count`` and ``unbuilt``, is why there are no rows. ``missing`` and ``remedy`` are
    sentences of recordings made before that was a fact.
    """

    origin = Origin.HOOK
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
    missing: Text | None = None
    remedy: Text = ""
    unreplayed: Unreplayed | None = None
    detail: Text = ""
    count: Size | None = None
    unbuilt: Unbuilt | None = None

    @property
    def is_missing(self) -> bool:
        """Whether there are no rows."""
        return self.unreplayed is not None or self.missing is not None

    def least(self, growth: bool) -> SmallestLimits | None:
        """The smallest limits with growth on, or off, and garbage collection as TensorFlow has it there."""
        return next((limits for limits in self.smallest if limits.growth is growth), None)

    def outgrown(self, peak: int, pool: int | None) -> bool:
        """Whether a run with that highest *peak* in use and largest *pool*, in bytes, needed more than was replayed."""
        present = self.present
        if present is None or not present.in_order.fits:
            return False
        return peak > present.in_order.peak * HIGHER_LATER or (pool or 0) > present.in_order.peak_pool
