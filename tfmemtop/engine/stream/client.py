"""Connects a screen to an engine."""

import asyncio
import os
from collections.abc import AsyncIterator

from tfmemtop.events import Command, Event, Level, Notice, NoticeKind, Unreadable, decode_event, encode

_READ = 256 * 1024


class Client:
    """A connection to an engine; made by :func:`connect`."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self.unread = 0
        """The number of lines that could not be decoded. An engine of another version may send such lines."""
        self._now = 0.0  # time of the newest event

    async def events(self) -> AsyncIterator[list[Event]]:
        """Yield events in batches as they arrive. This ends when the engine has ended or the client is closed."""
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
                kind, level = NoticeKind.EVENTS_UNREAD, Level.WARNING
                batch.append(Notice(t=self._now, key="unread", level=level, kind=kind, count=self.unread))
            if batch:
                yield batch

    def _decode(self, line: bytes) -> Event | None:
        try:
            event = decode_event(line)
        except Unreadable:
            self.unread += 1
            return None
        self._now = max(self._now, event.t)
        return event

    async def send(self, command: Command) -> None:
        """Send *command* to the engine.

        Raises:
            ConnectionError: the engine has ended.
        """
        self._writer.write(encode(command) + b"\n")
        await self._writer.drain()

    async def close(self) -> None:
        """Disconnect. The engine and its run go on."""
        self._writer.close()
        try:
            await self._writer.wait_closed()
        except ConnectionError:
            pass  # the engine had ended already


async def connect(socket: str | os.PathLike[str]) -> Client:
    """Connect to the engine that listens at *socket*.

    Raises:
        OSError: no engine listens there.
    """
    return Client(*await asyncio.open_unix_connection(socket, limit=_READ))
