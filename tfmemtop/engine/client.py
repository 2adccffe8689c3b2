"""The other end of an engine's socket, for screens."""

import asyncio
import os
from collections.abc import AsyncIterator

from tfmemtop.events import AnyCommand, AnyEvent, Notice, Unreadable, decode_event, encode

_READ = 256 * 1024


class Client:
    """A connection to an engine; made by :func:`connect`."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self.unread = 0
        """Lines that could not be read, as from an engine of another version."""
        self._now = 0.0

    async def events(self) -> AsyncIterator[list[AnyEvent]]:
        """Events in batches as they come; ends when the engine has gone or the client is closed."""
        rest = b""
        while True:
            try:
                data = await self._reader.read(_READ)
            except ConnectionError:
                return
            if not data:
                return
            *lines, rest = (rest + data).split(b"\n")
            unread = self.unread
            batch = [event for line in lines if (event := self._decode(line))]
            if self.unread > unread:
                text = f"the engine sent what this screen cannot read, so far {self.unread} times; that was left out"
                batch.append(Notice(t=self._now, key="unread", level="warning", text=text))
            if batch:
                yield batch

    def _decode(self, line: bytes) -> AnyEvent | None:
        try:
            event = decode_event(line)
        except Unreadable:
            self.unread += 1
            return None
        self._now = max(self._now, event.t)
        return event

    async def send(self, command: AnyCommand) -> None:
        """Pass *command* to the engine.

        Raises:
            ConnectionError: the engine has gone.
        """
        self._writer.write(encode(command) + b"\n")
        await self._writer.drain()

    async def close(self) -> None:
        """Disconnect; the run goes on under its engine."""
        self._writer.close()
        try:
            await self._writer.wait_closed()
        except ConnectionError:
            pass  # it had gone already


async def connect(socket: str | os.PathLike[str]) -> Client:
    """Connect to the engine that listens at *socket*.

    Raises:
        OSError: there is none.
    """
    return Client(*await asyncio.open_unix_connection(socket, limit=_READ))
