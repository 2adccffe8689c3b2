"""Serves the stream to any number of readers, each at its own pace and none at the engine's cost."""

import asyncio
import os
import socket
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from tfmemtop.engine.sockets import peer
from tfmemtop.engine.stream import Stream
from tfmemtop.events import (
    Allocator,
    AnyCommand,
    AnyEvent,
    DeviceReading,
    Functions,
    Leave,
    MemoryMap,
    Notice,
    Output,
    ProcessReadings,
    Unreadable,
    decode_command,
    encode,
)

QUEUE = 4 * 1024 * 1024
"""Bytes of samples that may wait for one reader before its oldest are dropped."""
OUTPUT_QUEUE = 512 * 1024
"""Bytes of the script's output that may wait for one reader before it is moved to the newest."""

_QUEUE_WHOLE = 64 * 1024 * 1024
_LINE = 1024 * 1024
_WRITE = 256 * 1024
_SAMPLES = (Allocator, DeviceReading, Functions, MemoryMap, ProcessReadings)
_GATHER_S = 0.2


class Reader:
    """One connected reader: a queue of lines to it, and its commands."""

    def __init__(self, stream: Stream, sock: socket.socket) -> None:
        self._stream = stream
        self.sock = sock
        self._queue: deque[_Waiting] = deque()
        self._waiting = 0
        self._samples = 0
        self._output = 0
        self._dropped = 0
        self._more = asyncio.Event()
        self._gathering: asyncio.TimerHandle | None = None
        self.idle = asyncio.Event()

    def push(self, event: AnyEvent) -> None:
        """Queue *event*; too long a queue loses its oldest samples, and says so."""
        self._add(self._queue, _Waiting(encode(event) + b"\n", event))
        if self._samples > QUEUE:
            self._drop()
        if self._output > OUTPUT_QUEUE:
            self._skip_output()
        self.idle.clear()
        if not isinstance(event, _SAMPLES):
            self._more.set()
        elif self._gathering is None:
            # A screen draws readings once a second or so: waking it for each would cost more than drawing them.
            self._gathering = asyncio.get_running_loop().call_later(_GATHER_S, self._gathered)

    def _add(self, queue: "deque[_Waiting]", one: "_Waiting") -> None:
        queue.append(one)
        self._count(one, 1)

    def _count(self, one: "_Waiting", sign: int) -> None:
        size = len(one.line) * sign
        self._waiting += size
        if isinstance(one.event, _SAMPLES):
            self._samples += size
        elif isinstance(one.event, Output):
            self._output += size

    def _gathered(self) -> None:
        self._gathering = None
        self._more.set()

    async def write(self) -> None:
        """Send what is queued until the connection ends.

        Raises:
            OSError: the reader has gone.
        """
        loop = asyncio.get_running_loop()
        while True:
            if not self._queue:
                self._more.clear()
                self.idle.set()
                await self._more.wait()
            if self._waiting > _QUEUE_WHOLE:
                raise ConnectionError("a reader that no longer reads")
            lines = []
            size = 0
            while self._queue and size < _WRITE:
                one = self._queue.popleft()
                self._count(one, -1)
                size += len(one.line)
                lines.append(one.line)
            await loop.sock_sendall(self.sock, b"".join(lines))

    async def read(self, take: Callable[["Reader", AnyCommand], None]) -> None:
        """Hand its commands to *take* until it leaves.

        Raises:
            OSError: the reader has gone.
        """
        loop = asyncio.get_running_loop()
        buffer = bytearray()
        while data := await loop.sock_recv(self.sock, 1 << 16):
            buffer += data
            *lines, rest = buffer.split(b"\n")
            buffer = bytearray(rest)
            if len(buffer) > _LINE:
                buffer.clear()
                lines.append(bytearray(b"a line without end"))
            for line in lines:
                try:
                    command = decode_command(bytes(line))
                except Unreadable as error:
                    self._stream.notice("command", "warning", f"a screen sent a command that cannot be read: {error}")
                    continue
                if isinstance(command, Leave):
                    return
                take(self, command)

    def _drop(self) -> None:
        kept: deque[_Waiting] = deque()
        for one in self._queue:
            if isinstance(one.event, _SAMPLES) and self._samples > QUEUE // 2:
                self._count(one, -1)
                self._dropped += 1
            else:
                kept.append(one)
        text = f"this screen could not keep up: {self._dropped} readings left out"
        notice = Notice(t=self._stream.now(), key="slow_reader", level="warning", text=text)
        self._add(kept, _Waiting(encode(notice) + b"\n", notice))
        self._queue = kept

    def _skip_output(self) -> None:
        """Leave out the oldest output, and say in the next how much that was."""
        kept: deque[_Waiting] = deque()
        run = left_out = 0
        for one in self._queue:
            event = one.event
            if not isinstance(event, Output):
                kept.append(one)
                continue
            left_out = event.skipped + (left_out if event.run == run else 0)
            run = event.run
            if self._output > OUTPUT_QUEUE // 2:
                self._count(one, -1)
                left_out += len(event.text.encode())
            elif left_out == event.skipped:
                kept.append(one)
                left_out = 0
            else:
                self._count(one, -1)
                told = msgspec.structs.replace(event, skipped=left_out)
                self._add(kept, _Waiting(encode(told) + b"\n", told))
                left_out = 0
        self._queue = kept


@dataclass(frozen=True, slots=True)
class _Waiting:
    """A line for a reader, and what it says."""

    line: bytes
    event: AnyEvent


class Server:
    """Accepts readers of the same user; each first gets the backlog, then all that happens."""

    def __init__(self, stream: Stream, listener: socket.socket, take: Callable[[Reader, AnyCommand], None]) -> None:
        self._stream = stream
        self._listener = listener
        self._take = take
        self._readers: dict[Reader, asyncio.Task[None]] = {}
        self.ever = False  # whether there has been a reader
        self.changed: Callable[[], None] = lambda: None
        self.left: Callable[[Reader], None] = lambda _: None

    def begin(self) -> None:
        """Start accepting; needs the running loop."""
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._listener, self._accept)

    @property
    def readers(self) -> int:
        """How many are connected."""
        return len(self._readers)

    async def close(self) -> None:
        """Give readers a moment to get the last events, then disconnect them."""
        self._loop.remove_reader(self._listener)
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
            self._stream.notice("reader_peer", "warning", "another user tried to look at this session; refused")
            return
        reader = Reader(self._stream, sock)
        for event in self._stream.backlog.events():
            reader.push(event)
        self._stream.listen(reader.push)
        self._readers[reader] = self._loop.create_task(self._serve(reader))
        self.ever = True
        self.changed()

    async def _serve(self, reader: Reader) -> None:
        reading = asyncio.ensure_future(reader.read(self._take))
        writing = asyncio.ensure_future(reader.write())
        try:
            await asyncio.wait([reading, writing], return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._stream.forget(reader.push)
            for task in (reading, writing):
                task.cancel()
            # That a reader has gone is no error, however it went.
            await asyncio.gather(reading, writing, return_exceptions=True)
            reader.sock.close()
            del self._readers[reader]
            self.left(reader)
            self.changed()
