"""The search for the smallest limit in a session: at most one at a time. Its last result stays until the next."""

from collections.abc import Callable

from tfmemtop.events import Command, Event
from tfmemtop.fit.plan import Plan
from tfmemtop.fit.session import SessionFit
from tfmemtop.fit.stopped import Why
from tfmemtop.session.next_run import NextRun
from tfmemtop.suggested import SuggestedLimit


class Fitting:
    """Takes the session's events, sends what the search asks for.

    Relaunching during a search changes the next run. When the search is over, the next run is again as the
    user had chosen it.
    """

    def __init__(self, *, send: Callable[[Command], None], choose: Callable[[NextRun], None]) -> None:
        self._send = send
        self._choose = choose
        self.search: SessionFit | None = None
        """The newest search, or the one under way."""
        self._before: NextRun | None = None  # what R would have started

    @property
    def going(self) -> bool:
        """Whether tries are being made."""
        return self.search is not None and self.search.going

    def suggested(self, upcoming: NextRun) -> SuggestedLimit | None:
        """The limit that the newest search has found, if it was for the command of *upcoming*."""
        search = self.search
        if search is None or tuple(search.plan.command) != upcoming.argv:
            return None
        found = search.plan.suggested(search.search)
        return found.under(upcoming.settings.growth) if found else None

    def begin(self, plan: Plan, upcoming: NextRun, newest_run: int) -> None:
        """Start a search. *upcoming* is the next run as the user has it now."""
        self._before = upcoming
        self.search = SessionFit(plan)
        self.go_on(newest_run)

    def go_on(self, newest_run: int) -> None:
        """Make the next try of a search that has not come to its end."""
        if self.search is not None:
            self._send_all(self.search.begin(newest_run))

    def stop(self) -> None:
        """Make no further try. The run under way is left running."""
        if self.search is not None and self.search.going:
            self.search.stop()
            self._over()

    def take(self, event: Event) -> None:
        """The session's next event."""
        search = self.search
        if search is None or not search.going:
            return
        self._send_all(search.take(event))
        if not search.going:
            self._over()

    def engine_went(self) -> None:
        """No further try can be made."""
        if self.search is not None and self.search.going:
            self.search.stop(Why.ENGINE_GONE)

    def _send_all(self, commands: list[Command]) -> None:
        for command in commands:
            self._send(command)

    def _over(self) -> None:
        if self._before is not None:
            self._choose(self._before)
