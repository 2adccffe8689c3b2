"""Runs a command to its end and keeps all that a user could notice: bytes, exit code, processes and files left behind.

The process that does this is a subreaper. It takes the place of process 1: the processes that a run leaves behind
become its children.
"""

import ctypes
import os
import selectors
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, NamedTuple

from tests.tools.corpus.script import Script, Sink, Stdin
from tfmemtop.engine.sources.processes import descendants, read_command

SETTLE_S = 1.5
"""The time in which processes that a run left behind may go on printing."""
_LEAVE_S = 60.0
_GOING_S = 5.0  # the time that ending processes, such as multiprocessing's tracker, may take in a run without tfmemtop
_READ = 1 << 16
_LOOK_S = 0.02
_PR_SET_CHILD_SUBREAPER = 36


class RunOutcome(NamedTuple):
    """How a run ended. A signal is 128 plus its number, as in a shell."""

    stdout: bytes
    stderr: bytes
    code: int
    processes: tuple[str, ...] = ()
    files: tuple[str, ...] = ()


HUNG = 1000
"""The exit code of a command that did not end and was killed."""


def become_init() -> None:
    """Take the place of process 1 for every process that is started from here."""
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def run(
    script: Script, command: list[str], environment: dict[str, str], cwd: Path, limit_s: float, like: RunOutcome | None
) -> RunOutcome:
    """Run *command* with the streams that *script* wants, and return the outcome.

    Wait until no more processes are left behind than in the outcome *like*, for a while at most.
    """
    with _streams(script, cwd) as (streams, closed, readers, target):

        def prepare() -> None:
            for each in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
                signal.signal(each, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_SETMASK, [])
            if script.prepare is not None:
                script.prepare()
            for number in closed:
                os.close(number)

        process = subprocess.Popen(
            command,
            cwd=cwd,
            env=environment,
            stdin=streams[0],
            stdout=streams[1],
            stderr=streams[2],
            start_new_session=True,
            preexec_fn=prepare,
        )
        for stream in streams:
            if not isinstance(stream, int):
                stream.close()
        found = _read(process.pid, readers, limit_s)
        code = found.code if found.code == HUNG else _status(process)
        stdout = target.read_bytes() if target else found.texts[0]
        processes = left_behind(like.processes if like else None)
    return RunOutcome(stdout, found.texts[1], code, processes)


def wait(there: Callable[[], object], limit_s: float) -> bool:
    """Wait until *there* returns something true. Return False if that takes longer than *limit_s* seconds."""
    until = time.monotonic() + limit_s
    while not there():
        if time.monotonic() > until:
            return False
        time.sleep(_LOOK_S)
    return True


def connected(path: str | Path, kind: socket.SocketKind = socket.SOCK_STREAM) -> socket.socket:
    """Return a connection to the unix socket at *path*."""
    line = socket.socket(socket.AF_UNIX, kind)
    try:
        line.connect(str(path))
    except OSError:
        line.close()
        raise
    return line


def left_behind(expected: Collection[str] | None) -> tuple[str, ...]:
    """Return the commands that still run, and end them all. First wait a while until only *expected* are left."""
    wait(lambda: _commands() == sorted(expected or ()), _GOING_S if expected is None else _LEAVE_S)
    found = _commands()
    end_all()
    return tuple(found)


def end_all() -> None:
    """Kill and collect every process that descends from this process."""
    while victims := descendants(os.getpid()):
        for pid in victims:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        reap()
        time.sleep(0.005)
    reap()


def reap() -> None:
    """Collect the ended processes that have become children of this one."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _commands() -> list[str]:
    reap()
    found = []
    for pid in descendants(os.getpid()):
        words = read_command(pid)
        if words:
            found.append(" ".join(words)[:200])
    return sorted(found)


class _Read(NamedTuple):
    texts: list[bytes]
    code: int


def _read(pid: int, readers: list[int | None], limit_s: float) -> _Read:
    """Read until the process has ended and no process holds the pipes; at most :data:`SETTLE_S` after the end."""
    texts = [bytearray(), bytearray()]
    ended = os.pidfd_open(pid)
    code = 0
    with selectors.DefaultSelector() as selector:
        selector.register(ended, selectors.EVENT_READ)
        for number, reader in enumerate(readers):
            if reader is not None:
                selector.register(reader, selectors.EVENT_READ, texts[number])
        until = time.monotonic() + limit_s
        alive = True
        while selector.get_map():
            left = until - time.monotonic()
            if left <= 0 and not alive:
                break
            if left <= 0:
                code = HUNG
                os.killpg(pid, signal.SIGKILL)
                until = time.monotonic() + limit_s
            for key, _ in selector.select(max(0.0, left)):
                if key.fd == ended:
                    selector.unregister(ended)
                    alive, until = False, time.monotonic() + SETTLE_S
                elif data := os.read(key.fd, _READ):
                    key.data.extend(data)
                else:
                    selector.unregister(key.fd)
    os.close(ended)
    return _Read([bytes(text) for text in texts], code)


def _status(process: "subprocess.Popen[bytes]") -> int:
    code = process.wait()
    return code if code >= 0 else 128 - code


Streams = tuple[list[int | IO[bytes]], list[int], list[int | None], Path | None]


@contextmanager
def _streams(script: Script, cwd: Path) -> Iterator[Streams]:
    """Yield the streams for descriptors 0 to 2, the numbers to close, the descriptors to read, and the stdout file."""
    opened: list[int] = []
    closed: list[int] = []
    readers: list[int | None] = []
    target = cwd.parent / "stdout" if script.stdout == "file" else None
    streams: list[int | IO[bytes]] = [_stdin(script.stdin, closed, opened)]
    for number, sink in ((1, script.stdout), (2, script.stderr)):
        stream, reader = _sink(sink, number, closed, opened, target)
        streams.append(stream)
        readers.append(reader)
    try:
        yield streams, closed, readers, target
    finally:
        for descriptor in opened:
            with suppress(OSError):
                os.close(descriptor)
        if target is not None:
            target.unlink(missing_ok=True)


def _stdin(wanted: Stdin, closed: list[int], opened: list[int]) -> int | IO[bytes]:
    if wanted == "closed":
        closed.append(0)
        return subprocess.DEVNULL
    if isinstance(wanted, bytes):
        reading, writing = os.pipe()
        os.set_blocking(writing, False)
        os.write(writing, wanted)  # no more than a pipe has room for
        os.close(writing)
        return os.fdopen(reading, "rb")
    if wanted == "socket":
        ours, theirs = socket.socketpair()
        opened.append(ours.detach())
        return os.fdopen(theirs.detach(), "rb")
    return Path({"null": os.devnull, "zero": "/dev/zero"}[wanted]).open("rb")


def _sink(
    wanted: Sink, number: int, closed: list[int], opened: list[int], target: Path | None
) -> tuple[int | IO[bytes], int | None]:
    if wanted == "closed":
        closed.append(number)
        return subprocess.DEVNULL, None
    if wanted == "same":
        return subprocess.STDOUT, None
    if wanted in ("pipe", "broken"):
        reading, writing = os.pipe()
        if wanted == "broken":
            os.close(reading)
            return os.fdopen(writing, "wb"), None
        opened.append(reading)
        return os.fdopen(writing, "wb"), reading
    path = {"full": "/dev/full", "null": os.devnull, "file": str(target)}[wanted]
    return Path(path).open("wb"), None
