"""Follows one try by the state of its events, and decides when it is over and what its result is. Pure."""

import math
from collections.abc import Mapping
from typing import NamedTuple

from tfmemtop import events
from tfmemtop.experiments.fit.search import Result, Trial, Tried, TryOutcome
from tfmemtop.findings.rules.ending import ending
from tfmemtop.state import State, apply
from tfmemtop.state.lookup import hooked_of, limit_of, of_run
from tfmemtop.state.model import Hooked
from tfmemtop.state.steps import FunctionCounts
from tfmemtop.tensorflow_text import tells_exhaustion
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

_ENDING = events.StoppingPhase.TERM, events.StoppingPhase.KILL

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
        self._goal = goal
        self._limited = first is not None
        self._patience_s = PATIENCE_S if first is None else _SLOWER * first.duration_s + _RETRY_S
        self._state = State()
        self._changed = 0.0  # the time of the newest reading that differs from the one before
        self._ended_at: float | None = None  # when it ended, or was told to

    def take(self, event: events.Event) -> None:
        """Process the stream's next event."""
        if isinstance(event, events.Allocator) and event.device.startswith(self._kind):
            hooked = hooked_of(self._state, event.pid)
            last = hooked.allocators.get(event.device) if hooked else None
            if last is None or (last.in_use, last.allocations) != (event.in_use, event.allocations):
                self._changed = event.t
        elif isinstance(event, events.RunEnd) or (isinstance(event, events.Stopping) and event.phase in _ENDING):
            self._ended_at = event.t if self._ended_at is None else self._ended_at
        apply(self._state, event)

    @property
    def hook_absence(self) -> events.HookAbsence | None:
        """The reason why the hook was not loaded into a process of the script; ``None`` if it was."""
        absences = (process.seen.hook_absence for process in self._state.processes.values())
        return next((absence for absence in absences if absence), None)

    @property
    def held(self) -> events.StillHeld | None:
        """The memory that did not become free after the try; ``None`` if all did."""
        stopping = self._state.run.stopping if self._state.run else None
        return stopping.held if stopping else None

    @property
    def _hooked(self) -> list[Hooked]:
        processes = self._state.processes.items()
        return [one.hooked for pid, one in processes if one.hooked and of_run(self._state, pid)]

    @property
    def _pools(self) -> list[tuple[str, Hooked]]:
        """The pools of which the limit of the try is a limit, each with the process that has it."""
        return [(name, one) for one in self._hooked for name in one.trends if name.startswith(self._kind)]

    @property
    def _started(self) -> float:
        return self._state.run.started if self._state.run else 0.0

    @property
    def _began(self) -> float | None:
        """The time of TensorFlow's first use of memory."""
        return min((one.trends[name].whole.windows[0].start for name, one in self._pools), default=None)

    @property
    def _unmet(self) -> float:
        """The time at which TensorFlow last found no room; it then retries."""
        pools = [one.pools[name].exhausted for name, one in self._pools if name in one.pools]
        return max((pool.t for pool in pools if pool), default=-math.inf)

    @property
    def _failure(self) -> events.OutOfMemory | None:
        failures = [error for one in self._hooked for error in one.out_of_memory]
        return min(failures, key=lambda error: error.t, default=None)

    def _highest(self, sizes: Mapping[str, int]) -> int | None:
        return max((size for name, size in sizes.items() if name.startswith(self._kind)), default=None)

    def over(self, now: float) -> bool:
        """Return whether the try can end *now*, in seconds of the session."""
        run, began = self._state.run, self._began
        if self._failure is not None or (run and run.end):
            return True
        if began is None:
            return bool(self.hook_absence and not self._hooked) or now - self._started > UNSEEN_S
        if (due := self._due()) is not None:
            return now >= due + _LONGER_S or now >= max(due + _TOLD_S + self._more(due), self._unmet + _RETRY_S)
        if self._goal.steps is None:
            return False
        stepless = self._course is None and now - began > UNSEEN_S
        return stepless or now - self._started > self._patience_s

    def progress(self, now: float) -> str:
        """Return how far the script has got *now*, in seconds of the session."""
        if (began := self._began) is None:
            return "waiting for TensorFlow's first allocation"
        if (due := self._due()) is not None and now >= due:
            return "goal reached; waiting for pending allocations"
        if self._goal.steps is not None:
            return f"{self._steps} of {self._goal.steps} steps"
        return f"{now - began:.0f} of {self._goal.seconds or 0:g} s"

    def outcome(self, trial: Trial, now: float) -> Tried:
        """Return the result of *trial*."""
        run, over = self._state.run, self._ended_at if self._ended_at is not None else now
        how = self._outcome(trial.limit)
        replayed = self._speaking() if how.passed else None  # after a failure, the later allocations are not known
        predicted = replayed.least(self._growth) if replayed else None
        return Tried(
            limit=trial.limit,
            value=trial.value,
            pool_limit=max((limit for name, one in self._pools if (limit := limit_of(one, name))), default=None),
            how=how,
            duration_s=round(over - self._started, 3),
            peak_in_use=self._highest(run.peaks) if run else None,
            pool=self._highest(run.pools) if run else None,
            steps_per_s=self._steps_per_s(over) if how.passed else None,
            surely=predicted.surely if predicted else None,
            at_least=predicted.at_least if predicted else None,
        )

    def _speaking(self) -> events.Replayed | None:
        """Return the replay if it is meaningful, else ``None``.

        It is if the run used only one pool, which needed no more memory after the part that was replayed.
        """
        run, pools = self._state.run, self._pools
        replayed = run.replayed.get(pools[0][0]) if run and len(pools) == 1 else None
        if run is None or replayed is None or replayed.is_missing or replayed.lost > _LOST * replayed.events:
            return None
        outgrown = replayed.outgrown(self._highest(run.peaks) or 0, self._highest(run.pools))
        return None if replayed.present is None or outgrown else replayed

    @property
    def _course(self) -> FunctionCounts | None:
        steps = self._state.run.steps if self._state.run else None
        return steps.busiest if steps else None

    @property
    def _steps(self) -> int:
        return course.last.calls * (course.function.steps or 1) if (course := self._course) else 0

    def _due(self) -> float | None:
        """Return the time at which the goal is reached; ``None`` if it is not known yet."""
        if self._goal.seconds is not None:
            return None if (began := self._began) is None else began + self._goal.seconds
        course, wanted = self._course, self._goal.steps or 0
        if course is None or self._steps < wanted:
            return None
        return course.time_of(wanted / (course.function.steps or 1))

    def _more(self, due: float) -> float:
        """Return the seconds to wait in addition at *due*.

        They are more than 0 if an allocation may be waiting for memory: the run stands still, or its pools are read by
        TensorFlow's public functions only, which show no wait.
        """
        if not self._limited:
            return 0.0
        read = [one.allocators[name] for name, one in self._pools]
        unseen, counted = any(one.pool is None for one in read), all(one.allocations is not None for one in read)
        stands_still = self._goal.seconds is not None and counted and due - self._changed > _STALL_S
        return _RETRY_S if unseen or stands_still else 0.0

    def _steps_per_s(self, over: float) -> float | None:
        """Return the speed in the second half of the time: the first half is building and warming up."""
        run, course = self._state.run, self._course
        if run is None or run.steps is None or course is None:
            return None
        middle = ((self._began or self._started) + over) / 2
        begin, end = max(middle, course.first.t), min(over, course.last.t)
        return run.steps.made(begin, end)[0] / (end - begin) or None if end - begin >= _SPEED_LEAST_S else None

    def _outcome(self, limit: int | None) -> TryOutcome:
        end = self._state.run.end if self._state.run else None
        if (failure := self._failure) is not None:
            asked = f", asking for {format_bytes(failure.requested)}" if failure.requested else ""
            return self._had_less(limit) or TryOutcome(Result.OUT_OF_MEMORY, f"out of memory{asked}")
        if end is not None and self._ended_at == end.t:
            if end.ending.good:
                return self._unproved(limit) or TryOutcome(Result.FINISHED, "passed: it ran to its end")
            complained = tells_exhaustion("".join(written.text for written in self._state.output))
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
        failure = self._failure
        had = self._had(failure.device if failure else None)
        return _without_effect(max(had)) if limit is not None and had and max(had) <= limit - MIB else None

    def _had(self, device: str | None = None) -> list[int]:
        """Return the limits of all pools, or of the pools of *device*; empty if not all of them are known."""
        limits = [limit_of(one, name) for name, one in self._pools if device in (None, name)]
        had = [one for one in limits if one is not None]
        return had if len(had) == len(limits) else []


def _without_effect(limit: int) -> TryOutcome:
    """Return the outcome of a try whose pool had *limit* bytes, and not the limit of the try."""
    text = f"the limit had no effect: TensorFlow's pool had a limit of {format_bytes(limit)}"
    return TryOutcome(Result.UNLIMITED, text, "Perhaps the script sets a limit of its own.")
