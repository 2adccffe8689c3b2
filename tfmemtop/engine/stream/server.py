"""Serves the stream to any number of readers, and connects a reader. A slow reader does not block the engine."""

import asyncio
import errno
import os
import socket
from collections.abc import AsyncIterator, Callable

from tfmemtop.engine.stream import Line, LineQueue, Stream, line_of
from tfmemtop.engine.stream.folders import peer
from tfmemtop.events import (
    CaughtUp,
    Command,
    Event,
    Leave,
    Level,
    Notice,
    NoticeKind,
    Unreadable,
    decode_command,
    decode_event,
    encode,
)
from tfmemtop.units import MIB

_LINE = MIB
_WRITE = 256 * 1024
_GATHER_S = 0.2


class Reader:
    """One connected reader: the queue of lines for it, and its commands."""

    def __init__(self, stream: Stream, sock: socket.socket) -> None:
        self._stream = stream
        self.sock = sock
        self._queue = LineQueue(stream)
        self._more = asyncio.Event()
        self._gathering: asyncio.TimerHandle | None = None
        self.idle = asyncio.Event()

    def push(self, line: Line) -> None:
        """Queue *line*."""
        self._queue.push(line)
        self.idle.clear()
        if not line.event.droppable:
            self._more.set()
        elif self._gathering is None:
            # A screen draws readings about once a second. To wake it for each reading would cost more than to draw.
            self._gathering = asyncio.get_running_loop().call_later(_GATHER_S, self._gathered)

    def _gathered(self) -> None:
        self._gathering = None
        self._more.set()

    async def write(self) -> None:
        """Send the queue until the connection ends.

        Raises:
            OSError: the connection to the reader is broken, or far too many bytes wait for it.
        """
        loop = asyncio.get_running_loop()
        while True:
            if not self._queue:
                self._more.clear()
                self.idle.set()
                await self._more.wait()
            if self._queue.overflows:
                raise ConnectionError(errno.ETIMEDOUT, os.strerror(errno.ETIMEDOUT))
            await loop.sock_sendall(self.sock, b"".join(one.line for one in self._queue.take(_WRITE)))

    async def read(self, take: Callable[["Reader", Command], None]) -> None:
        """Pass the commands of the reader to *take* until it leaves.

        Raises:
            OSError: the connection to the reader is broken.
        """
        loop = asyncio.get_running_loop()
        buffer = bytearray()
        while data := await loop.sock_recv(self.sock, 1 << 16):
            buffer += data
            *lines, rest = buffer.split(b"\n")
            buffer = bytearray(rest)
            if len(buffer) > _LINE:
                buffer.clear()  # a line without end: what stands for it is no command either
                lines.append(bytearray(b"?"))
            for line in lines:
                try:
                    command = decode_command(bytes(line))
                except Unreadable as error:
                    self._stream.notice("command", NoticeKind.COMMAND_UNREAD, detail=str(error))
                    continue
                if isinstance(command, Leave):
                    return
                take(self, command)


class Server:
    """Accepts readers of the same user. Each gets the backlog first, then every event."""

    def __init__(
        self,
        stream: Stream,
        listener: socket.socket,
        *,
        take: Callable[[Reader, Command], None],
        left: Callable[[Reader], None] = lambda _: None,
        changed: Callable[[], None] = lambda: None,
    ) -> None:
        """*take* receives the commands of each reader. *left* is called with each reader that has left.

        *changed* is called whenever a reader has come or left.
        """
        self._stream = stream
        self._listener = listener
        self._take = take
        self._left = left
        self._changed = changed
        self._readers: dict[Reader, asyncio.Task[None]] = {}
        self.ever = False
        """Whether there has been a reader."""

    def begin(self) -> None:
        """Start to accept readers. Needs the running loop."""
        asyncio.get_running_loop().add_reader(self._listener, self._accept)

    @property
    def readers(self) -> int:
        """The number of connected readers."""
        return len(self._readers)

    def dismiss(self, reader: Reader) -> None:
        """Disconnect one reader; the others go on."""
        if (task := self._readers.get(reader)) is not None:
            task.cancel()

    async def close(self) -> None:
        """Wait up to one second while the readers receive the last events, then disconnect them."""
        asyncio.get_running_loop().remove_reader(self._listener)
        self._listener.close()
        if self._readers:
            flushing = [asyncio.ensure_future(reader.idle.wait()) for reader in self._readers]
            await asyncio.wait(flushing, timeout=1.0)
            for waiting in flushing:
                waiting.cancel()
        tasks = list(self._readers.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _accept(self) -> None:
        try:
            sock, _ = self._listener.accept()
        except OSError:
            return
        sock.setblocking(False)
        if peer(sock)[1] != os.getuid():
            sock.close()
            self._stream.notice("reader_peer", NoticeKind.READER_OF_OTHER_USER)
            return
        reader = Reader(self._stream, sock)
        for event in self._stream.backlog.events():
            reader.push(line_of(event))
        reader.push(line_of(CaughtUp(t=self._stream.now())))
        self._stream.listen_to_lines(reader.push)
        self._readers[reader] = asyncio.get_running_loop().create_task(self._serve(reader))
        self.ever = True
        self._changed()

    async def _serve(self, reader: Reader) -> None:
        reading = asyncio.ensure_future(reader.read(self._take))
        writing = asyncio.ensure_future(reader.write())
        try:
            await asyncio.wait([reading, writing], return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._stream.forget(reader.push)
            for task in (reading, writing):
                task.cancel()
            # The end of a connection is never an error, whatever its reason.
            await asyncio.gather(reading, writing, return_exceptions=True)
            reader.sock.close()
            del self._readers[reader]
            self._left(reader)
            self._changed()


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
