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
_REST = 20  # times as long as a replay took, no other of its pool follows while the run goes on


class Replays(Source):
    """Publishes :class:`Replayed` for each pool whose trace is complete, one after the other, and again if it goes on.

    Its worker has the lowest priority, and ends with this process.
    """

    def __init__(self, stream: Stream, sessions: set[int]) -> None:
        """The process session (``setsid``) of each worker is added to *sessions*."""
        super().__init__(stream)
        self._sessions = sessions
        # By process and device: the events that were known as the trace was complete, or as it went on.
        self._waiting: dict[tuple[int, str], list[Event]] = {}
        self._came = asyncio.Event()
        self._pools: set[tuple[int, str]] = set()
        self._over = asyncio.Event()

    def on_event(self, event: Event) -> None:
        """Handle an event of the stream."""
        if isinstance(event, Run):
            self._pools.clear()
            self._over.clear()
        elif isinstance(event, RunEnd):
            self._over.set()
        elif isinstance(event, Trace) and event.last and not is_pinned(event.device):
            # No setting of tfmemtop changes a pinned pool.
            pool = event.pid, event.device
            if pool not in self._pools and len(self._pools) >= _MOST:
                return
            self._pools.add(pool)
            self._waiting[pool] = self._stream.backlog.events()
            self._came.set()
            if not self._tasks:
                self._keep_doing(self._replay())

    async def _replay(self) -> None:
        took_s: dict[tuple[int, str], float] = {}
        while True:
            await self._came.wait()
            self._came.clear()
            while self._waiting:
                pid, device = pool = min(self._waiting, key=lambda one: one in took_s)
                if pool in took_s:  # a leak's trace goes on often
                    with suppress(asyncio.TimeoutError):
                        await asyncio.wait_for(self._over.wait(), _REST * took_s[pool])
                began = self._stream.now()
                asked = await asyncio.to_thread(_request, self._waiting.pop(pool), pid, device)
                if asked is not None:
                    answer = await self._ask(asked)
                    self._stream.publish(msgspec.structs.replace(answer, t=self._stream.now(), pid=pid, device=device))
                    took_s[pool] = self._stream.now() - began

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
