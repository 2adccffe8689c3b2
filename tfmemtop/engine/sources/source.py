"""The base class of all sources: what reads something and publishes events while a session is watched."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from tfmemtop.engine.stream.stream import Stream
from tfmemtop.events import Event

Send = Callable[[int, dict[str, Any]], object]
"""A function that sends a command to the hooks of a process."""


class Source:
    """A part of a watch, which publishes events on *stream*. It overrides what it needs. Create it in the running loop.

    A watch begins its parts in one order, drains them in the same order, and closes them in the opposite order.
    """

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._tasks: list[asyncio.Task[None]] = []

    def begin(self) -> None:
        """Start, and follow the stream."""
        self._stream.listen(self.on_event)

    def on_event(self, event: Event) -> None:
        """Handle an event of the stream."""

    def drain(self) -> None:
        """Publish what has arrived until now, so that the end of a run is published after it."""

    def close(self) -> None:
        """Stop, and publish nothing more."""
        self._stream.forget(self.on_event)
        for task in self._tasks:
            task.cancel()

    def _keep_doing(self, work: Coroutine[None, None, None]) -> None:
        """Do *work* beside all else, until this source is closed."""
        self._tasks.append(asyncio.get_running_loop().create_task(work))
