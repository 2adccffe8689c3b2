"""The searches of a session: for the smallest limit, or for the largest value of a number in the command.

At most one search runs at a time. Its result stays until the next search begins.
"""

import asyncio
from collections.abc import Callable

from tfmemtop.events import Command, Event, Run
from tfmemtop.experiments.fit.largest import Prediction
from tfmemtop.experiments.fit.plan import Plan
from tfmemtop.experiments.fit.session import Phase, SessionFit, SessionTries
from tfmemtop.experiments.fit.session_largest import SessionLargest
from tfmemtop.experiments.fit.stopped import Why
from tfmemtop.experiments.session.next_run import NextRun
from tfmemtop.experiments.session.whatif import expect
from tfmemtop.experiments.whatif.expected import Expectations
from tfmemtop.failure import facts_of
from tfmemtop.suggested import SuggestedLimit


class Fitting:
    """Passes the session's events to a search, and sends the search's commands to the engine.

    Each try of a search changes the settings of the next run. When the search is over, the next run is again as the
    user had chosen it.
    """

    def __init__(self, *, send: Callable[[Command], None], choose: Callable[[NextRun], None]) -> None:
        self._send = send
        self._choose = choose
        self.search: SessionTries | None = None
        """The search that is running, else the newest one that has ended; ``None`` before the first."""
        self._expectations = Expectations("")
        self._asking: asyncio.Task[None] | None = None
        self._before: NextRun | None = None  # the next run as it was before the search

    @property
    def going(self) -> bool:
        """Whether tries are being made."""
        return self.search is not None and self.search.going

    def suggested(self, upcoming: NextRun) -> SuggestedLimit | None:
        """Return the limit that the newest search has found; ``None`` if it found none or was for another command.

        *upcoming* is the next run, whose command and growth are used.
        """
        search = self.search
        if not isinstance(search, SessionFit) or tuple(search.plan.command) != upcoming.argv:
            return None
        found = search.plan.suggested(search.search)
        return found.under(upcoming.settings.growth) if found else None

    def begin(self, plan: Plan, upcoming: NextRun, newest_run: int) -> None:
        """Start a search. *upcoming* is the next run as the user has it now, *newest_run* the last run's number."""
        self._before = upcoming
        self.search = SessionFit(plan) if plan.wanted is None else SessionLargest(plan, plan.wanted)
        self._expectations = Expectations(plan.kind)
        self.go_on(newest_run)

    def go_on(self, newest_run: int) -> None:
        """Start the next try of a search that is new or has been stopped. *newest_run* is the last run's number."""
        if self.search is not None:
            self._send_all(self.search.begin(newest_run))

    def stop(self) -> None:
        """End the search. The run of its current try goes on."""
        if self.search is not None and self.search.going:
            self.search.stop()
            self._ask_no_more()
            self._over()

    def take(self, event: Event) -> None:
        """Pass *event*, the session's next one, to the search."""
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
        """Replay the tries made so far with other values, and give the search what the replay predicts."""
        prediction = None
        try:
            prediction = await self._prediction(search)
        except Exception as error:  # the search goes on without a prediction, and reports this at its end
            search.search.trouble = facts_of(error)
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
        """Cancel a prediction that is being computed: if it came late, it would be used for a later try."""
        if self._asking is not None:
            self._asking.cancel()
            self._asking = None

    def engine_went(self) -> None:
        """End the search, since no further try can be made without the engine."""
        if self.search is not None and self.search.going:
            self.search.stop(Why.ENGINE_GONE)
            self._ask_no_more()

    def _send_all(self, commands: list[Command]) -> None:
        for command in commands:
            self._send(command)

    def _over(self) -> None:
        if self._before is not None:
            self._choose(self._before)
