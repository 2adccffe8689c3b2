"""Asks at a pace of its own, in a thread, and hands out an overview after each answer."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

from tfmemtop.cluster.answers import series
from tfmemtop.cluster.client import Answer, Client, NoAnswer
from tfmemtop.cluster.judge import Overview, overview
from tfmemtop.cluster.overview import Cluster
from tfmemtop.cluster.queries import Lane, Queries

SHARE = 0.1
"""Of its time that Prometheus may be busy for us: where its answers take long it is asked less often."""
APART_S = 5.0
"""Clocks that differ by more are told of."""

NOTHING = Overview()

T = TypeVar("T")


@dataclass(frozen=True)
class Seen:
    """What is known after an answer, or after there was none.

    ``trouble`` has lasted since ``since`` (seconds since 1970, this machine's clock). ``apart_s`` is how far the
    server's clock is ahead of this machine's, ``None`` where that is not known or does not matter. ``complete`` once
    each query has been answered. ``answered`` is when the newest answer came, by this machine's clock.
    """

    overview: Overview = NOTHING
    trouble: NoAnswer | None = None
    since: float = 0.0
    apart_s: float | None = None
    complete: bool = False
    answered: float = 0.0
    asked: int = 0
    """Queries so far."""


class Asking:
    """Decides what to ask next, asks, and keeps what came. Blocks; used by one thread at a time."""

    def __init__(self, client: Client, job: str | None = None) -> None:
        self.client = client
        self._queries = Queries(job)
        self._cluster = Cluster(job)
        self._answered: dict[Lane, float] = {}
        self._early: Future[Answer] | None = None
        self.seen = Seen()

    def begin(self) -> None:
        """Ask the first query already, in a thread, while the rest of the program is loaded."""
        early: Future[Answer] = Future()
        self._early = early

        def ask() -> None:
            try:
                early.set_result(self.client.query(self._queries.of(Lane.FIGURES)))
            except BaseException as error:
                early.set_exception(error)

        threading.Thread(target=ask, daemon=True, name="prometheus").start()

    def refresh(self) -> Iterator[Seen]:
        """Ask three queries at most. What is known after the last, and at first after each of them."""
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
        """The two that are always asked, and of the others the one that is the most overdue."""
        late = {lane: now - self._answered.get(lane, -1e9) - lane.every_s for lane in Lane if lane.every_s}
        slow = [lane for lane in late if late[lane] >= 0]
        return [Lane.FIGURES, Lane.STATE, *sorted(slow, key=lambda lane: -late[lane])[:1]]

    def _ask(self, lane: Lane) -> Answer | None:
        """The answer, which has been taken in; ``None`` if there is none, and then ``seen`` says why."""
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
        return answer

    def _answer(self, lane: Lane) -> Answer:
        return self.client.query(self._queries.of(lane, self._cluster.down))

    def _known(self, newest: Answer) -> Seen:
        ahead_s = newest.ahead_s
        return Seen(
            overview=overview(self._cluster, newest.server_time or time.time()),
            apart_s=ahead_s if ahead_s is not None and abs(ahead_s) > APART_S else None,
            complete=self._cluster.known >= set(Lane),
            answered=time.time(),
            asked=self.seen.asked,
        )


class Watch:
    """An :class:`Asking` for an event loop."""

    def __init__(self, asking: Asking, interval_s: float = 5.0) -> None:
        self.client = asking.client
        self.interval_s = interval_s
        self._asking = asking
        self._wake = asyncio.Event()
        self._closed = False

    def hurry(self) -> None:
        """Ask now."""
        self._wake.set()

    async def seen(self) -> AsyncIterator[Seen]:
        """What is known, after each answer. While Prometheus does not answer it is asked at the same pace."""
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
                wait_s = 0.0  # what is slow to change is asked one by one
            self._wake.clear()
            try:
                await asyncio.wait_for(self._wake.wait(), wait_s)
            except asyncio.TimeoutError:
                pass

    def close(self) -> None:
        """Ask no more. The iteration ends."""
        self._closed = True
        self._wake.set()


async def in_thread(work: Callable[[], T]) -> T:
    """The result of *work*, done in a thread that nobody waits for at the end: a server may hang."""
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
