"""One try, as its events tell it: when it is over, and how it went. Pure."""

import math
from enum import Enum
from typing import NamedTuple

from tfmemtop.events import (
    Allocator,
    Effective,
    Event,
    Functions,
    Held,
    Hook,
    HookAbsence,
    MemoryMap,
    OutOfMemory,
    Process,
    Replayed,
    Run,
    RunEnd,
    Stopping,
)
from tfmemtop.fit.search import Outcome, Result, Tried
from tfmemtop.units import MIB

UNSEEN_S = 300.0
"""How long a script may take until TensorFlow uses memory, and from then to the first step that is counted."""

PATIENCE_S = 3600.0
"""How long the first try may take for its steps."""

_SLOWER = 3.0  # times the first try's duration, in which a later one has to make its steps
_STALL_S = 1.0  # without an allocation: longer than between two steps, shorter than a wait for memory
_RETRY_S = 12.0
"""TensorFlow tries for 10 s before an allocation fails: a try in which one may be waiting is given that much longer."""

_LONGER_S = 30.0  # at most, however often one waits
_TOLD_S = 0.5  # until what has happened is known here

_LOST = 0.001
"""Of the events of a trace, the share that may be missing: every limit is proved by a try anyway."""

_COUNTS_KEPT = 4096

_SPEED_LEAST_S = 1.5  # of a shorter time no speed is told


class Goal(NamedTuple):
    """How far the script has to get: so many seconds from TensorFlow's first use of memory on, or so many steps.

    A step is a call of the ``tf.function`` that is called most often, or what Keras does in one.
    """

    seconds: float | None = None
    steps: int | None = None


class Stage(Enum):
    """How far a try has got."""

    BEFORE_USE = "before_use"  # TensorFlow has not used memory yet
    UNDER_WAY = "under_way"
    REACHED = "reached"  # far enough, but an allocation may still be waiting


class Progress(NamedTuple):
    """How far a try has got: ``seconds`` of TensorFlow's use of memory, and ``steps``."""

    stage: Stage
    goal: Goal
    seconds: float = 0.0
    steps: int = 0


class _Count(NamedTuple):
    t: float
    counted: int


class _Speed:
    """How fast something is counted up."""

    def __init__(self) -> None:
        self.counts: list[_Count] = []

    def add(self, t: float, count: int) -> None:
        self.counts.append(_Count(t, count))
        if len(self.counts) > _COUNTS_KEPT:
            del self.counts[::2]

    def within(self, since: float, until: float) -> float | None:
        counts = [count for count in self.counts if since <= count.t <= until]
        if len(counts) < 2 or counts[-1].t - counts[0].t < _SPEED_LEAST_S:
            return None
        return (counts[-1].counted - counts[0].counted) / (counts[-1].t - counts[0].t) or None


