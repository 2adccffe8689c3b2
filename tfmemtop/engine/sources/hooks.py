"""Receives the messages of the hooks in the script's processes, and sends them what readers request."""

import asyncio
import errno
import math
import os
import socket
from collections.abc import Callable, Hashable
from typing import Any

import msgspec

from tfmemtop import events
from tfmemtop.engine.sources.source import Send, Source
from tfmemtop.engine.stream import Stream
from tfmemtop.engine.stream.folders import peer
from tfmemtop.tensorflow_text import parse_exhausted
from tfmemtop.units import MIB

PACKET = 64 * 1024

_READINGS_A_SECOND, _OTHERS_A_SECOND = MIB // 2, MIB // 16
"""Bytes that a process may send in a second of each kind of readings, and of each kind of other messages."""
_BURST_S = 4  # it may send as many seconds' bytes at once
_EACH = 256  # bytes that a message costs here besides its text
_PAUSE_S = 1.0  # before connections are accepted again, once no descriptor was left

_DRAINED = 4096  # packets that drain() reads of one connection, at most; the kernel keeps far fewer


class _Connection:
    def __init__(self, sock: socket.socket, pid: int) -> None:
        self.sock = sock
        self.pid = pid
        self.introduced = False
        self.goodbye = False
        self.complained = False


class _Budget:
    """What the hooks of one process may still send."""

    def __init__(self) -> None:
        self.left_out = 0  # messages
        self._left: dict[type, tuple[float, float]] = {}  # bytes, and when they were counted

    def take(self, message: events.Event | events.PutDown, size: int, t: float) -> bool:
        """Return whether *message*, of *size* bytes, is within what the process may send of its kind."""
        reading = not isinstance(message, events.Event) or message.droppable
        a_second = _READINGS_A_SECOND if reading else _OTHERS_A_SECOND
        left, then = self._left.get(type(message), (math.inf, t))
        left = min(left + (t - then) * a_second, _BURST_S * a_second) - size - _EACH
        if left < 0:
            self.left_out += 1
            return False
        self._left[type(message)] = left, t
        return True


class Hooks(Source):
    """All connected hooks. Each packet becomes an event. Of the first invalid one of a connection, a notice tells.

    A process that sends more than it may loses the rest. So neither the backlog nor a recording grows faster than a
    known pace, whatever runs amok in the script.
    """

    def __init__(
        self, stream: Stream, listener: socket.socket, take_file: Callable[[events.PutDown], None] = lambda _: None
    ) -> None:
        """*take_file* receives the messages that are for the engine and not for the stream."""
        super().__init__(stream)
        self._listener = listener
        self._connections: dict[int, _Connection] = {}  # by file descriptor
        self._budgets: dict[int, _Budget] = {}  # by process
        self.seen: set[int] = set()  # processes whose hook has sent a greeting
        self._take_file = take_file

    def begin(self) -> None:
        """Start to listen. Call it in the running event loop."""
        self._listen()

    def drain(self) -> None:
        """Publish what the hooks have sent until now, so that the end of the run is published after it."""
        self._accept()
        for connection in list(self._connections.values()):
            self._readable(connection, _DRAINED)

    def send(self, pid: int, command: dict[str, Any]) -> bool:
        """Send *command* to the hooks of a process. Return whether at least one connection accepted it."""
        packet = msgspec.json.encode(command)
        taken = False
        for connection in self._connections.values():
            if connection.pid == pid:
                try:
                    connection.sock.send(packet)
                    taken = True
                except OSError:
                    continue  # the buffer is full, or the hook ends: _readable() detects that
        return taken

    def connected(self) -> set[int]:
        """Return the processes whose hook is connected, or whose children still hold its socket."""
        return {connection.pid for connection in self._connections.values()}

    def forget(self, pid: int) -> None:
        """Close the connections of a process that has ended. Its children may have inherited them."""
        for connection in list(self._connections.values()):
            if connection.pid == pid:
                self._readable(connection, _DRAINED)
                self._close(connection)
        self.seen.discard(pid)
        self._budgets.pop(pid, None)

    def close(self) -> None:
        """Close all connections. The hooks detect that, and the scripts go on."""
        asyncio.get_running_loop().remove_reader(self._listener)
        self._listener.close()
        for connection in self._connections.values():
            asyncio.get_running_loop().remove_reader(connection.sock)
            connection.sock.close()
        self._connections.clear()

    def _listen(self) -> None:
        if self._listener.fileno() >= 0:
            asyncio.get_running_loop().add_reader(self._listener, self._accept)

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError as error:
                if error.errno in (errno.EMFILE, errno.ENFILE):  # without a pause, the loop would spin
                    asyncio.get_running_loop().remove_reader(self._listener)
                    asyncio.get_running_loop().call_later(_PAUSE_S, self._listen)
                return  # or no hook is waiting, or it has given up meanwhile
            sock.setblocking(False)
            pid, uid = peer(sock)
            if uid != os.getuid():
                self._stream.notice("hook_peer", events.NoticeKind.HOOK_OF_OTHER_USER, about=uid)
                sock.close()
                continue
            connection = _Connection(sock, pid)
            self._connections[sock.fileno()] = connection
            asyncio.get_running_loop().add_reader(sock, self._readable, connection, 64)

    def _readable(self, connection: _Connection, packets: int) -> None:
        for _ in range(packets):
            if connection.sock.fileno() < 0:
                return
            try:
                packet, _, flags, _ = connection.sock.recvmsg(PACKET)
            except BlockingIOError:
                return
            except ConnectionResetError:
                continue  # the hook ended with commands unread; what it sent is still there
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
            event = self._completed(events.decode_from_hook(packet, connection.pid, self._stream.now()))
        except events.Unreadable as error:
            self._complain(connection, str(error))
            return
        budget = self._budgets.setdefault(connection.pid, _Budget())
        if not budget.take(event, len(packet), self._stream.now()):
            if budget.left_out & (budget.left_out - 1) == 0:  # each time that there are twice as many
                kind = events.NoticeKind.HOOK_TOO_MUCH
                self._stream.notice("left-out-messages", kind, about=connection.pid, count=budget.left_out)
            return
        if not isinstance(event, events.Event):
            self._take_file(event)
            return
        if isinstance(event, events.Hook):
            connection.introduced = True
            self.seen.add(connection.pid)
        elif isinstance(event, events.HookEnd):
            connection.goodbye = True
        self._stream.publish(event)

    def _completed(self, message: events.Event | events.PutDown) -> events.Event | events.PutDown:
        """Return *message* with what is computed from it.

        Raises:
            Unreadable: what was computed is out of bounds, so that no reader could decode the event.
        """
        if isinstance(message, events.PoolGrowth):
            message = msgspec.structs.replace(message, at=self._stream.since_start(message.at))
        elif isinstance(message, events.ScriptPhase):
            ended = None if message.ended is None else self._stream.since_start(message.ended)
            message = msgspec.structs.replace(message, began=self._stream.since_start(message.began), ended=ended)
        elif isinstance(message, events.OutOfMemory):
            message = msgspec.structs.replace(message, **parse_exhausted(message.message)._asdict())
        else:
            return message
        return events.decode_event(events.encode(message))

    def _complain(self, connection: _Connection, why: str) -> None:
        if not connection.complained:
            connection.complained = True
            kind, pid = events.NoticeKind.HOOK_UNREAD, connection.pid
            self._stream.notice(f"hook-error-{pid}", kind, detail=why, about=pid)

    def _close(self, connection: _Connection) -> None:
        if self._connections.pop(connection.sock.fileno(), None) is None:
            return  # it was closed when its end was read
        asyncio.get_running_loop().remove_reader(connection.sock)
        connection.sock.close()
        if connection.introduced and not connection.goodbye:
            lost = events.HookEnding.LOST
            self._stream.publish(events.HookEnd(t=self._stream.now(), pid=connection.pid, reason=lost))


