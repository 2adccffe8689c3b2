"""The engine's parent: it leads the process session and reads the terminal, so that the script never waits for us.

When the leader of a process session ends, or the last master of its terminal closes, the Linux kernel hangs up on the
script (SIGHUP). A terminal that is not read blocks the script. So the keeper reads the terminal all the time, and waits
for nobody: neither for the engine, which may be stopped or killed, nor for the file system of the output file, which
may not answer. What they are too slow for waits in memory, up to a limit. Then the oldest is left out, and how much is
told. If the engine is killed, the keeper goes on until the script and the processes that it left behind have ended.

A user who kills all processes called tfmemtop (``pkill -9 -f tfmemtop``) wants to end the engine and the screen, not
the script. So the keeper has another name.
"""

import errno
import marshal
import os
import select
import signal
import socket
import time
from collections.abc import Iterable
from concurrent.futures import Future
from contextlib import suppress
from typing import NamedTuple, NoReturn

from setproctitle import setproctitle

from tfmemtop.boot import KEEPER
from tfmemtop.engine.own_thread import WAIT_S, OwnThread
from tfmemtop.engine.process.kept_output import KeptOutput
from tfmemtop.engine.process.pseudo_terminal import PseudoTerminal, detach
from tfmemtop.exit_codes import signal_name
from tfmemtop.units import MIB

CHUNK = 16 * 1024
"""Bytes of output that the engine gets at once."""
BURST = 256 * 1024
"""Bytes of output that wait for the engine; a larger burst is cut to its newest end."""
BUFFER = 16 * MIB
"""Bytes of output that wait for the file system, with a few more that the present write has."""

_PACE_S = 0.5
_HOLD_S = 0.5
"""How long the engine, at the end of a run, is kept waiting until the output is in the file."""
_READS_A_TURN = 64  # this reads more than a terminal holds
_READ = 16 * 1024  # the Linux kernel returns a quarter of that at once
_NO_ANSWER = os.strerror(errno.ETIMEDOUT)
_NEXT, _ALL, _PATH = b"next", b"all", b"to "


class Packet(NamedTuple):
    """What the keeper sends: bytes of output, and how many bytes were left out before them.

    ``all`` is whether this answers :meth:`Keeper.ask_for_all` and no output is left. ``trouble`` is why the output file
    cannot be written, or empty.
    """

    skipped: int
    all: bool
    trouble: str
    data: bytes


class Keeper:
    """The engine's connection to its keeper. The keeper sends output only when it is asked for."""

    def __init__(self, line: socket.socket) -> None:
        self.line = line

    def output_goes_to(self, path: str) -> None:
        """Send the path of the output file. The output waits until then."""
        self._send(_PATH + os.fsencode(path))

    def ask(self) -> None:
        """Ask for the next packet, which comes as soon as there is output, or news of the output file."""
        self._send(_NEXT)

    def ask_for_all(self) -> None:
        """Ask for a packet with the output that is there now. It comes at once, even if there is none."""
        self._send(_ALL)

    def end(self) -> None:
        """Ask for nothing more. Once all output is in the file, the keeper closes the connection."""
        with suppress(OSError):
            self.line.shutdown(socket.SHUT_WR)

    def receive(self) -> Packet | None:
        """Return the next packet; ``None`` if the keeper has closed the connection.

        Raises:
            BlockingIOError: there is no packet yet.
        """
        try:
            sent = self.line.recv(2 * CHUNK)
        except ConnectionError:
            return None
        return Packet(*marshal.loads(sent)) if sent else None

    def _send(self, asked: bytes) -> None:
        with suppress(OSError):  # the keeper was killed
            self.line.send(asked)


def leave_behind(terminal: PseudoTerminal, others: Iterable[int]) -> Keeper:
    """Fork: the parent becomes the keeper and never returns, the child goes on as the engine.

    Call this before there are other threads. *others* are file descriptors that the keeper must not hold open.
    """
    ours, engines = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.setblocking(False)
    engines.setblocking(False)
    engine = os.fork()
    if engine:
        engines.close()
        for descriptor in others:
            os.close(descriptor)
        _keep(engine, terminal, ours)
    ours.close()
    return Keeper(engines)


