"""A search whose tries are runs of a session. It receives the session's events and returns commands for the engine.

Pure.
"""

from tfmemtop import events
from tfmemtop.events.base import DescribedEnum
from tfmemtop.events.commands import TRY_GRACE_S
from tfmemtop.events.machine import is_pinned
from tfmemtop.experiments.fit.plan import Plan
from tfmemtop.experiments.fit.search import Trial
from tfmemtop.findings.rules.ending import still_held
from tfmemtop.findings.rules.notices import say

REPLAY_S = 60.0
"""Seconds that a replay may take after the end of a try, including the time to build its program."""

INTERRUPTED = "interrupted"
"""Why a search has stopped that the user has stopped."""


def memory_held(held: events.StillHeld) -> str:
    """Return why no further try is made while *held*, the memory of the last one, has not become free."""
    return f"the next try would not have had all the memory: {still_held(held)}"


class Phase(DescribedEnum):
    """The phase of a try."""

    STARTING = "starting", "waiting until the memory of the run before is free"
    RUNNING = "running"
    ENDING = "ending", "ending"
    REPLAYING = "replaying", "replaying its allocations"  # the try has ended
    DONE = "done"  # no try is under way


class SessionFit:
    """One search, from the first relaunch to its end, or until something stops it."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.search = plan.search()
        self.trial = Trial(None)
        """What the current try is made with, or the last one."""
        self.phase = Phase.DONE
        self.stopped = ""
        """Why the search stopped before its end; empty if it did not."""
        self.hint: events.HookAbsence | None = None
        """The reason why the hook was not loaded, if the last try showed no memory."""
        self._watch = plan.watch(self.search)
        self._run = 0
        self._now = 0.0
        self._ended = 0.0  # when the run of the current try ended
        self._unreplayed: set[tuple[int, str]] = set()  # pools whose trace is complete
        self._traced: dict[tuple[int, str], int] = {}  # by pool: the events of its trace

    @property
    def going(self) -> bool:
        """Whether the search still makes tries."""
        return self.phase is not Phase.DONE

    @property
    def can_go_on(self) -> bool:
        """Whether the search has stopped before its end, so that it can be continued."""
        return not self.going and self.search.next() is not None

    @property
    def number(self) -> int:
        """The number of the current try, or of the last one; the first is 1."""
        return len(self.search.tried) + self.going

    @property
    def progress(self) -> str:
        """How far the current try has come."""
        return self._watch.progress(self._now) if self.phase is Phase.RUNNING else self.phase.text

    def begin(self, newest_run: int) -> list[events.Command]:
        """Begin the search, or continue it after :meth:`stop`; return the commands for the engine.

        *newest_run* is the number of the session's newest run. The next try is the run after it.
        """
        self.stopped = ""
        self._run = newest_run
        return self._go_on()

    def stop(self, why: str = INTERRUPTED) -> None:
        """Make no further try. A run that is under way is not ended."""
        self.phase, self.stopped = Phase.DONE, why

    def take(self, event: events.Event) -> list[events.Command]:
        """Process the session's next event, and return the commands for the engine."""
        self._now = max(self._now, event.t)
        if self.phase is Phase.STARTING:
            self._await(event)
        elif self.phase is Phase.RUNNING:
            return self._follow(event)
        elif self.phase is Phase.ENDING:
            self._see(event)
            ended = isinstance(event, events.Stopping) and event.phase in (
                events.StoppingPhase.RELEASED,
                events.StoppingPhase.HELD,
            )
            if isinstance(event, events.RunEnd) or ended:
                return self._over()
        elif self.phase is Phase.REPLAYING:
            self._see(event)
            if isinstance(event, events.Run):
                self.stop("another run was started meanwhile")
            elif not self._unreplayed or self._now > self._ended + REPLAY_S:
                return self._judge()
        return []

    def _go_on(self) -> list[events.Command]:
        """Make the next try, if one is worth it."""
        trial = self.search.next()
        if trial is None:
            self.phase = Phase.DONE
            return []
        self.trial, self.phase = trial, Phase.STARTING
        self._run += 1
        self._unreplayed = set()
        self._watch = self.plan.watch(self.search)
        argv, settings = self.plan.argv(trial.value), self.plan.settings_of(trial.limit)
        return [events.Relaunch(argv=argv, settings=settings, grace_s=TRY_GRACE_S)]

    def _await(self, event: events.Event) -> None:
        """Process an event while the try's own run has not begun."""
        match event:
            case events.Run() if event.run == self._run and event.settings == self.plan.settings_of(self.trial.limit):
                self.phase = Phase.RUNNING
                self._watch.take(event)
            case events.Run():
                self.stop("another run was started meanwhile")
            case events.Stopping(phase=events.StoppingPhase.HELD, held=events.StillHeld() as held):
                self.stop(memory_held(held))
            case events.Notice(kind=events.NoticeKind.NOT_RELAUNCHED):
                self.stop(say(event).text)
            case _:
                pass

    def _follow(self, event: events.Event) -> list[events.Command]:
        match event:
            case events.Run():
                self.stop("another run was started meanwhile")
                return []
            case events.Stopping(phase=events.StoppingPhase.TERM | events.StoppingPhase.KILL):
                self.stop("the run was ended by hand")
                return []
        self._see(event)
        if isinstance(event, events.RunEnd):
            return self._over()
        if self._watch.over(self._now):
            self.phase = Phase.ENDING
            return [events.Stop(grace_s=TRY_GRACE_S)]
        return []

    def _see(self, event: events.Event) -> None:
        self._watch.take(event)
        if isinstance(event, events.Trace) and not is_pinned(event.device):
            pool = event.pid, event.device
            self._traced[pool] = (self._traced.get(pool, 0) if event.part else 0) + event.events
            if event.last:
                self._unreplayed.add(pool)
        elif isinstance(event, events.Replayed):
            pool = event.pid, event.device
            if event.is_missing or event.events >= self._traced.get(pool, 0):  # else the trace has gone on
                self._unreplayed.discard(pool)

    def _over(self) -> list[events.Command]:
        """Process the end of the current try. It is judged as soon as its recorded allocations have been replayed."""
        if not self._unreplayed:
            return self._judge()
        self.phase, self._ended = Phase.REPLAYING, self._now
        return []

    def _judge(self) -> list[events.Command]:
        tried = self._watch.outcome(self.trial, self._now)
        self.search.tell(tried)
        self.hint = self._watch.hook_absence if tried.peak_in_use is None else None
        if self._watch.held:
            self.stop(memory_held(self._watch.held))
            return []
        return self._go_on()