RECORDED_PACE_S, KEPT_PACE_S = 1.0, 10.0
"""Seconds between two maps: for a recording that the user requested, and for one that tfmemtop keeps by itself."""

FASTEST_S = 0.1


class MapRequests(Source):
    """Collects which maps the readers request, and sends each hook those of its process.

    With *every_s*, all maps are requested, so many seconds apart. *send* passes a command on to the hook of a process,
    or to the part that reads the process from outside.
    """

    def __init__(self, stream: Stream, send: Send, *, every_s: float | None = None) -> None:
        super().__init__(stream)
        self._send = send
        self._every_s = every_s
        self._wishes: dict[Hashable, dict[tuple[int, str], events.MapWanted]] = {}

    def want(self, reader: Hashable, wish: events.MapWanted) -> None:
        """Note that *reader* requests this map from now on, or, if *wish* has no ``pace_s``, no longer requests it."""
        wishes = self._wishes.setdefault(reader, {})
        if wish.pace_s is None:
            wishes.pop((wish.pid, wish.device), None)
        else:
            wishes[wish.pid, wish.device] = wish
        self._tell(wish.pid)

    def forget(self, reader: Hashable) -> None:
        """Drop all requests of *reader*, which has disconnected."""
        for pid in {pid for pid, _ in self._wishes.pop(reader, {})}:
            self._tell(pid)

    def on_event(self, event: events.Event) -> None:
        """Handle an event of the stream."""
        if isinstance(event, events.Probe) and event.state in (events.ProbeState.DIRECT, events.ProbeState.LOADED):
            self._tell(event.pid)

    def _tell(self, pid: int) -> None:
        paces: dict[tuple[str | None, int | None], float] = {}
        for wishes in self._wishes.values():
            for wish in wishes.values():
                if wish.pid == pid and wish.pace_s is not None:
                    key = wish.device, wish.region
                    paces[key] = min(paces.get(key, wish.pace_s), max(wish.pace_s, FASTEST_S))
        if self._every_s is not None:
            paces[None, None] = self._every_s
        wanted = [[device, region, pace] for (device, region), pace in paces.items()]
        self._send(pid, {"do": "maps", "wanted": wanted})
