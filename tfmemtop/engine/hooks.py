"""Listens to the hooks inside the script's processes."""

import asyncio
import errno
import os
import socket
from collections.abc import Callable
from typing import Any

import msgspec

from tfmemtop.engine.exhausted import parse
from tfmemtop.engine.sockets import peer
from tfmemtop.engine.stream import Stream
from tfmemtop.events import Chunks, Hook, HookEnd, HookError, OutOfMemory, PoolGrowth, Unreadable, decode_from_hook

PACKET = 64 * 1024
DEVICES = 64
"""Of one process: more than any machine's GPUs, each cut in three."""

_CONNECTIONS = 8  # of one process; an agent needs one
_DRAINED = 4096  # packets of one connection: several times what the kernel keeps
_PAUSE_S = 1.0


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
        self._devices: dict[int, set[str]] = {}  # that a process has named
        self.seen: set[int] = set()  # processes that ever reported
        self.put_down: Callable[[Chunks], None] = lambda _: None  # takes what is for the engine itself

    def begin(self) -> None:
        """Start listening; needs the running loop."""
        self._loop = asyncio.get_running_loop()
        self._listen()

    def drain(self) -> None:
        """Take in what has been sent until now, so that the end of a run comes after it."""
        self._accept()
        for connection in list(self._connections.values()):
            self._readable(connection, _DRAINED)

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
                self._readable(connection, _DRAINED)
                self._close(connection)
        self.seen.discard(pid)
        self._devices.pop(pid, None)

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
            except OSError as error:
                if error.errno in (errno.EMFILE, errno.ENFILE):
                    self._wait()
                return  # none waits, or the connection was given up meanwhile
            sock.setblocking(False)
            pid, uid = peer(sock)
            if uid != os.getuid():
                self._stream.notice("hook_peer", "warning", f"user {uid} tried to report as a hook; refused")
                sock.close()
                continue
            if sum(known.pid == pid for known in self._connections.values()) >= _CONNECTIONS:
                self._stream.notice("hook_peer", "warning", f"process {pid} connects too often as a hook; refused")
                sock.close()
                continue
            connection = _Connection(sock, pid)
            self._connections[sock.fileno()] = connection
            self._loop.add_reader(sock, self._readable, connection, 64)

    def _wait(self) -> None:
        """There is no descriptor left: look again a little later, not all the time."""
        text = "no descriptor is left for more processes' hooks; their readings come once others have ended"
        self._stream.notice("hook_descriptors", "warning", text, "a higher limit: ulimit -n")
        self._loop.remove_reader(self._listener)
        self._loop.call_later(_PAUSE_S, self._listen)

    def _listen(self) -> None:
        if self._listener.fileno() >= 0:
            self._loop.add_reader(self._listener, self._accept)

    def _readable(self, connection: _Connection, packets: int) -> None:
        for _ in range(packets):
            if connection.sock.fileno() < 0:
                return
            try:
                packet, _, flags, _ = connection.sock.recvmsg(PACKET)
            except BlockingIOError:
                return
            except ConnectionResetError:
                continue  # it ended without having read all of ours; what it had sent is still there
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
            event = decode_from_hook(packet, connection.pid)
        except Unreadable as error:
            self._complain(connection, str(error))
            return
        if not self._may_tell(connection.pid, getattr(event, "device", None)):
            return
        if isinstance(event, Chunks):
            self.put_down(event)
            return
        if isinstance(event, Hook):
            connection.introduced = True
            self.seen.add(connection.pid)
        elif isinstance(event, HookEnd):
            connection.goodbye = True
        elif isinstance(event, PoolGrowth):
            event = msgspec.structs.replace(event, at=self._stream.since_start(event.at))
        elif isinstance(event, OutOfMemory):
            event = msgspec.structs.replace(event, **parse(event.message)._asdict())
        self._stream.publish(event)

    def _may_tell(self, pid: int, device: str | None) -> bool:
        """Whether *device* is one of not too many that process *pid* tells of."""
        named = self._devices.setdefault(pid, set())
        if device is None or device in named:
            return True
        if len(named) < DEVICES:
            named.add(device)
            return True
        text = f"process {pid} names more than {DEVICES} devices; what it tells of the others is left out"
        self._stream.notice("left-out-devices", "warning", text)
        return False

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
