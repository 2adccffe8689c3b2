"""The search for the smallest limit in a session: at most one at a time. Its last result stays until the next."""

import asyncio
from collections.abc import Callable

from tfmemtop.events import Command, Event, Run
from tfmemtop.fit.largest import Prediction
from tfmemtop.fit.plan import Plan
from tfmemtop.fit.session import Phase, SessionFit, SessionTries
from tfmemtop.fit.session_largest import SessionLargest
from tfmemtop.fit.stopped import Why
from tfmemtop.session.next_run import NextRun
from tfmemtop.session.whatif import expect
from tfmemtop.suggested import SuggestedLimit
from tfmemtop.whatif.expected import Expectations
from tfmemtop.words.failure import describe


class Fitting:
    """Takes the session's events, sends what the search asks for.

    Relaunching during a search changes the next run. When the search is over, the next run is again as the
    user had chosen it.
    """

    def __init__(self, *, send: Callable[[Command], None], choose: Callable[[NextRun], None]) -> None:
        self._send = send
        self._choose = choose
        self.search: SessionTries | None = None
        """The newest search, or the one under way."""
        self._expectations = Expectations("")
        self._asking: asyncio.Task[None] | None = None
        self._before: NextRun | None = None  # what R would have started

    @property
    def going(self) -> bool:
        """Whether tries are being made."""
        return self.search is not None and self.search.going

    def suggested(self, upcoming: NextRun) -> SuggestedLimit | None:
        """The limit that the newest search has found, if it was for the command of *upcoming*."""
        search = self.search
        if not isinstance(search, SessionFit) or tuple(search.plan.command) != upcoming.argv:
            return None
        found = search.plan.suggested(search.search)
        return found.under(upcoming.settings.growth) if found else None

    def begin(self, plan: Plan, upcoming: NextRun, newest_run: int) -> None:
        """Start a search. *upcoming* is the next run as the user has it now."""
        self._before = upcoming
        self.search = SessionFit(plan) if plan.wanted is None else SessionLargest(plan, plan.wanted)
        self._expectations = Expectations(plan.kind)
        self.go_on(newest_run)

    def go_on(self, newest_run: int) -> None:
        """Make the next try of a search that has not come to its end."""
        if self.search is not None:
            self._send_all(self.search.begin(newest_run))

    def stop(self) -> None:
        """Make no further try. The run under way is left running."""
        if self.search is not None and self.search.going:
            self.search.stop()
            self._ask_no_more()
            self._over()

    def take(self, event: Event) -> None:
        """The session's next event."""
        search = self.search
        if search is None or not search.going:
            return
        if isinstance(search, SessionLargest):
            if isinstance(event, Run):
                self._expectations.begin()
            self._expectations.take(event)
        before = search.phase
        self._send_all(search.take(event))
        if search.phase is Phase.PREDICTING is not before and isinstance(search, SessionLargest):
            self._expectations.passed(search.value)
            self._asking = asyncio.ensure_future(self._predict(search))
        if not search.going:
            self._ask_no_more()
            self._over()

    async def _predict(self, search: SessionLargest) -> None:
        """Have the tries up to now replayed with other values."""
        prediction = None
        try:
            prediction = await self._prediction(search)
        except Exception as error:  # the search goes on without it, and says so at its end
            search.search.trouble = describe(error)
        self._asking = None
        self._send_all(search.predicted(prediction))
        if not search.going and search is self.search:
            self._over()

    async def _prediction(self, search: SessionLargest) -> Prediction | None:
        wanted, limit = search.search.wanted, search.search.limit
        asked = None if limit is None else self._expectations.request(limit, wanted.lowest, wanted.highest)
        found = None if asked is None else await expect(asked)
        return None if found is None else Prediction(found.surely, found.likely, found.at_most, found.values)

    def _ask_no_more(self) -> None:
        """An answer that comes late would be taken for that of a later try."""
        if self._asking is not None:
            self._asking.cancel()
            self._asking = None

    def engine_went(self) -> None:
        """No further try can be made."""
        if self.search is not None and self.search.going:
            self.search.stop(Why.ENGINE_GONE)
            self._ask_no_more()

    def _send_all(self, commands: list[Command]) -> None:
        for command in commands:
            self._send(command)

    def _over(self) -> None:
        if self._before is not None:
            self._choose(self._before)
