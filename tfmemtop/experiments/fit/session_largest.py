"""The search for the largest value of a number in the command, whose tries are runs of a session. Pure."""

from tfmemtop.events import Allocator, Command, Event, Relaunch
from tfmemtop.events.commands import TRY_GRACE_S
from tfmemtop.experiments.fit.largest import LargestSearch, Prediction, TriedValue, Wanted
from tfmemtop.experiments.fit.plan import Plan
from tfmemtop.experiments.fit.search import Tried
from tfmemtop.experiments.fit.session import Phase, SessionTries


class SessionLargest(SessionTries):
    """The search for the largest value. After each try that passed and was replayed, it waits for :meth:`predicted`."""

    def __init__(self, plan: Plan, wanted: Wanted) -> None:
        super().__init__(plan)
        self.search = LargestSearch(wanted, plan.tries)
        self.value = 0
        """The value of the current try."""
        self._limits: list[int] = []  # the limits that the allocator reports, for tries without a given limit

    @property
    def done(self) -> int:
        return len(self.search.tried)

    def has_next(self) -> bool:
        return self.search.next() is not None

    @property
    def command(self) -> list[str]:
        """The command with the value that was found; unchanged if none was found."""
        works = self.search.works
        return self.plan.command if works is None else self.search.wanted.placed(self.plan.command, works)

    def predicted(self, prediction: Prediction | None) -> list[Command]:
        """Receive what the replays of the tries predict (``None``: nothing); return the commands for the engine."""
        if self.phase is not Phase.PREDICTING:
            return []
        if prediction is not None:
            self.search.expect(prediction)
        return self._go_on()

    def take(self, event: Event) -> list[Command]:
        if isinstance(event, Allocator) and event.device.startswith(self.plan.kind) and event.limit is not None:
            self._limits.append(event.limit)
        return super().take(event)

    def _prepare(self) -> Relaunch:
        self.value = self.search.next() or self.value
        self._watch = self.plan.watch(None, traces=True)
        self._limits = []
        argv = self.search.wanted.placed(self.plan.command, self.value)
        settings = self.plan.settings_of(self.plan.largest)
        return Relaunch(argv=argv, settings=settings, grace_s=TRY_GRACE_S, trace=True)

    def _tell(self, tried: Tried) -> None:
        limit = self.plan.largest or max(self._limits, default=None)
        self.search.tell(TriedValue(self.value, tried, limit))
        if tried.passed and tried.at_least is not None and self.has_next():
            self.phase = Phase.PREDICTING
