"""A search whose tries are runs of a session: takes its events, says what to ask of its engine. Pure."""

from abc import ABC, abstractmethod
from enum import Enum

from tfmemtop.events import (
    Command,
    Event,
    Held,
    HookAbsence,
    Notice,
    NoticeKind,
    Output,
    Relaunch,
    Replayed,
    Run,
    RunEnd,
    Stop,
    Stopping,
    Trace,
)
from tfmemtop.events.device_names import is_pinned
from tfmemtop.fit.plan import Plan
from tfmemtop.fit.search import Search, Tried
from tfmemtop.fit.stopped import Stopped, Why
from tfmemtop.fit.watch import Progress
from tfmemtop.tensorflow_text import tells_exhaustion

GRACE_S = 5.0
"""How long a try has to end by itself once it is asked to."""

REPLAY_S = 60.0
"""How long a replay may take after the end of a try, the building of its program included."""

_LINE = 512  # of the output's end kept, where a line may come in two pieces


class Phase(Enum):
    """How a try stands."""

    STARTING = "starting"  # the memory of the run before is awaited
    RUNNING = "running"
    ENDING = "ending"
    REPLAYING = "replaying"  # its allocations, after its end
    PREDICTING = "predicting"  # what was recorded of the tries is replayed with other values
    DONE = "done"


class SessionTries(ABC):
    """One search, from the first relaunch to its end, or until something comes between; for what, a subclass says."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.phase = Phase.DONE
        self.stopped: Stopped | None = None
        """Why the search has not come to its end, if so."""
        self.hint: HookAbsence | None = None
        """Why the hook could not get in, where no memory was seen."""
        self._watch = plan.watch(None)
        self._asked = Relaunch(argv=plan.command, settings=plan.settings)
        self._run = 0
        self._now = 0.0
        self._complained = False
        self._tail = ""
        self._ended = 0.0  # when the try under way had ended
        self._unreplayed: set[tuple[int, str]] = set()  # pools whose trace is complete

    @property
    def going(self) -> bool:
        """Whether tries are still made."""
        return self.phase is not Phase.DONE

    @property
    def can_go_on(self) -> bool:
        """Whether it has stopped before its end."""
        return not self.going and self.has_next()

    @property
    def number(self) -> int:
        """Which try is under way, or was the last one."""
        return self.done + self.going

    @property
    @abstractmethod
    def done(self) -> int:
        """How many tries have been made."""

    @abstractmethod
    def has_next(self) -> bool:
        """Whether another try is worth it."""

    @abstractmethod
    def _prepare(self) -> Relaunch:
        """Choose the next try; what to ask of the engine for it. Sets what watches it."""

    @abstractmethod
    def _tell(self, tried: Tried) -> None:
        """A try went like that."""

    @property
    def progress(self) -> Progress:
        """How far the try under way has got, while its run goes."""
        return self._watch.progress(self._now)

    def begin(self, newest_run: int) -> list[Command]:
        """Make the next try after the run of that number; also after :meth:`stop`. What to ask of the engine."""
        self.stopped = None
        self._run = newest_run + 1
        return self._start()

    def stop(self, why: Why = Why.INTERRUPTED, detail: str = "", held: Held | None = None) -> None:
        """Make no further try; the run that goes is left going."""
        self.phase, self.stopped = Phase.DONE, Stopped(why, detail, held)

    def take(self, event: Event) -> list[Command]:
        """The session's next event; what to ask of the engine now."""
        self._now = max(self._now, event.t)
        if self.phase is Phase.STARTING:
            self._await(event)
        elif self.phase is Phase.RUNNING:
            return self._follow(event)
        elif self.phase is Phase.ENDING:
            self._see(event)
            ended = isinstance(event, Stopping) and event.phase in ("released", "held")
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
        """Until the try's own run begins."""
        match event:
            case Run() if event.run == self._run and event.settings == self._asked.settings:
                self.phase = Phase.RUNNING
                self._watch.take(event)
            case Run():
                self.stop(Why.OTHER_RUN)
            case Stopping(phase="held"):
                self.stop(Why.MEMORY_HELD, held=event.held)
            case Notice(kind=NoticeKind.NOT_RELAUNCHED):
                self.stop(Why.NOT_STARTED, event.detail)
            case _:
                pass

    def _follow(self, event: Event) -> list[Command]:
        match event:
            case Run():
                self.stop(Why.OTHER_RUN)
                return []
            case Stopping(phase="term" | "kill"):
                self.stop(Why.RUN_ENDED)
                return []
        self._see(event)
        if isinstance(event, RunEnd):
            return self._over()
        if self._watch.over(self._now):
            self.phase = Phase.ENDING
            return [Stop(grace_s=GRACE_S)]
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
        """The try under way has ended: it is judged as soon as what it recorded has been replayed."""
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
        """Of the try under way, bytes; ``None`` without one."""
        return self.plan.largest


class SessionFit(SessionTries):
    """The search for the smallest limit."""

    def __init__(self, plan: Plan) -> None:
        super().__init__(plan)
        self.search: Search = plan.search()
        self.limit: int | None = None
        """Of the try under way, bytes; ``None`` without one."""

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
        return Relaunch(argv=self.plan.command, settings=settings, grace_s=GRACE_S, trace=self._watch.traces)

    def _tell(self, tried: Tried) -> None:
        self.search.tell(tried)

    def _limit(self) -> int | None:
        return self.limit
