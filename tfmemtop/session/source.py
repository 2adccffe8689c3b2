"""Where events come from, and the state that they fold into."""

from collections.abc import AsyncIterator
from typing import Protocol

from tfmemtop.events import Command, Event, Level, Notice, NoticeKind, Stop
from tfmemtop.state import State, apply

Batch = list[Event]
"""Events in order. They are in the source's state already."""


class Source(Protocol):
    """A stream of events with its fold, and a way back for commands."""

    @property
    def live(self) -> bool:
        """Whether commands reach a script."""
        ...

    @property
    def state(self) -> State:
        """The fold of all events handed out. It is another object once time has gone back."""
        ...

    def batches(self) -> AsyncIterator[Batch]:
        """Events in order, as they come. The iteration ends when no more can come."""
        ...

    async def send(self, command: Command) -> None:
        """Pass a command on. A source that is not live ignores it."""
        ...

    async def close(self) -> None:
        """Let go of the source. The iteration ends."""
        ...


class Connection(Protocol):
    """What a client of the engine offers."""

    def events(self) -> AsyncIterator[list[Event]]: ...

    async def send(self, command: Command) -> None: ...

    async def close(self) -> None: ...


def _gone(state: State) -> Notice:
    """The engine has closed the connection. Nobody but its reader can tell."""
    pid = state.run.pid if state.run and state.run.going else None
    output = state.session.output_path or "" if state.session else ""
    kind, level = NoticeKind.ENGINE_GONE, Level.ERROR
    return Notice(t=state.now, key="engine", level=level, kind=kind, detail=output, about=pid)


class LiveSource:
    """A connection to an engine. The iteration ends with the engine; a notice says so if nobody asked it to end."""

    live = True

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._asked_to_end = False
        self.state = State()

    async def batches(self) -> AsyncIterator[Batch]:
        """Events as the engine sends them."""
        async for batch in self._connection.events():
            for event in batch:
                apply(self.state, event)
            yield batch
        if self._asked_to_end:
            return
        gone = _gone(self.state)
        apply(self.state, gone)
        yield [gone]

    async def send(self, command: Command) -> None:
        """Pass a command to the engine.

        Raises:
            ConnectionError: the engine has gone.
        """
        self._asked_to_end |= isinstance(command, Stop) and command.quit
        await self._connection.send(command)

    async def close(self) -> None:
        """Disconnect. The engine goes on as it has been told."""
        await self._connection.close()
