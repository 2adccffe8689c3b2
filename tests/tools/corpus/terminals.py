"""The same comparison on terminals: the script under the live screen, and bare as a shell starts it."""

import fcntl
import os
import re
import selectors
import signal
import socket
import struct
import termios
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

import msgspec

from tests.tools.corpus.running import HUNG, SETTLE_S, RunOutcome, connected, left_behind, reap, wait
from tests.tools.terminal import SIZE, Terminal
from tfmemtop import events
from tfmemtop.engine.sources.processes import descendants, read_command

_LOOK_S = 0.02
_READ = 1 << 16
_QUIT_S = 60.0


class SecondReader:
    """What a second reader of the engine receives about the run.

    If sessions of others are in the same folder, *of* is a text that only the description of this session contains.
    """

    def __init__(self, runtime: Path, pattern: str = "tfmemtop/*/engine.sock", of: str = "") -> None:
        self._runtime = runtime
        self._pattern = pattern
        self._of = of
        self._socket: socket.socket | None = None
        self._rest = b""
        self.size: tuple[int, int] | None = None
        self.end: events.RunEnd | None = None

    def look(self) -> bool:
        """Read the events that have arrived, and connect before if need be. Return whether the run is over."""
        if self._socket is None:
            self._socket = self._found()
        with suppress(OSError):
            while self._socket and (data := self._socket.recv(_READ)):
                *lines, self._rest = (self._rest + data).split(b"\n")
                for line in lines:
                    self._take(line)
        return self.end is not None

    def _found(self) -> socket.socket | None:
        paths: list[Path] = []
        with suppress(FileNotFoundError):  # the last engine to end removes the folder of all
            paths.extend(self._runtime.glob(self._pattern))
        for path in paths:
            with suppress(OSError):  # it has no description yet, or the engine has ended
                if self._of in str((path.parent / "session").readlink()):
                    found = connected(path)
                    found.setblocking(False)
                    return found
        return None

    @property
    def reached(self) -> bool:
        """Whether the engine has answered."""
        return self.size is not None

    def close(self) -> None:
        """Close the connection."""
        if self._socket is not None:
            self._socket.close()

    def _take(self, line: bytes) -> None:
        with suppress(msgspec.MsgspecError, UnicodeDecodeError):
            event = events.decode_event(line)
            if isinstance(event, events.RunEnd):
                self.end = event
            elif isinstance(event, events.Terminal) and self.size is None:
                self.size = event.columns, event.rows


def refused(code: int, said: str, may_be: bool) -> list[str]:
    """Return what is wrong with a start that was refused with *code*. *said* is all that was printed about it."""
    said = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", said)
    lines = [line for line in said.splitlines() if line.strip()]
    if code == 0 or len(lines) != 1 or not lines[0].startswith("tfmemtop: "):
        return [f"refused with {code} and {len(lines)} lines: {said[-300:]!r}"]
    return [] if may_be else [f"refused, though nothing there is needed: {lines[0]}"]


def live(
    tfmemtop: Sequence[str],
    command: Sequence[str],
    environment: Mapping[str, str],
    folders: tuple[Path, Path, Path],
    limit_s: float,
) -> tuple[RunOutcome, tuple[int, int]]:
    """Run *command* under the live screen, and leave the screen when the run has ended.

    *folders* are the working folder, that for sessions, and that for outputs. In the outcome returned stdout is the
    kept output, and stderr what the program prints if it shows no screen. The second value returned is the size of the
    script's terminal in columns and rows.
    """
    cwd, runtime, state = folders
    screen, reader = Terminal([*tfmemtop, "--", *command], environment, cwd), SecondReader(runtime)
    try:
        wait(lambda: reader.look() or screen.code is not None, limit_s)
        time.sleep(SETTLE_S if reader.end else 0)
        reader.close()
        screen.press(b"q")
        wait(lambda: screen.code is not None, _QUIT_S)
        logs = [path for path in state.glob("tfmemtop/*.log") if not path.name.endswith(".engine.log")]
        said = b"" if b"\x1b[?1049h" in screen.drawn else bytes(screen.drawn)
        code = HUNG if screen.code is None else screen.code
    finally:
        screen.close()
    processes = left_behind(())
    return RunOutcome(b"".join(path.read_bytes() for path in logs), said, code, processes), reader.size or SIZE


def bare(
    command: Sequence[str], environment: Mapping[str, str], cwd: Path, size: tuple[int, int], limit_s: float
) -> RunOutcome:
    """Run *command* as a shell that leads a session does: in the foreground group of its terminal."""
    told, tell = os.pipe()
    rope, pull = os.pipe()
    master, slave = os.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", size[1], size[0], 0, 0))
    leader = os.fork()
    if leader == 0:
        os.close(master)
        os.close(pull)
        _lead(command, environment, cwd, slave, tell, rope)
    for descriptor in (slave, tell, rope):
        os.close(descriptor)
    os.set_blocking(master, False)
    printed = bytearray()
    until = time.monotonic() + limit_s
    status = b""
    with selectors.DefaultSelector() as selector:
        selector.register(master, selectors.EVENT_READ)
        selector.register(told, selectors.EVENT_READ)
        while (left := until - time.monotonic()) > 0:
            for key, _ in selector.select(left):
                try:
                    data = os.read(key.fd, _READ)
                except OSError:
                    data = b""
                if key.fd == master and data:
                    printed += data
                    continue
                selector.unregister(key.fd)
                if key.fd == told:
                    status, until = data, time.monotonic() + SETTLE_S
    code = struct.unpack("i", status)[0] if status else HUNG
    waiting = _without(leader)
    os.close(pull)
    for descriptor in (master, told):
        os.close(descriptor)
    left_behind(None)
    return RunOutcome(bytes(printed), b"", code if code >= 0 else 128 - code, waiting)


def _without(leader: int) -> tuple[str, ...]:
    """Return what the script left behind, without *leader*, which waits until this process closes its pipe."""
    reap()
    return tuple(sorted(" ".join(read_command(pid))[:200] for pid in descendants(os.getpid()) if pid != leader))


def _lead(
    command: Sequence[str], environment: Mapping[str, str], cwd: Path, slave: int, tell: int, rope: int
) -> NoReturn:
    try:
        os.setsid()
        fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
        script = os.fork()
        if script == 0:
            try:
                os.setpgid(0, 0)
                signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTTOU])
                os.tcsetpgrp(slave, os.getpid())
                signal.pthread_sigmask(signal.SIG_SETMASK, [])
                for ignored in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores these two from its start on
                    signal.signal(ignored, signal.SIG_DFL)
                for number in range(3):
                    os.dup2(slave, number)
                os.chdir(cwd)
                os.execvpe(command[0], list(command), dict(environment))
            finally:
                os._exit(127)
        _, status = os.waitpid(script, 0)
        os.write(tell, struct.pack("i", os.waitstatus_to_exitcode(status)))
        os.read(rope, 1)
    finally:
        os._exit(0)
