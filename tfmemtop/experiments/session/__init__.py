"""What a screen works on: a source of events, and the settings of the next run. It does not import Textual.

Here are the sources, which fold their events into a state.
"""

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


def is_over(state: State) -> bool:
    """Return whether the session has ended with its run, as it does where the command has a terminal of its own."""
    return bool(state.session and state.session.output_path is None and state.run and not state.run.going)


def _gone(state: State) -> Notice:
    """Return the notice that the engine has closed the connection. Only the reader of the connection notices this."""
    if is_over(state):
        return Notice(t=state.now, key="engine", level=Level.INFO, kind=NoticeKind.SESSION_OVER)
    pid = state.run.pid if state.run and state.run.going else None
    output = state.session.output_path or "" if state.session else ""
    kind, level = NoticeKind.ENGINE_GONE, Level.ERROR
    return Notice(t=state.now, key="engine", level=level, kind=kind, detail=output, about=pid)


class LiveSource:
    """A source that is connected to an engine.

    When the engine ends, the iteration of events ends too. A notice reports this, unless this client sent the command
    to end. The notice is the only event that this source makes, since no engine is left to send it.
    """

    live = True

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._asked_to_end = False
        self.state = State()

    async def batches(self) -> AsyncIterator[Batch]:
        """Return events as the engine sends them."""
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
        """Send a command to the engine.

        Raises:
            ConnectionError: the engine has gone.
        """
        self._asked_to_end |= isinstance(command, Stop) and command.quit
        await self._connection.send(command)

    async def close(self) -> None:
        """Disconnect. The engine goes on with the commands that it has received."""
        await self._connection.close()
