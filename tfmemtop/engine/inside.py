"""The engine of a session that only watches. It runs in the process of its screen.

Such a session starts nothing, and no part of it outlives the screen. So it needs no separate engine process, no
pseudo-terminal and no keeper. One Python process takes less memory than three. Everything else is the same: this engine
serves the same socket, other screens find it, and it can read a process from outside.
"""

import asyncio
import threading
from concurrent.futures import Future
from typing import Any

from tfmemtop.engine.engine import Engine
from tfmemtop.engine.opening import begin_to_forget, serve
from tfmemtop.engine.process.launch import Launch, Launched
from tfmemtop.engine.stream.complaints import Stderr, complain, write_to
from tfmemtop.engine.stream.folders import SessionFolder

_ENDS_S = 5.0
"""How long the screen's process waits for the engine to end."""


class EngineInside:
    """An engine in a thread of this process, with an event loop of its own."""

    def __init__(self, launch: Launch) -> None:
        """The session of *launch* must end with its screen."""
        assert launch.ends_with_screen
        self._launch = launch
        self._answer: Future[Launched] = Future()
        # A daemon thread: the process does not wait for it when it ends.
        self._thread = threading.Thread(target=serve, args=(launch, self._session, self), name="engine", daemon=True)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._engine: Engine | None = None
        self._left = threading.Event()
        self.stderr = Stderr()

    def start(self) -> Launched:
        """Start the engine. When this returns, the engine serves screens, or the answer contains why it cannot."""
        self._thread.start()
        return self._answer.result()

    def end(self) -> None:
        """End the engine. When this returns, its folder is removed and its recording is complete, if nothing hangs."""
        self._left.set()
        if self._loop is not None and self._engine is not None:
            try:
                self._loop.call_soon_threadsafe(self._engine.leave)
            except RuntimeError:
                pass  # it has ended
        if self._thread.ident is not None:
            self._thread.join(_ENDS_S)
        self.stderr.give_back()

    @property
    def closed(self) -> bool:
        """Whether there is an answer already."""
        return self._answer.done()

    def give(self, launched: Launched) -> None:
        """Return *launched* from :meth:`start`."""
        self._answer.set_result(launched)

    async def _session(self, folder: SessionFolder) -> None:
        write_to(folder.log)
        self.stderr.lead_to(folder.log)
        self._loop = asyncio.get_running_loop()
        self._loop.set_exception_handler(_unforeseen)
        async with Engine(self._launch, folder) as engine:
            engine.begin()
            self._engine = engine
            self.give(Launched(id=folder.id, socket=str(folder.engine_socket), started=True))
            if not self._left.is_set():
                begin_to_forget()
                await engine.done()


def _unforeseen(_: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log an exception that no part of the engine has caught. asyncio would write it to stderr, over the screen."""
    complain(f"{context.get('message')}\n", context.get("exception"))
