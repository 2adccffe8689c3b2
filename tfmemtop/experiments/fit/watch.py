"""Follows one try by its events, and decides when it is over and what its result is. Pure."""

import math
from typing import NamedTuple

from tfmemtop import events
from tfmemtop.experiments.fit.search import Result, Trial, Tried, TryOutcome
from tfmemtop.findings.rules.ending import ending
from tfmemtop.series import Series, earlier
from tfmemtop.units import MIB, format_bytes

UNSEEN_S = 300.0
"""Seconds that a script may take until TensorFlow uses memory, and from then until the first step is counted."""

PATIENCE_S = 3600.0
"""Seconds that the first try may take for its steps."""

_SLOWER = 3.0  # a later try has this many times the first try's duration for its steps
_STALL_S = 1.0  # a stall is at least this long without an allocation: longer than a step's gap, shorter than a wait
_RETRY_S = 12.0
"""Seconds that a try gets in addition if an allocation may be waiting: TensorFlow retries for 10 s before it fails."""

_LONGER_S = 30.0  # the most that a try gets in addition, even if allocations wait again and again
_TOLD_S = 0.5  # the longest time until an event arrives here

_LOST = 0.001
"""The share of a trace's events that may be missing. A small error does no harm: a try proves every limit anyway."""

_COUNTS_KEPT, _FINEST_S = 4096, 0.0625

_SPEED_LEAST_S = 1.5  # the speed is not computed from a shorter time


class Goal(NamedTuple):
    """How far the script has to get: a number of seconds since TensorFlow's first use of memory, or a number of steps.

    A step is a call of the ``tf.function`` that is called most often. If Keras makes several steps in one call, each of
    them counts.
    """

    seconds: float | None = None
    steps: int | None = None


