"""Random messages to a real engine, over its real sockets: those of hooks, and those of screens.

A second process sends them. Meanwhile this process sends good messages, and waits for each at the other end of the
stream.
"""

import json
import os
import random
import shutil
import signal
import socket
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

from tests.tools.corpus.running import become_init, connected, end_all, reap
from tests.tools.corpus.shapes import enlarged, pool
from tfmemtop import events
from tfmemtop.engine.process.launch import Launch, start

HANG_S = float(os.environ.get("TFMEMTOP_HANG_S", "2"))
"""The seconds within which a good message has to arrive; more beside other programs."""
MEMORY_MOST = 120 << 20
"""The most memory in bytes that an engine may hold, whatever it receives."""

_POOL = 6000
_PACKET = 60_000  # bytes of the largest packets: the engine takes 64 KiB
_LINES = 30  # connections open at a time
_GOOD_EVERY_S = 0.25
_READ = 1 << 18
_KINDS: list[type] = [*events.event_types(events.Origin.HOOK), events.Chunks, events.Window]
"""What a hook may send."""
_SLEEPER = ["sh", "-c", "stty raw -echo -isig; exec cat >/dev/null"]
_FOLDERS = ("XDG_RUNTIME_DIR", "XDG_STATE_HOME", "XDG_CACHE_HOME", "HOME", "TMPDIR")


class Watched:
    """An engine, and a screen that reads all that the engine sends."""

    def __init__(self) -> None:
        become_init()
        self.folder = Path(tempfile.mkdtemp(prefix="tff-", dir="/tmp"))
        os.environ.update(dict.fromkeys(_FOLDERS, str(self.folder)))
        environment = dict(os.environ)
        launched = start(Launch(argv=_SLEEPER, cwd=str(self.folder), environment=environment, probe=False, keep=True))
        assert launched.error is None, launched.error
        self.socket = launched.socket
        self.hook_socket = str(Path(launched.socket).with_name("hook.sock"))
        self.screen = connected(self.socket)
        self.pid = _peer(self.screen)
        self._rest = b""
        self.slowest = 0.0
        self.most = 0
        self.troubles: list[str] = []

    def wait_for(self, mark: bytes, limit_s: float) -> bool:
        """Read until *mark* has arrived. Return False if it has not arrived after *limit_s* seconds."""
        began = time.monotonic()
        seen = self._rest
        while mark not in seen:
            left = began + limit_s - time.monotonic()
            if left <= 0:
                return False
            self.screen.settimeout(left)
            try:
                data = self.screen.recv(_READ)
            except TimeoutError:
                return False
            if not data:
                self.troubles.append("the engine has hung up")
                return False
            seen = seen[-len(mark) :] + data
        self._rest = seen[-4096:] if not seen.endswith(mark) else b""
        self.slowest = max(self.slowest, time.monotonic() - began)
        return True

    def look(self) -> bool:
        """Store the engine's memory if it is a new maximum. Return whether the engine still runs."""
        try:
            status = Path(f"/proc/{self.pid}/status").read_text()
        except OSError:
            self.troubles.append("the engine is gone")
            return False
        held = next((int(line.split()[1]) << 10 for line in status.splitlines() if line.startswith("VmRSS")), 0)
        self.most = max(self.most, held)
        return True

    def close(self) -> list[str]:
        """End the engine. Return what was wrong."""
        log = next(self.folder.glob("tfmemtop/*/engine.log"), None)
        said = log.read_text(errors="replace") if log else ""
        if "Traceback" in said:
            last = [line for line in said.splitlines() if line and not line.startswith((" ", "Traceback"))]
            self.troubles.append(
                f"the engine's log has {said.count('Traceback')} tracebacks, such as: {last[-1] if last else ''}"[:300]
            )
        if self.most > MEMORY_MOST:
            self.troubles.append(f"the engine held {self.most >> 20} MiB")
        self.screen.close()
        end_all()
        shutil.rmtree(self.folder, ignore_errors=True)
        return list(dict.fromkeys(self.troubles))


def _peer(line: socket.socket) -> int:
    return int.from_bytes(line.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)[:4], "little")


def hook(seed: int, count: int) -> tuple[list[str], str]:
    """Send *count* packets on many connections. Return the troubles, and the figures in words."""
    chance = random.Random(seed)
    packets = pool(_KINDS, chance, min(_POOL, count))
    return _beside_a_good_hook(lambda path: _flood_hook(path, packets, chance, count))


