"""A search whose tries are runs of a session. It receives the session's events and returns commands for the engine.

Pure.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import Enum

from tfmemtop.events import (
    Command,
    Event,
    HookAbsence,
    Notice,
    NoticeKind,
    Output,
    Relaunch,
    Replayed,
    Run,
    RunEnd,
    StillHeld,
    Stop,
    Stopping,
    StoppingPhase,
    Trace,
)
from tfmemtop.events.commands import TRY_GRACE_S
from tfmemtop.events.device_names import is_pinned
from tfmemtop.experiments.fit.plan import Plan
from tfmemtop.experiments.fit.search import Search, Tried
from tfmemtop.experiments.fit.watch import Progress
from tfmemtop.tensorflow_text import tells_exhaustion


class Why(Enum):
    """What stopped the search."""

    INTERRUPTED = "interrupted"
    OTHER_RUN = "other_run"  # the user started another run
    RUN_ENDED = "run_ended"  # the user ended the run of a try
    MEMORY_HELD = "memory_held"  # the last try's memory did not become free
    NOT_STARTED = "not_started"  # the script could not be started; ``notice`` has the reason
    ENGINE_GONE = "engine_gone"


@dataclass(frozen=True, slots=True)
class Stopped:
    """The reason. ``held`` is the memory that did not become free, ``notice`` reports that no script was started."""

    why: Why
    held: StillHeld | None = None
    notice: Notice | None = None


REPLAY_S = 60.0
"""Seconds that a replay may take after the end of a try, including the time to build its program."""

_LINE = 512  # characters of the output's end that are kept, because a line may come in two pieces


class Phase(Enum):
    """The phase of a try."""

    STARTING = "starting"  # waiting until the memory of the run before is free
    RUNNING = "running"
    ENDING = "ending"
    REPLAYING = "replaying"  # the try has ended, and its allocations are replayed
    PREDICTING = "predicting"  # the recorded allocations of the tries are replayed with other values
    DONE = "done"  # no try is under way


class SessionTries(ABC):
    """One search, from the first relaunch to its end, or until something stops it. A subclass defines its subject."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.phase = Phase.DONE
        self.stopped: Stopped | None = None
        """The reason why the search stopped before its end; ``None`` if it did not."""
        self.hint: HookAbsence | None = None
        """The reason why the hook was not loaded, if the last try showed no memory."""
        self._watch = plan.watch(None)
        self._asked = Relaunch(argv=plan.command, settings=plan.settings)
        self._run = 0
        self._now = 0.0
        self._complained = False
        self._tail = ""
        self._ended = 0.0  # when the run of the current try ended
        self._unreplayed: set[tuple[int, str]] = set()  # pools whose trace is complete

    @property
    def going(self) -> bool:
        """Whether the search still makes tries."""
        return self.phase is not Phase.DONE

    @property
    def can_go_on(self) -> bool:
        """Whether the search has stopped before its end, so that it can be continued."""
        return not self.going and self.has_next()

    @property
    def number(self) -> int:
        """The number of the current try, or of the last one; the first is 1."""
        return self.done + self.going

    @property
    @abstractmethod
    def done(self) -> int:
        """The number of tries that have been made."""

    @abstractmethod
    def has_next(self) -> bool:
        """Return whether another try is worth it."""

    @abstractmethod
    def _prepare(self) -> Relaunch:
        """Choose the next try, set ``_watch`` for it, and return the command that starts it."""

    @abstractmethod
    def _tell(self, tried: Tried) -> None:
        """Store the result of a try."""

    @property
    def progress(self) -> Progress:
        """How far the current try has got, while its run goes on."""
        return self._watch.progress(self._now)

    def begin(self, newest_run: int) -> list[Command]:
        """Begin the search, or continue it after :meth:`stop`; return the commands for the engine.

        *newest_run* is the number of the session's newest run. The next try is the run after it.
        """
        self.stopped = None
        self._run = newest_run + 1
        return self._start()

    def stop(self, why: Why = Why.INTERRUPTED, held: StillHeld | None = None, notice: Notice | None = None) -> None:
        """Make no further try. A run that is under way is not ended."""
        self.phase, self.stopped = Phase.DONE, Stopped(why, held, notice)

    def take(self, event: Event) -> list[Command]:
        """Process the session's next event, and return the commands for the engine."""
        self._now = max(self._now, event.t)
        if self.phase is Phase.STARTING:
            self._await(event)
        elif self.phase is Phase.RUNNING:
            return self._follow(event)
        elif self.phase is Phase.ENDING:
            self._see(event)
            ended = isinstance(event, Stopping) and event.phase in (StoppingPhase.RELEASED, StoppingPhase.HELD)
            if isinstance(event, RunEnd) or ended:
                return self._over()
        elif self.phase in (Phase.REPLAYING, Phase.PREDICTING):
            self._see(event)
            if isinstance(event, Run):
                self.stop(Why.OTHER_RUN)
            elif self.phase is Phase.REPLAYING and (not self._unreplayed or self._now > self._ended + REPLAY_S):
                return self._judge()
        return []

    def _start(self) -> list[Command]:
        self.phase = Phase.STARTING
        self._complained, self._tail, self._unreplayed = False, "", set()
        self._asked = self._prepare()
        return [self._asked]

    def _await(self, event: Event) -> None:
        """Process an event while the try's own run has not begun."""
        match event:
            case Run() if event.run == self._run and event.settings == self._asked.settings:
                self.phase = Phase.RUNNING
                self._watch.take(event)
            case Run():
                self.stop(Why.OTHER_RUN)
            case Stopping(phase=StoppingPhase.HELD):
                self.stop(Why.MEMORY_HELD, held=event.held)
            case Notice(kind=NoticeKind.NOT_RELAUNCHED):
                self.stop(Why.NOT_STARTED, notice=event)
            case _:
                pass

    def _follow(self, event: Event) -> list[Command]:
        match event:
            case Run():
                self.stop(Why.OTHER_RUN)
                return []
            case Stopping(phase=StoppingPhase.TERM | StoppingPhase.KILL):
                self.stop(Why.RUN_ENDED)
                return []
        self._see(event)
        if isinstance(event, RunEnd):
            return self._over()
        if self._watch.over(self._now):
            self.phase = Phase.ENDING
            return [Stop(grace_s=TRY_GRACE_S)]
        return []

    def _see(self, event: Event) -> None:
        self._watch.take(event)
        if isinstance(event, Output):
            text = self._tail + event.text
            self._complained = self._complained or tells_exhaustion(text)
            self._tail = text[-_LINE:]
        elif isinstance(event, Trace) and event.last and not is_pinned(event.device):
            self._unreplayed.add((event.pid, event.device))
        elif isinstance(event, Replayed):
            self._unreplayed.discard((event.pid, event.device))

    def _over(self) -> list[Command]:
        """Process the end of the current try. It is judged as soon as its recorded allocations have been replayed."""
        if not self._unreplayed or not self._watch.traces:
            return self._judge()
        self.phase, self._ended = Phase.REPLAYING, self._now
        return []

    def _judge(self) -> list[Command]:
        limit = self._limit()
        tried = self._watch.outcome(limit, self._now, self._complained, interrupted=False)
        self._tell(tried)
        self.hint = self._watch.hook_absence if tried.peak_in_use is None else None
        if self._watch.held:
            self.stop(Why.MEMORY_HELD, held=self._watch.held)
        elif self.phase is not Phase.PREDICTING:
            return self._go_on()
        return []

    def _go_on(self) -> list[Command]:
        """Make the next try, if one is worth it."""
        if self.has_next():
            self._run += 1
            return self._start()
        self.phase = Phase.DONE
        return []

    def _limit(self) -> int | None:
        """Return the limit of the current try, in bytes; ``None`` for a try without a limit."""
        return self.plan.largest


class SessionFit(SessionTries):
    """The search for the smallest limit."""

    def __init__(self, plan: Plan) -> None:
        super().__init__(plan)
        self.search: Search = plan.search()
        self.limit: int | None = None
        """The limit of the current try, in bytes; ``None`` for a try without a limit."""

    @property
    def done(self) -> int:
        return len(self.search.tried)

    def has_next(self) -> bool:
        return self.search.has_next()

    def _prepare(self) -> Relaunch:
        tried = self.search.tried
        self.limit = self.search.next()
        self._watch = self.plan.watch(tried[0] if tried else None)
        settings = self.plan.settings_of(self.limit)
        return Relaunch(argv=self.plan.command, settings=settings, grace_s=TRY_GRACE_S, trace=self._watch.traces)

    def _tell(self, tried: Tried) -> None:
        self.search.tell(tried)

    def _limit(self) -> int | None:
        return self.limit
