"""Listens to the hooks inside the script's processes."""

import asyncio
import os
import socket
from typing import Any

import msgspec

from tfmemtop.engine.sockets import peer
from tfmemtop.engine.stream import Stream
from tfmemtop.events import (
    Allocator,
    Census,
    Effective,
    Functions,
    Hook,
    HookEnd,
    HookError,
    Initialised,
    MemoryMap,
    OutOfMemory,
    PoolGrowth,
    Probe,
    Requested,
    Waiting,
)

PACKET = 64 * 1024

_FromHook = (
    Hook
    | Requested
    | Initialised
    | Effective
    | Allocator
    | OutOfMemory
    | Waiting
    | HookError
    | HookEnd
    | PoolGrowth
    | MemoryMap
    | Probe
    | Functions
    | Census
)


class _Connection:
    def __init__(self, sock: socket.socket, pid: int) -> None:
        self.sock = sock
        self.pid = pid
        self.introduced = False
        self.goodbye = False
        self.complained = False


class Hooks:
    """Every connected hook; each packet becomes an event or, once a connection, a complaint."""

    def __init__(self, stream: Stream, listener: socket.socket) -> None:
        self._stream = stream
        self._listener = listener
        self._connections: dict[int, _Connection] = {}  # by file descriptor
        self.seen: set[int] = set()  # processes that ever reported

    def begin(self) -> None:
        """Start listening; needs the running loop."""
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._listener, self._accept)

    def drain(self) -> None:
        """Take in what has been sent until now, so that the end of a run comes after it."""
        self._accept()
        for connection in list(self._connections.values()):
            self._readable(connection, 1 << 20)

    def send(self, pid: int, command: dict[str, Any]) -> bool:
        """Send *command* to the hooks of a process; whether one took it."""
        packet = msgspec.json.encode(command)
        taken = False
        for connection in self._connections.values():
            if connection.pid == pid:
                try:
                    connection.sock.send(packet)
                    taken = True
                except OSError:
                    continue  # full or going: the reading side notices an end
        return taken

    def connected(self) -> set[int]:
        """Processes whose hooks are connected, or whose children hold on to the socket."""
        return {connection.pid for connection in self._connections.values()}

    def forget(self, pid: int) -> None:
        """Close what a process that is gone has left open, in children that inherited it."""
        for connection in list(self._connections.values()):
            if connection.pid == pid:
                self._readable(connection, 1 << 20)
                self._close(connection)
        self.seen.discard(pid)

    def close(self) -> None:
        """Stop listening; the hooks notice and go on without us."""
        self._loop.remove_reader(self._listener)
        self._listener.close()
        for connection in self._connections.values():
            self._loop.remove_reader(connection.sock)
            connection.sock.close()
        self._connections.clear()

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return  # none waits, or the connection was given up meanwhile
            sock.setblocking(False)
            pid, uid = peer(sock)
            if uid != os.getuid():
                self._stream.notice("hook_peer", "warning", f"user {uid} tried to report as a hook; refused")
                sock.close()
                continue
            connection = _Connection(sock, pid)
            self._connections[sock.fileno()] = connection
            self._loop.add_reader(sock, self._readable, connection, 64)

    def _readable(self, connection: _Connection, packets: int) -> None:
        for _ in range(packets):
            if connection.sock.fileno() < 0:
                return
            try:
                packet, _, flags, _ = connection.sock.recvmsg(PACKET)
            except BlockingIOError:
                return
            except OSError:
                packet, flags = b"", 0
            if not packet:
                self._close(connection)
                return
            if flags & socket.MSG_TRUNC:
                self._complain(connection, f"a packet is longer than {PACKET} bytes")
            else:
                self._take(connection, packet)

    def _take(self, connection: _Connection, packet: bytes) -> None:
        try:
            fields = msgspec.json.decode(packet)
            if not isinstance(fields, dict):
                raise msgspec.ValidationError("a packet is no object")
            event = msgspec.convert(fields | {"t": 0.0, "pid": connection.pid}, _FromHook)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            self._complain(connection, str(error))
            return
        if isinstance(event, Hook):
            connection.introduced = True
            self.seen.add(connection.pid)
        elif isinstance(event, HookEnd):
            connection.goodbye = True
        elif isinstance(event, PoolGrowth):
            event = msgspec.structs.replace(event, at=self._stream.since_start(event.at))
        self._stream.publish(event)

    def _complain(self, connection: _Connection, why: str) -> None:
        if not connection.complained:
            connection.complained = True
            self._stream.publish(HookError(t=0.0, pid=connection.pid, text=f"the hook sent what cannot be read: {why}"))

    def _close(self, connection: _Connection) -> None:
        self._loop.remove_reader(connection.sock)
        self._connections.pop(connection.sock.fileno(), None)
        connection.sock.close()
        if connection.introduced and not connection.goodbye:
            self._stream.publish(HookEnd(t=0.0, pid=connection.pid, reason="lost"))
