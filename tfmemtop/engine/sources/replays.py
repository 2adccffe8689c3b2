"""Replays the recorded allocations of a process under other settings, by a worker process beside the script."""

import asyncio
import os
from contextlib import suppress

import msgspec

from tfmemtop import boot
from tfmemtop.engine.sources.source import Source, helper_output
from tfmemtop.engine.stream import Stream
from tfmemtop.events import Event, Replayed, Run, RunEnd, Trace, Unreplayed
from tfmemtop.events.machine import is_pinned

_LONGEST_S = 700.0  # for one replay, including the build of the program
_MOST = 8  # pools of one run
_REST = 20
"""A factor. While the run goes on, no other replay of a pool follows for this times as long as the last one took: the
trace of a leak goes on often."""

_Pool = tuple[int, str]  # process and device


class Replays(Source):
    """Publishes :class:`Replayed` for each pool whose trace is complete, one after the other, and again if it goes on.

    Its worker has the lowest priority, and ends with this process.
    """

    def __init__(self, stream: Stream, sessions: set[int]) -> None:
        """The process session (``setsid``) of each worker is added to *sessions*."""
        super().__init__(stream)
        self._sessions = sessions
        self._waiting: dict[_Pool, list[Event]] = {}  # what was known as the trace was complete, or as it went on
        self._pools: set[_Pool] = set()
        self._over = False  # whether the run has ended
        self._changed = asyncio.Event()

    def on_event(self, event: Event) -> None:
        """Handle an event of the stream."""
        if isinstance(event, Run):
            self._pools.clear()
            self._over = False
        elif isinstance(event, RunEnd):
            self._over = True
            self._changed.set()
        elif isinstance(event, Trace) and event.last and not is_pinned(event.device):
            # No setting of tfmemtop changes a pinned pool.
            pool = event.pid, event.device
            if pool not in self._pools and len(self._pools) >= _MOST:
                return
            self._pools.add(pool)
            self._waiting[pool] = self._stream.backlog.events()
            self._changed.set()
            if not self._tasks:
                self._keep_doing(self._replay())

    async def _replay(self) -> None:
        due: dict[_Pool, float] = {}  # when a pool that was replayed may be again, in seconds of the session
        while True:
            self._changed.clear()
            pool = min(self._waiting, key=lambda one: due.get(one, 0.0), default=None)
            rest_s = 0.0 if pool is None or self._over else due.get(pool, 0.0) - self._stream.now()
            if pool is None or rest_s > 0:
                with suppress(asyncio.TimeoutError):
                    await asyncio.wait_for(self._changed.wait(), rest_s or None)
                continue
            pid, device = pool
            began = self._stream.now()
            asked = await asyncio.to_thread(_request, self._waiting.pop(pool), pid, device)
            if asked is None:
                continue
            answer, now = await self._ask(asked), self._stream.now()
            self._stream.publish(msgspec.structs.replace(answer, t=now, pid=pid, device=device))
            due[pool] = now + _REST * (now - began)

    async def _ask(self, asked: bytes) -> Replayed:
        """Start a worker that replays *asked*, and return its answer."""
        from tfmemtop.experiments.session.whatif import WORKER, answer  # it takes a while to load; see _request

        try:
            with os.fdopen(os.memfd_create("tfmemtop-replay"), "w+b") as file:
                file.write(asked)
                file.seek(0)
                output = await helper_output(boot.command(WORKER), _LONGEST_S, self._sessions, file)
                slow = _without(Unreplayed.SLOW, count=round(_LONGEST_S))
                return slow if output is None else answer(output)
        except OSError as error:
            return _without(Unreplayed.NOT_STARTED, str(error))


def _request(known: list[Event], pid: int, device: str) -> bytes | None:
    """Return what the worker is asked about a trace; ``None`` if it is not known which TensorFlow to use."""
    from tfmemtop.experiments.session.whatif import traced  # it takes a while to load
    from tfmemtop.state import State, apply

    state = State()
    for event in known:
        apply(state, event)
    pools = (pool for pool in traced(state) if (pool.pid, pool.device) == (pid, device) and pool.asked.version)
    return next((pool.asked.request(pool.parts) for pool in pools), None)


def _without(why: Unreplayed, detail: str = "", count: int | None = None) -> Replayed:
    """Return an answer without a table, still without time, process and device."""
    return Replayed(t=0.0, pid=0, device="", unreplayed=why, detail=detail, count=count)
