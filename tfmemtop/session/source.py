"""Where events come from, and the state into which they are folded."""

import asyncio
from collections.abc import AsyncIterator
from typing import Protocol

from tfmemtop.events import Command, Event, Level, Notice, NoticeKind, Stop
from tfmemtop.state import State, apply

Batch = list[Event]
"""Events in order. The source's state contains them already."""


class Source(Protocol):
    """A stream of events, the state that is folded from them, and a way to send commands back."""

    @property
    def live(self) -> bool:
        """Whether commands reach a script."""
        ...

    @property
    def state(self) -> State:
        """The fold of all events returned so far. A seek back in a replay makes a new object."""
        ...

    def batches(self) -> AsyncIterator[Batch]:
        """Return events in order, as they arrive. The iteration ends when no more can arrive."""
        ...

    async def send(self, command: Command) -> None:
        """Send a command. A source that is not live ignores it."""
        ...

    async def close(self) -> None:
        """Close the source. The iteration of :meth:`batches` ends."""
        ...


class Connection(Protocol):
    """The methods of the engine's client that a source uses."""

    def events(self) -> AsyncIterator[list[Event]]: ...

    async def send(self, command: Command) -> None: ...

    async def close(self) -> None: ...


def _gone(state: State) -> Notice:
    """Return the notice that the engine has closed the connection. Only the reader of the connection notices this."""
    pid = state.run.pid if state.run and state.run.going else None
    output = state.session.output_path or "" if state.session else ""
    kind, level = NoticeKind.ENGINE_GONE, Level.ERROR
    return Notice(t=state.now, key="engine", level=level, kind=kind, detail=output, about=pid)


def _can_be_shown(state: State) -> bool:
    """Return whether the first picture is complete: the processes, and the GPUs or that there are none, are known."""
    if state.session is None or state.host_used is None:
        return False
    return "nvml" in state.notices or (bool(state.devices) and all(one.reading for one in state.devices.values()))


async def _next(events: AsyncIterator[Batch]) -> Batch:
    return await anext(events)


class LiveSource:
    """A source that is connected to an engine.

    When the engine ends, the iteration of events ends too. A notice reports this, unless this client sent the command
    to end. The notice is the only event that this source makes, since no engine is left to send it.
    """

    live = True

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._asked_to_end = False
        self._events = connection.events()
        self._coming: asyncio.Future[Batch] | None = None  # the batch that is already being read
        self._gathered: list[Batch] = []
        self.state = State()

    async def gather(self, most_s: float) -> None:
        """Wait until the state contains what a first picture shows, for *most_s* seconds at most.

        :meth:`batches` returns the events that arrived in this time first.
        """
        loop = asyncio.get_running_loop()
        until = loop.time() + most_s
        while not _can_be_shown(self.state) and (left := until - loop.time()) > 0:
            if self._coming is None:
                self._coming = asyncio.ensure_future(_next(self._events))
            await asyncio.wait([self._coming], timeout=left)
            if not self._coming.done() or self._coming.exception() is not None:
                return
            self._gathered.append(self._taken(self._coming.result()))
            self._coming = None

    async def batches(self) -> AsyncIterator[Batch]:
        """Return events as the engine sends them."""
        while self._gathered:
            yield self._gathered.pop(0)
        if self._coming is not None:
            coming, self._coming = self._coming, None
            try:
                yield self._taken(await coming)
            except StopAsyncIteration:
                pass  # the engine has gone
        async for batch in self._events:
            yield self._taken(batch)
        if self._asked_to_end:
            return
        gone = _gone(self.state)
        apply(self.state, gone)
        yield [gone]

    def _taken(self, batch: Batch) -> Batch:
        for event in batch:
            apply(self.state, event)
        return batch

    async def send(self, command: Command) -> None:
        """Send a command to the engine.

        Raises:
            ConnectionError: the engine has gone.
        """
        self._asked_to_end |= isinstance(command, Stop) and command.quit
        await self._connection.send(command)

    async def close(self) -> None:
        """Disconnect. The engine goes on with the commands that it has received."""
        await self._connection.close()
