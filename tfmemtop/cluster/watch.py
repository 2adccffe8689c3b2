"""Sends the queries at regular intervals, in a thread, and returns an overview after each answer."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Set
from concurrent.futures import Future
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

from tfmemtop.cluster.answers import series
from tfmemtop.cluster.client import Client, NoAnswer, ServerAnswer
from tfmemtop.cluster.judge import Overview, overview
from tfmemtop.cluster.overview import Cluster
from tfmemtop.cluster.queries import Lane, Queries

SHARE = 0.1
"""The largest share of the time in which Prometheus is busy for us. If its answers take long, we query less often."""
APART_S = 5.0
"""If the clocks differ by more than this many seconds, the user is told."""

NOTHING = Overview()

T = TypeVar("T")


@dataclass(frozen=True)
class Seen:
    """What is known after an answer, or after a query without an answer.

    ``trouble`` has lasted since ``since`` (seconds since 1970, this machine's clock). ``apart_s`` is how many seconds
    the server's clock is ahead of this machine's; it is ``None`` if that is not known or too little to matter.
    ``complete``: each query has been answered at least once. ``answered`` is the time of the newest answer, by this
    machine's clock.
    """

    overview: Overview = NOTHING
    trouble: NoAnswer | None = None
    since: float = 0.0
    apart_s: float | None = None
    complete: bool = False
    answered: float = 0.0
    asked: int = 0
    """The number of queries so far."""


class Asking:
    """Decides which query is next, sends it, and stores the answer.

    The calls block. Only one thread at a time may call.
    """

    def __init__(self, client: Client, job: str | None = None) -> None:
        self.client = client
        self._queries = Queries(job)
        self._cluster = Cluster(job)
        self._answered: dict[Lane, float] = {}
        self._met: Set[object] = set()  # the pools and GPUs of which there were figures at the last answer
        self._early: Future[ServerAnswer] | None = None
        self.seen = Seen()

    def begin(self) -> None:
        """Send the first query at once, in a thread, while the rest of the program is loaded."""
        early: Future[ServerAnswer] = Future()
        self._early = early

        def ask() -> None:
            try:
                early.set_result(self.client.query(self._queries.of(Lane.FIGURES)))
            except BaseException as error:
                early.set_exception(error)

        threading.Thread(target=ask, daemon=True, name="prometheus").start()

    def refresh(self) -> Iterator[Seen]:
        """Send at most three queries, and yield what is known after the last.

        Until each query has been answered once, yield after each answer.
        """
        due, complete = self._due(time.monotonic()), self.seen.complete
        for lane in due:
            now = self._ask(lane)
            if now is None:
                yield self.seen
                return
            if not complete or lane is due[-1]:
                self.seen = self._known(now)
                yield self.seen

    def _due(self, now: float) -> list[Lane]:
        """Return the two queries that are always sent, and of the others the one that is most overdue."""
        late = {lane: now - self._answered.get(lane, -1e9) - lane.every_s for lane in Lane if lane.every_s}
        slow = [lane for lane in late if late[lane] >= 0]
        return [Lane.FIGURES, Lane.STATE, *sorted(slow, key=lambda lane: -late[lane])[:1]]

    def _ask(self, lane: Lane) -> ServerAnswer | None:
        """Send the query, store the answer and return it; ``None`` if there is none, and ``seen`` has the reason."""
        self.seen = replace(self.seen, asked=self.seen.asked + 1)
        early, self._early = self._early, None
        try:
            answer = early.result() if early is not None else self._answer(lane)
            found = series(answer.body)
        except NoAnswer as trouble:
            since = self.seen.since if self.seen.trouble is not None else time.time()
            self.seen = replace(self.seen, trouble=trouble, since=since)
            return None
        self._cluster.take(lane, found, answer.server_time or time.time())
        self._answered[lane] = time.monotonic()
        met, self._met = self._met, self._cluster.present
        if not self._met <= met and Lane.FIXED in self._answered:
            # Its limit and its user are due now. They are not more urgent than what has been due for longer.
            self._answered[Lane.FIXED] = min(self._answered[Lane.FIXED], time.monotonic() - Lane.FIXED.every_s)
        return answer

    def _answer(self, lane: Lane) -> ServerAnswer:
        return self.client.query(self._queries.of(lane, self._cluster.down))

    def _known(self, newest: ServerAnswer) -> Seen:
        ahead_s = newest.ahead_s
        return Seen(
            overview=overview(self._cluster, newest.server_time or time.time()),
            apart_s=ahead_s if ahead_s is not None and abs(ahead_s) > APART_S else None,
            complete=self._cluster.known >= set(Lane),
            answered=time.time(),
            asked=self.seen.asked,
        )


class ClusterWatch:
    """Runs an :class:`Asking` for an event loop."""

    def __init__(self, asking: Asking, interval_s: float = 5.0) -> None:
        self.client = asking.client
        self.interval_s = interval_s
        self._asking = asking
        self._wake = asyncio.Event()
        self._closed = False

    def hurry(self) -> None:
        """Send the next queries now."""
        self._wake.set()

    async def seen(self) -> AsyncIterator[Seen]:
        """Yield what is known after each answer. If Prometheus does not answer, the queries go on at the same pace."""
        complete = False
        while not self._closed:
            begun = time.monotonic()
            refresh = self._asking.refresh()
            while (now := await in_thread(partial(next, refresh, None))) is not None:
                complete = now.complete
                yield now
                if self._closed:
                    return
            took_s = time.monotonic() - begun
            wait_s = max(self.interval_s - took_s, took_s * (1 / SHARE - 1) if complete else 0.0)
            if not complete and self._asking.seen.trouble is None:
                wait_s = 0.0  # the queries for what changes slowly are still to be sent, one per refresh
            self._wake.clear()
            try:
                await asyncio.wait_for(self._wake.wait(), wait_s)
            except asyncio.TimeoutError:
                pass

    def close(self) -> None:
        """Send no more queries. The iteration of :meth:`seen` ends."""
        self._closed = True
        self._wake.set()


async def in_thread(work: Callable[[], T]) -> T:
    """Return the result of *work*, which runs in a thread.

    The program does not wait for that thread at its end, because a server may hang.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def give(result: T | None, error: BaseException | None) -> None:
        if future.cancelled():
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(result)  # type: ignore[arg-type]

    def do() -> None:
        try:
            result, error = work(), None
        except BaseException as raised:
            result, error = None, raised
        try:
            loop.call_soon_threadsafe(give, result, error)
        except RuntimeError:
            pass  # the loop has ended

    threading.Thread(target=do, daemon=True, name="prometheus").start()
    return await future
