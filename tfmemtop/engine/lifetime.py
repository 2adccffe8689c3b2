"""Decides when an engine ends that has a process of its own: some time after nobody needs it any more."""

import asyncio
import os

from tfmemtop.engine.sources.processes import session_of
from tfmemtop.engine.stream.server import Server
from tfmemtop.engine.watch import Watch

LINGER_S = 2.0
"""How long an engine waits for another reader once it is no longer needed."""
UNSEEN_S = 3600.0
"""How long an engine waits for a reader if the run ended while no screen was connected."""
UNREAD_S = 10.0
"""How long an engine that only watches waits for its first reader."""


class Lifetime:
    """Waits until the engine is no longer needed. *of_kernel*: the engine watches a Jupyter kernel.

    Create it in the running loop.
    """

    def __init__(self, watch: Watch, server: Server, *, of_kernel: bool) -> None:
        self._watch = watch
        self._server = server
        self._of_kernel = of_kernel
        self._over = asyncio.Event()
        self._linger: asyncio.TimerHandle | None = None
        self._seen_end = False  # whether a screen was connected when the newest run ended, or since then

    def end(self) -> None:
        """End the engine now."""
        self._over.set()

    async def over(self) -> None:
        """Wait until the engine is no longer needed."""
        await self._over.wait()

    def run_begins(self) -> None:
        """Note that a run has begun."""
        self._seen_end = False

    def consider(self, *, busy: bool) -> None:
        """End the engine after a while if no run goes on, no reader is connected, and the engine is not *busy*."""
        running = self._watch.runs.running
        if self._server.readers and not running:
            self._seen_end = True
        if self._server.readers or busy or running or self._left_behind():
            if self._linger is not None:
                self._linger.cancel()
                self._linger = None
        elif self._linger is None:
            self._linger = asyncio.get_running_loop().call_later(self._wait_s(), self.end)

    def _wait_s(self) -> float:
        if self._of_kernel:
            # The session remains in its recording. When Jupyter ends the kernel, no process of tfmemtop may be left.
            return LINGER_S
        if self._watch.runs.number and not self._seen_end:
            return UNSEEN_S
        return LINGER_S if self._server.ever else UNREAD_S

    def _left_behind(self) -> bool:
        """Return whether a process that the script left behind is in our process session.

        At the end of the engine, it would receive SIGHUP.
        """
        ours = os.getsid(0)
        return any(session_of(pid) == ours for pid in self._watch.readings.of_runs())