class Watch:
    """Follows a run on devices of *kind* (``GPU`` or ``CPU``) until it has reached its *goal*.

    *first* is how the first try went, which had all the memory: later ones are given more time for it. *growth* is
    that of all tries. It *traces* if all allocations of this one are recorded.
    """

    def __init__(
        self, kind: str, goal: Goal, first: Tried | None = None, *, growth: bool = True, traces: bool = False
    ) -> None:
        self.traces = traces
        self._kind = kind
        self._growth = growth
        self._replayed: dict[tuple[int, str], Replayed] = {}
        self._goal = goal
        self._expected_stall_s = first.stalled_s if first else math.inf
        self._patience_s = PATIENCE_S if first is None else _SLOWER * first.duration_s + _RETRY_S
        self._started = 0.0
        self._began: float | None = None  # TensorFlow's first use of memory
        self._changed = 0.0  # the newest sign that it allocates
        self._stalled_s = 0.0  # before that
        self._last: dict[tuple[int, str], Allocator] = {}
        self._first: dict[tuple[int, str], int] = {}  # allocations when first seen
        self._allocated = _Speed()
        self._called: dict[tuple[int, str, str, int], int] = {}  # steps so far, by function
        self._stepped = _Speed()
        self._stepped_enough: float | None = None  # when they were seen to be
        self._unmet = -math.inf  # when TensorFlow last found no room, which it then tries for again
        self._pids: set[int] = set()
        self._limits: dict[tuple[int, str], int | None] = {}  # of the pools
        self._effective: dict[tuple[int, str], int | None] = {}  # limits of devices, as TensorFlow tells them
        self._peak: int | None = None
        self._pool: int | None = None
        self._failure: OutOfMemory | None = None
        self._end: RunEnd | None = None
        self._ended_at: float | None = None
        self.hook_absence: HookAbsence | None = None
        """Why the hook could not get into a process of the script, if that is so."""
        self.held: Held | None = None
        """What still holds memory after the try, if waiting for it was in vain."""

    def take(self, event: Event) -> None:
        """The stream's next event."""
        match event:
            case Run():
                self._started = event.t
            case RunEnd():
                self._end = event
                self._ended_at = self._ended_at or event.t
            case Stopping(phase="term" | "kill"):
                self._ended_at = self._ended_at or event.t
            case Stopping(phase="held"):
                self.held = event.held
            case Hook():
                self._pids.add(event.pid)
            case Process(hook_absence=HookAbsence() as absence):
                self.hook_absence = absence
            case OutOfMemory() if self._failure is None and event.pid in self._pids:
                self._failure = event
            case Functions() if event.pid in self._pids:
                for function in event.functions:
                    key = event.pid, function.name, function.file, function.line
                    self._called[key] = function.calls * (function.steps or 1)
                self._stepped.add(event.t, self._steps)
                if self._stepped_enough is None and self._goal.steps and self._steps >= self._goal.steps:
                    self._stepped_enough = event.t
            case MemoryMap(moment="out_of_memory") if event.pid in self._pids and event.device.startswith(self._kind):
                self._unmet = event.t
            case Replayed() if event.device.startswith(self._kind) and event.pid in self._pids:
                self._replayed[event.pid, event.device] = event
            case Effective() if event.device.startswith(self._kind) and event.pid in self._pids:
                self._effective[event.pid, event.device] = event.limit
            case Allocator() if event.device.startswith(self._kind) and event.pid in self._pids:
                self._read(event)
            case _:
                pass

    def over(self, now: float) -> bool:
        """Whether the try need not go on, *now* in session seconds."""
        if self._failure is not None or self._end is not None:
            return True
        if self._began is None:
            return bool(self.hook_absence and not self._pids) or now - self._started > UNSEEN_S
        if (due := self._due()) is not None:
            return now >= due + _LONGER_S or now >= max(due + _TOLD_S + self._more(due), self._unmet + _RETRY_S)
        if self._goal.steps is None:
            return False
        stepless = not self._called and now - self._began > UNSEEN_S
        return stepless or now - self._started > self._patience_s

    def progress(self, now: float) -> Progress:
        """How far the script has got *now*."""
        if self._began is None:
            return Progress(Stage.BEFORE_USE, self._goal)
        due = self._due()
        stage = Stage.REACHED if due is not None and now >= due else Stage.UNDER_WAY
        return Progress(stage, self._goal, now - self._began, self._steps)

    def outcome(self, limit: int | None, now: float, complained: bool, interrupted: bool) -> Tried:
        """How the try under *limit* went; *complained* if TensorFlow wrote that a pool ran out."""
        over = self._ended_at if self._ended_at is not None else now
        how = self._outcome(limit, complained, interrupted)
        replayed = self._speaking() if how.passed else None  # what would have come after a failure is not known
        predicted = replayed.least(self._growth) if replayed else None
        speed, unit = self._speed(over) if how.passed else (None, "")
        return Tried(
            limit=limit,
            how=how,
            duration_s=round(over - self._started, 3),
            peak_in_use=self._peak,
            pool=self._pool,
            speed=speed,
            speed_unit=unit,
            stalled_s=round(self._stall(over), 3) if self._began is not None else 0.0,
            surely=predicted.surely if predicted else None,
            at_least=predicted.at_least if predicted else None,
            kept=replayed.kept if replayed else None,
            traced=self.traces and bool(self._replayed),
        )

    def _speaking(self) -> Replayed | None:
        """The replay, if one pool alone was used, and needed no more after what was replayed."""
        if len(self._last) != 1 or len(self._replayed) != 1:
            return None
        (replayed,) = self._replayed.values()
        present = replayed.present
        too_little = replayed.is_missing or replayed.lost > _LOST * replayed.events
        if too_little or present is None or replayed.outgrown(self._peak or 0, self._pool):
            return None
        return replayed

    def _read(self, event: Allocator) -> None:
        if event.in_use is None:
            return
        if self._began is None:
            self._began = self._changed = event.t
        key = event.pid, event.device
        self._limits[key] = event.limit if event.limit is not None else self._limits.get(key)
        last, self._last[key] = self._last.get(key), event
        if last is None or (last.in_use, last.allocations) != (event.in_use, event.allocations):
            if event.t - self._changed > _STALL_S:
                self._stalled_s += event.t - self._changed
            self._changed = event.t
        self._peak = max(self._peak or 0, event.peak or event.in_use)
        if event.pool is not None:
            self._pool = max(self._pool or 0, event.pool, event.peak_pool or 0)
        if event.allocations is not None:
            self._first.setdefault(key, event.allocations)
            made = sum((self._last[key].allocations or 0) - first for key, first in self._first.items())
            self._allocated.add(event.t, made)

    @property
    def _steps(self) -> int:
        return max(self._called.values(), default=0)

    def _due(self) -> float | None:
        """When the goal is reached, as far as that can be told by now."""
        if self._goal.seconds is not None:
            return None if self._began is None else self._began + self._goal.seconds
        return self._stepped_enough

    def _more(self, due: float) -> float:
        """How much longer to wait if the script stands still at *due* as it did not the first time."""
        if self._goal.seconds is None or self._stall(due) <= self._expected_stall_s + _STALL_S:
            return 0.0
        return _RETRY_S

    def _stall(self, now: float) -> float:
        still = now - self._changed
        return self._stalled_s + (still if still > _STALL_S else 0.0)

    def _speed(self, over: float) -> tuple[float | None, str]:
        """Of the second half of the time: the first is building and warming up."""
        middle = ((self._began or self._started) + over) / 2
        for counted, unit in ((self._stepped, "steps/s"), (self._allocated, "allocations/s")):
            speed = counted.within(middle, over)
            if speed is not None:
                return speed, unit
        return None, ""

    def _outcome(self, limit: int | None, complained: bool, interrupted: bool) -> Outcome:
        if self._failure is not None:
            out_of_memory = Outcome(result=Result.OUT_OF_MEMORY, requested=self._failure.requested)
            return self._had_less(limit) or out_of_memory
        end = self._end
        if end is not None and self._ended_at == end.t:
            if end.ending.good:
                return self._unproved(limit) or Outcome(result=Result.FINISHED)
            less = self._had_less(limit) if complained else None
            return less or Outcome(result=Result.ENDED, ending=end.ending, complained=complained)
        # It ended because we asked it to.
        if interrupted:
            return Outcome(result=Result.INTERRUPTED)
        if self._began is not None and self._goal.steps is not None and self._steps < self._goal.steps:
            took = (self._ended_at or 0.0) - self._started
            return Outcome(result=Result.TOO_SLOW, steps=self._steps, seconds=took)
        return self._unproved(limit) or Outcome(result=Result.REACHED)

    def _unproved(self, limit: int | None) -> Outcome | None:
        """Why the try, which ended well, proves nothing of *limit*; ``None`` if it does, or if the limits of its pools
        are not known."""
        if self._began is None:
            return Outcome(result=Result.UNUSED, kind=self._kind)
        had = self._had()
        if limit is None or not had or min(had) < limit + MIB:
            return None
        return Outcome(result=Result.UNLIMITED, limit=min(had), kind=self._kind)

    def _had_less(self, limit: int | None) -> Outcome | None:
        """Why the try, which ran out of memory, proves nothing of *limit*: its pool had a smaller one."""
        had = self._had(self._failure.device if self._failure else None)
        if limit is None or not had or max(had) > limit - MIB:
            return None
        return Outcome(result=Result.UNLIMITED, limit=max(had), kind=self._kind)

    def _had(self, device: str | None = None) -> list[int]:
        """The limits of the pools, or of those of *device*; empty if not all are known."""
        limits = [known or self._effective.get(key) for key, known in self._limits.items() if device in (None, key[1])]
        had = [one for one in limits if one is not None]
        return had if len(had) == len(limits) else []