class TryWatch:
    """Follows a run on devices of *kind* (``GPU`` or ``CPU``) until it has reached its *goal*.

    *first* is the result of the first try, which had all the memory. It shows how long a later try may take.
    *growth* is the growth of all tries.
    """

    def __init__(self, kind: str, goal: Goal, first: Tried | None = None, *, growth: bool = True) -> None:
        self._kind = kind
        self._growth = growth
        self._replayed: dict[tuple[int, str], events.Replayed] = {}
        self._goal = goal
        self._limited = first is not None
        self._patience_s = PATIENCE_S if first is None else _SLOWER * first.duration_s + _RETRY_S
        self._started = 0.0
        self._began: float | None = None  # TensorFlow's first use of memory
        self._changed = 0.0  # the time of the newest reading that differs from the one before
        self._last: dict[tuple[int, str], events.Allocator] = {}
        self._called: dict[tuple[int, str, str, int], int] = {}  # steps so far, by function
        self._counts: Series[tuple[float, int]] = Series(earlier, _FINEST_S, _COUNTS_KEPT)  # times and steps
        self._stepped_enough: float | None = None  # when the steps of the goal were first complete
        self._unmet = -math.inf  # when TensorFlow last found no room; it then retries
        self._pids: set[int] = set()
        self._limits: dict[tuple[int, str], int | None] = {}  # the limits of the pools
        self._effective: dict[tuple[int, str], int | None] = {}  # the limits of the devices, as TensorFlow reports them
        self._peak: int | None = None
        self._pool: int | None = None
        self._failure: events.OutOfMemory | None = None
        self._end: events.RunEnd | None = None
        self._ended_at: float | None = None
        self.hook_absence: events.HookAbsence | None = None
        """The reason why the hook was not loaded into a process of the script; ``None`` if it was."""
        self.held: events.StillHeld | None = None
        """The memory that did not become free after the try; ``None`` if all did."""

    def take(self, event: events.Event) -> None:
        """Process the stream's next event."""
        match event:
            case events.Run():
                self._started = event.t
            case events.RunEnd():
                self._end = event
                self._ended_at = self._ended_at or event.t
            case events.Stopping(phase=events.StoppingPhase.TERM | events.StoppingPhase.KILL):
                self._ended_at = self._ended_at or event.t
            case events.Stopping(phase=events.StoppingPhase.HELD):
                self.held = event.held
            case events.Hook():
                self._pids.add(event.pid)
            case events.Process(hook_absence=events.HookAbsence() as absence):
                self.hook_absence = absence
            case events.OutOfMemory() if self._failure is None and event.pid in self._pids:
                self._failure = event
            case events.Functions() if event.pid in self._pids:
                for function in event.functions:
                    key = event.pid, function.name, function.file, function.line
                    self._called[key] = function.calls * (function.steps or 1)
                self._counts.add(event.t, (event.t, self._steps))
                if self._stepped_enough is None and self._goal.steps and self._steps >= self._goal.steps:
                    self._stepped_enough = event.t
            case events.MemoryMap(moment=events.MapMoment.OUT_OF_MEMORY) if self._is_limited(event.pid, event.device):
                self._unmet = event.t
            case events.Replayed() if self._is_limited(event.pid, event.device):
                self._replayed[event.pid, event.device] = event
            case events.Effective() if self._is_limited(event.pid, event.device):
                self._effective[event.pid, event.device] = event.limit
            case events.Allocator() if self._is_limited(event.pid, event.device):
                self._read(event)
            case _:
                pass

    def _is_limited(self, pid: int, device: str) -> bool:
        """Return whether the limit of the try is a limit of this pool."""
        return pid in self._pids and device.startswith(self._kind)

    def over(self, now: float) -> bool:
        """Return whether the try can end *now*, in seconds of the session."""
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

    def progress(self, now: float) -> str:
        """Return how far the script has got *now*, in seconds of the session."""
        if self._began is None:
            return "waiting for TensorFlow's first allocation"
        if (due := self._due()) is not None and now >= due:
            return "goal reached; waiting for pending allocations"
        if self._goal.steps is not None:
            return f"{self._steps} of {self._goal.steps} steps"
        return f"{now - self._began:.0f} of {self._goal.seconds or 0:g} s"

    def outcome(self, trial: Trial, now: float, complained: bool) -> Tried:
        """Return the result of *trial*.

        *complained*: TensorFlow wrote that a pool ran out of memory.
        """
        over = self._ended_at if self._ended_at is not None else now
        how = self._outcome(trial.limit, complained)
        replayed = self._speaking() if how.passed else None  # after a failure, the later allocations are not known
        predicted = replayed.least(self._growth) if replayed else None
        return Tried(
            limit=trial.limit,
            value=trial.value,
            pool_limit=max(filter(None, self._limits.values()), default=None),
            how=how,
            duration_s=round(over - self._started, 3),
            peak_in_use=self._peak,
            pool=self._pool,
            steps_per_s=self._steps_per_s(over) if how.passed else None,
            surely=predicted.surely if predicted else None,
            at_least=predicted.at_least if predicted else None,
        )

    def _speaking(self) -> events.Replayed | None:
        """Return the replay if it is meaningful, else ``None``.

        It is if the run used only one pool, which needed no more memory after the part that was replayed.
        """
        if len(self._last) != 1 or len(self._replayed) != 1:
            return None
        (replayed,) = self._replayed.values()
        present = replayed.present
        too_little = replayed.is_missing or replayed.lost > _LOST * replayed.events
        if too_little or present is None or replayed.outgrown(self._peak or 0, self._pool):
            return None
        return replayed

    def _read(self, event: events.Allocator) -> None:
        if event.in_use is None:
            return
        if self._began is None:
            self._began = self._changed = event.t
        key = event.pid, event.device
        self._limits[key] = event.limit if event.limit is not None else self._limits.get(key)
        last, self._last[key] = self._last.get(key), event
        if last is None or (last.in_use, last.allocations) != (event.in_use, event.allocations):
            self._changed = event.t
        self._peak = max(self._peak or 0, event.peak or event.in_use)
        if event.pool is not None:
            self._pool = max(self._pool or 0, event.pool, event.peak_pool or 0)

    @property
    def _steps(self) -> int:
        return max(self._called.values(), default=0)

    def _due(self) -> float | None:
        """Return the time at which the goal is reached; ``None`` if it is not known yet."""
        if self._goal.seconds is not None:
            return None if self._began is None else self._began + self._goal.seconds
        return self._stepped_enough

    def _more(self, due: float) -> float:
        """Return the seconds to wait in addition at *due*.

        They are more than 0 if an allocation may be waiting for memory: the run stands still, or its pools are read by
        TensorFlow's public functions only, which show no wait.
        """
        if not self._limited:
            return 0.0
        unseen = any(last.pool is None for last in self._last.values())
        counted = all(last.allocations is not None for last in self._last.values())
        stands_still = self._goal.seconds is not None and counted and due - self._changed > _STALL_S
        return _RETRY_S if unseen or stands_still else 0.0

    def _steps_per_s(self, over: float) -> float | None:
        """Return the speed in the second half of the time: the first half is building and warming up."""
        middle = ((self._began or self._started) + over) / 2
        counts = [(t, count) for t, count in self._counts.windows if middle <= t <= over]
        if not counts:
            return None
        (began, first), (ended, last) = counts[0], counts[-1]
        return None if ended - began < _SPEED_LEAST_S else (last - first) / (ended - began) or None

    def _outcome(self, limit: int | None, complained: bool) -> TryOutcome:
        end = self._end
        if self._failure is not None:
            asked = f", asking for {format_bytes(self._failure.requested)}" if self._failure.requested else ""
            return self._had_less(limit) or TryOutcome(Result.OUT_OF_MEMORY, f"out of memory{asked}")
        if end is not None and self._ended_at == end.t:
            if end.ending.good:
                return self._unproved(limit) or TryOutcome(Result.FINISHED, "passed: it ran to its end")
            less = self._had_less(limit) if complained else None
            return less or TryOutcome(Result.ENDED, ending(end.ending) + ", out of memory" * complained)
        # The run ended because we ended it.
        if self._began is not None and self._goal.steps is not None and self._steps < self._goal.steps:
            took = (self._ended_at or 0.0) - self._started
            return TryOutcome(Result.TOO_SLOW, f"too slow: {self._steps} steps of a tf.function in {took:.0f} s")
        return self._unproved(limit) or TryOutcome(Result.REACHED, "passed")

    def _unproved(self, limit: int | None) -> TryOutcome | None:
        """Return why the try, which ended well, proves nothing about *limit*.

        ``None`` if it proves something, or if the limits of its pools are not known.
        """
        if self._began is None:
            remedy = "If the script is to use the CPU, add --gpus none: the limit is then that of the CPU's pool."
            text = f"no use of {self._kind} memory by TensorFlow was seen"
            return TryOutcome(Result.UNUSED, text, remedy if self._kind == "GPU" else "")
        had = self._had()
        return _without_effect(min(had)) if limit is not None and had and min(had) >= limit + MIB else None

    def _had_less(self, limit: int | None) -> TryOutcome | None:
        """Return why the try, which ran out of memory, proves nothing about *limit*: its pool had a smaller limit.

        ``None`` if it proves something.
        """
        had = self._had(self._failure.device if self._failure else None)
        return _without_effect(max(had)) if limit is not None and had and max(had) <= limit - MIB else None

    def _had(self, device: str | None = None) -> list[int]:
        """Return the limits of all pools, or of the pools of *device*; empty if not all of them are known."""
        limits = [known or self._effective.get(key) for key, known in self._limits.items() if device in (None, key[1])]
        had = [one for one in limits if one is not None]
        return had if len(had) == len(limits) else []


def _without_effect(limit: int) -> TryOutcome:
    """Return the outcome of a try whose pool had *limit* bytes, and not the limit of the try."""
    text = f"the limit had no effect: TensorFlow's pool had a limit of {format_bytes(limit)}"
    return TryOutcome(Result.UNLIMITED, text, "Perhaps the script sets a limit of its own.")
