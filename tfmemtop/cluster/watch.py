"""Sends the queries at regular intervals, and returns the rows after each answer."""

import asyncio
import time
from collections.abc import AsyncIterator

import msgspec
from msgspec.structs import replace

from tfmemtop.cluster.answers import Rows
from tfmemtop.cluster.client import SLOW_S, NoAnswer, PrometheusClient, Queries, in_thread
from tfmemtop.cluster.rows import ClusterRow, Kind
from tfmemtop.safe import safe
from tfmemtop.units import counted

FAST = ("in_use", "used", "busy", "finding", "ended", "unread", "down")
SLOW = ("limit", "total", "info", "run", "starting", "old", "pace")
SHARE = 0.1
"""The largest share of the time in which Prometheus is busy for us. If its answers take long, we query less often."""


class Seen(msgspec.Struct, frozen=True, dict=True):
    """What is known after an answer, or after a query without an answer.

    ``at`` is the time of the figures by the server's clock, ``answered`` that of the newest answer by this machine's;
    ``trouble`` has lasted since ``since``; all in seconds since 1970. ``complete``: each query
    has been answered at least once.
    """

    rows: tuple[ClusterRow, ...] = ()
    at: float = 0.0
    trouble: NoAnswer | None = None
    since: float = 0.0
    complete: bool = False
    answered: float = 0.0

    @property
    def totals(self) -> str:
        """The totals: ``8,000 rows on 1,000 hosts, 12 jobs; something is wrong with 3``."""
        jobs = len({row.job for row in self.rows if row.rank})
        wrong = sum(row.worst < Kind.GONE for row in self.rows)
        told = f"{counted(len(self.rows), 'row')} on {counted(len({row.host for row in self.rows}), 'host')}"
        told += f", {counted(jobs, 'job')}" * bool(jobs)
        return f"{told}; something is wrong with {wrong:,}" if wrong else f"{told}; nothing is wrong"


def no_answer(url: str, trouble: NoAnswer) -> str:
    """Return why Prometheus at *url* does not answer, as one clause."""
    return f"Prometheus at {safe(url)}: {trouble}"


def nothing_of(job: str | None) -> str:
    """Return the text for no rows at all, and what would bring some."""
    if job is not None:
        return f"Prometheus has no figures of tfmemtop for job {safe(job)}"
    needed = "its targets must be programs started with --metrics; see tfmemtop help cluster"
    return f"Prometheus has no figures of tfmemtop: {needed}"


class Asking:
    """Sends the queries, and stores the answers. The calls block; only one thread at a time may call."""

    def __init__(self, client: PrometheusClient, job: str | None = None) -> None:
        self.client = client
        self.seen = Seen()
        self._queries = Queries(job)
        self._rows = Rows(job)
        self._slow_at = -SLOW_S  # when the slow query was answered, by this machine's monotonic clock
        self._met: set[tuple[str, ...]] = set()  # the pools and GPUs of which there were figures at the last answer

    def refresh(self) -> Seen:
        """Send the query for what changes at any time, or if it is due, the other; return what is known then.

        The first two calls send one each; after that, a call sends the first, and the other once in ``SLOW_S`` seconds.
        """
        try:
            if not self.seen.answered or self.seen.complete:
                self._take(self._queries.fast(), FAST)
            if self.seen.answered and time.monotonic() - self._slow_at >= SLOW_S:
                self._take(self._queries.slow(), SLOW)
                self._slow_at = time.monotonic()
                self.seen = replace(self.seen, complete=True)
        except NoAnswer as trouble:
            since = self.seen.since if self.seen.trouble is not None else time.time()
            self.seen = replace(self.seen, trouble=trouble, since=since)
        return self.seen

    def _take(self, query: str, means: tuple[str, ...]) -> None:
        answer = self.client.query(query)
        now = answer.server_time or time.time()
        self._rows.take(means, answer.series(), now)
        if self._rows.present - self._met and self.seen.complete:
            self._slow_at = -SLOW_S  # the limits and users of the new ones are due
        self._met = self._rows.present
        self.seen = Seen(self._rows.rows(), now, None, 0.0, self.seen.complete, time.time())


class ClusterWatch:
    """Runs an :class:`Asking` for an event loop."""

    def __init__(self, asking: Asking, interval_s: float = 5.0) -> None:
        self.client = asking.client
        self.interval_s = interval_s
        self._asking = asking
        self._wake = asyncio.Event()

    def hurry(self) -> None:
        """Send the next queries now."""
        self._wake.set()

    async def seen(self) -> AsyncIterator[Seen]:
        """Yield what is known after each answer. If Prometheus does not answer, the queries go on at the same pace."""
        while True:
            begun = time.monotonic()
            now = await asyncio.wrap_future(in_thread(self._asking.refresh))
            yield now
            took_s = time.monotonic() - begun
            wait_s = max(self.interval_s - took_s, took_s * (1 / SHARE - 1))
            if now.trouble is None and not now.complete:
                continue
            self._wake.clear()
            try:
                await asyncio.wait_for(self._wake.wait(), wait_s)
            except asyncio.TimeoutError:
                pass