def _keep(engine: int, terminal: PseudoTerminal, line: socket.socket) -> NoReturn:
    # A signal that is meant for the engine or the script must not end this process.
    for number in signal.valid_signals() - {signal.SIGCHLD, signal.SIGKILL, signal.SIGSTOP}:
        with suppress(OSError):  # some real-time signals belong to the C library
            signal.signal(number, signal.SIG_IGN)
    detach(os.devnull)
    setproctitle(KEEPER)
    # From now on only the script and the engine hold the terminal's other end, so that a hang-up can be detected.
    os.close(terminal.slave)
    keeping = _Keeping(terminal.master, line)
    code = keeping.until_ended(engine)
    if code and not _hung_up(terminal.master):
        keeping.say(f"\r\n{farewell(code)}\r\n")
        keeping.until_nobody_is_left()
    keeping.write_rest()
    os._exit(max(code, 0))


class _Newest:
    """Bytes of output that wait for a slow reader, in order.

    If more than *most* wait, only the last *kept* of them stay, from a line's start.
    """

    def __init__(self, most: int, kept: int) -> None:
        self._most = most
        self._kept = kept
        self._bytes = bytearray()
        self._skipped = 0

    def __len__(self) -> int:
        return len(self._bytes)

    def push(self, data: bytes | bytearray) -> None:
        """Add *data* at the end."""
        self._bytes += data
        if len(self._bytes) > self._most:
            self._skip()

    def take(self, count: int) -> tuple[int, bytes]:
        """Remove the first bytes, at most *count*. Return how many were left out before them, and the bytes.

        Who has missed output already gets the newest.
        """
        if self._skipped and len(self._bytes) > self._kept:
            self._skip()
        skipped, self._skipped = self._skipped, 0
        taken = bytes(self._bytes[:count])
        del self._bytes[:count]
        return skipped, taken

    def _skip(self) -> None:
        cut = len(self._bytes) - self._kept
        line = self._bytes.find(b"\n", cut, cut + self._kept // 4)
        if line >= 0:
            cut = line + 1
        while cut < len(self._bytes) and self._bytes[cut] & 0xC0 == 0x80:
            cut += 1  # not in the middle of a character
        del self._bytes[:cut]
        self._skipped += cut


def farewell(code: int) -> str:
    """Return the line about an engine that has ended while its script runs.

    *code* is its exit code, or if negative, the negated number of the signal that ended it.
    """
    how = f"was ended by {signal_name(-code)}" if code < 0 else "has failed"
    return f"[tfmemtop {how}; the script goes on]"


class _Keeping:
    """Passes what *master* has to the engine and to the output file, each as fast as it can take it."""

    def __init__(self, master: int, line: socket.socket) -> None:
        self._master = master
        self._open = True  # whether a process has the terminal open
        self._line: socket.socket | None = line
        self._asked, self._asked_at = b"", 0.0
        self._ends = False  # the engine asks for nothing more
        self._told = ""  # the trouble that the engine knows
        self._for_engine = _Newest(BURST, CHUNK)
        self._for_file = _Newest(BUFFER, BUFFER - MIB)
        self._kept: KeptOutput | None = None
        self._thread = OwnThread("output file")
        self._writing: Future[None] | None = None
        self._writing_since = 0.0
        self._bell, self._rope = os.pipe()  # rung when a write, or the engine, has ended
        for end in (self._bell, self._rope):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(self._rope, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)

    def until_ended(self, engine: int) -> int:
        """Go on until the process *engine* has ended. Return its exit code."""
        while True:
            pid, status = os.waitpid(engine, os.WNOHANG)
            self._turn(wait=not pid)
            if pid:
                return os.waitstatus_to_exitcode(status)

    def until_nobody_is_left(self) -> None:
        """Go on until no process is left that could write to the terminal."""
        while self._turn() or _session_lives():
            pass

    def say(self, words: str) -> None:
        """Add *words* to the output file."""
        self._for_file.push(words.encode())

    def write_rest(self) -> None:
        """Write what waits for the file. A file system that does not answer is waited for a few seconds."""
        until = time.monotonic() + WAIT_S
        while self._behind and time.monotonic() < until:
            self._write()
            self._wait(_PACE_S, self._bell)

    def _turn(self, wait: bool = True) -> bool:
        """Wait for news, and pass them on. Return whether a process has the terminal open."""
        listening = [self._line] if self._line is not None and not self._ends else []
        try:
            pace = _PACE_S if self._writing or not self._open else None
            self._wait(pace if wait else 0.0, self._bell, *listening, *([self._master] if self._open else []))
            for line in listening:
                self._hear(line)
            self._open = self._read()
            self._write()
            if self._line is not None:
                self._answer(self._line)
            return self._open
        except Exception:
            # Such as a lack of memory. The end of this process would hang up on the script.
            time.sleep(_PACE_S)
            return False

    def _wait(self, limit_s: float | None, *ends: int | socket.socket) -> None:
        waiting = select.poll()
        for end in ends:
            waiting.register(end, select.POLLIN)
        waiting.poll(None if limit_s is None else limit_s * 1000)
        with suppress(BlockingIOError):
            os.read(self._bell, _READ)

    def _hear(self, line: socket.socket) -> None:
        try:
            asked = line.recv(_READ)
        except BlockingIOError:
            return
        except OSError:
            asked = b""
        if not asked:
            self._ends = True
        elif asked.startswith(_PATH):
            self._kept = KeptOutput(asked[len(_PATH) :])
        else:
            self._asked, self._asked_at = asked, time.monotonic()

    def _read(self) -> bool:
        """Read the output that is there, up to a bound. Return whether a process has the terminal open."""
        news, is_open = bytearray(), True
        try:
            for _ in range(_READS_A_TURN):
                news += os.read(self._master, _READ)
        except BlockingIOError:
            pass
        except OSError as error:
            is_open = error.errno != errno.EIO
        self._for_engine.push(news)
        self._for_file.push(news)
        return is_open

    @property
    def _behind(self) -> bool:
        """Whether output waits for the file."""
        return self._kept is not None and (self._writing is not None or len(self._for_file) > 0)

    def _write(self) -> None:
        if self._writing is not None and self._writing.done():
            self._writing = None
        if self._kept is None or self._writing is not None or not self._for_file:
            return
        skipped, data = self._for_file.take(MIB)
        self._writing_since = time.monotonic()
        try:
            self._writing = self._thread.submit(self._kept.write, data, skipped)
        except RuntimeError:  # no more threads are allowed
            self._kept.write(data, skipped)
        else:
            self._writing.add_done_callback(lambda _: self._ring())

    def _ring(self) -> None:
        with suppress(BlockingIOError):
            os.write(self._rope, b"!")

    def _answer(self, line: socket.socket) -> None:
        now = time.monotonic()
        written_for = now - self._writing_since if self._writing is not None else 0.0
        trouble = _NO_ANSWER if written_for > WAIT_S else self._kept.trouble if self._kept is not None else ""
        if self._ends:
            if not self._behind:
                line.close()
                self._line = None
            return
        if self._asked == _ALL:
            if self._behind and max(written_for, now - self._asked_at) < _HOLD_S:
                return
        elif not self._asked or (not self._for_engine and trouble == self._told):
            return
        skipped, data = self._for_engine.take(CHUNK)
        packet = Packet(skipped, self._asked == _ALL and not self._for_engine, trouble, data)
        self._asked, self._told = b"", trouble
        with suppress(OSError):  # the engine was killed
            line.send(marshal.dumps(tuple(packet)))


def _hung_up(master: int) -> bool:
    waiting = select.poll()
    waiting.register(master, select.POLLIN)
    events = dict(waiting.poll(0)).get(master, 0)
    return bool(events & select.POLLHUP) and not events & select.POLLIN and not _session_lives()


def _session_lives() -> bool:
    """Return whether another process is in this process session. The end of this one would hang up on it."""
    own, session = os.getpid(), os.getsid(0)
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) != own:
            with suppress(OSError), open(f"/proc/{name}/stat", "rb") as file:
                fields = file.read().rpartition(b")")[2].split()
                if int(fields[3]) == session and fields[0] not in (b"Z", b"X"):
                    return True
    return False