def flood(seed: int, count: int) -> tuple[list[str], str]:
    """Send *count* packets as large as they may be, one kind after the other. Return as :func:`hook` does."""
    packets = [packet for kind in _KINDS for packet in enlarged(kind, _PACKET)]

    def send(path: str) -> None:
        line = connected(path, socket.SOCK_SEQPACKET)
        for number in range(count):
            line.send(packets[number * len(packets) // count])

    return _beside_a_good_hook(send)


def _beside_a_good_hook(send: Callable[[str], None]) -> tuple[list[str], str]:
    """Have a second process *send* to the socket of the hooks. Return the troubles, and the figures in words."""
    watched = Watched()
    good = connected(watched.hook_socket, socket.SOCK_SEQPACKET)
    good.send(json.dumps({"type": "hook", "ppid": 1, "argv": ["good"], "python": "3", "executable": "good"}).encode())

    def send_good(number: int) -> bytes:
        told = {
            "type": "requested",
            "call": "set_memory_growth",
            "file": "good.py",
            "line": number,
        }
        told |= dict.fromkeys(("devices", "growth", "logical", "device_type", "error"))
        good.send(json.dumps(told).encode())
        return b'"good.py","line":%d,' % number

    child = _aside(lambda: send(watched.hook_socket))
    return _meanwhile(watched, child, send_good)


def _flood_hook(path: str, packets: list[bytes], chance: random.Random, count: int) -> None:
    line = partial(connected, path, socket.SOCK_SEQPACKET)
    lines = [line() for _ in range(_LINES)]
    for _ in range(count):
        at = chance.randrange(_LINES)
        odds = chance.random()
        if odds < 0.003:
            lines[at].close()
            lines[at] = line()
        elif odds < 0.004:
            lines[at].shutdown(socket.SHUT_WR)  # half closed
            lines[at] = line()
        packet = chance.choice(packets)
        if odds > 0.98:
            packet = chance.randbytes(chance.choice((0, 1, 70_000)))
        try:
            lines[at].send(packet)
        except OSError:
            lines[at] = line()  # the engine has closed the connection, or the packet is larger than the kernel allows


def commands(seed: int, count: int) -> tuple[list[str], str]:
    """Send *count* lines of commands from many screens. Return the troubles, and the figures in words.

    Left out are well-formed commands that would end the run, send a signal to a process, or leave.
    """
    watched = Watched()
    chance = random.Random(seed)
    made = [line.replace(b"\n", b" ") for line in pool(events.command_types(), chance, min(_POOL, count))]
    lines = [line for line in made if not _acts(line)]

    def send_good(number: int) -> bytes:
        watched.screen.sendall(b'{"do":"resize","columns":%d,"rows":24}\n' % (1000 + number))
        return b'"columns":%d,"rows":24' % (1000 + number)

    child = _aside(lambda: _flood_commands(watched.socket, lines, chance, count))
    return _meanwhile(watched, child, send_good)


def _acts(line: bytes) -> bool:
    try:
        return isinstance(events.decode_command(line), (events.Stop, events.Relaunch, events.Signal, events.Leave))
    except events.Unreadable:
        return False


def _flood_commands(path: str, lines: list[bytes], chance: random.Random, count: int) -> None:
    screens = [connected(path) for _ in range(8)]
    sent = 0
    while sent < count:
        at = chance.randrange(len(screens))
        batch = [chance.choice(lines) for _ in range(chance.choice((1, 5, 50)))]
        data = b"\n".join(batch) + (b"\n" if chance.random() < 0.95 else b"")
        if chance.random() < 0.001:
            data = b"z" * (3 << 20)  # a line without end
        sent += len(batch)
        try:
            screens[at].sendall(data)
            # Most of the screens read what they receive, two never do.
            for reading in screens[2:]:
                with suppress(BlockingIOError):
                    while reading.recv(_READ, socket.MSG_DONTWAIT):
                        pass
        except OSError:
            screens[at].close()
            screens[at] = connected(path)
        if chance.random() < 0.001:
            screens[at].close()
            screens[at] = connected(path)


def _aside(work: Callable[[], None]) -> int:
    """Call *work* in a process of its own. Return its pid."""
    if pid := os.fork():
        return pid
    code = 1
    try:
        work()
        code = 0
    except Exception as error:
        print(f"the sender has ended: {error!r}", flush=True)
    finally:
        os._exit(code)


def _meanwhile(watched: Watched, child: int, send_good: Callable[[int], bytes]) -> tuple[list[str], str]:
    """Send good messages until the sender has ended, and one more. Return the troubles, and the figures in words."""
    sent = arrived = 0
    over = False
    while True:
        over = over or os.waitpid(child, os.WNOHANG)[0] == child
        sent += 1
        try:
            mark = send_good(sent)
        except OSError as error:
            watched.troubles.append(f"a good message cannot be sent: {error}")
            break
        if watched.wait_for(mark, HANG_S):
            arrived += 1
        else:
            watched.troubles.append(f"a good message did not arrive within {HANG_S:.0f} s")
            if watched.wait_for(mark, 15):  # it is late, or it was lost
                watched.troubles.append(f"one came after {watched.slowest:.1f} s")
        if not watched.look() or over or len(watched.troubles) > 20:
            break
        time.sleep(_GOOD_EVERY_S)
    with suppress(ProcessLookupError, ChildProcessError):
        if not over:
            os.kill(child, signal.SIGKILL)
    reap()
    figures = (
        f"{arrived} of {sent} good ones arrived, the slowest after {watched.slowest:.2f} s; {watched.most >> 20} MiB"
    )
    return watched.close(), figures
