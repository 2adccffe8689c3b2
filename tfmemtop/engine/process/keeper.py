"""The engine's parent: it leads the process session and holds the terminal, so that the script survives the engine.

When the leader of a process session ends, or the last master of its terminal closes, the Linux kernel hangs up on the
script (SIGHUP). A terminal that is not read blocks the script. The keeper only waits for the engine. If the engine is
killed, the keeper drains the terminal into the output file, until the script and the processes that it left behind have
ended.

A user who kills all processes called tfmemtop (``pkill -9 -f tfmemtop``) wants to end the engine and the screen, not
the script. So the keeper has another name.
"""

import errno
import os
import select
import signal
import time
from collections.abc import Iterable
from contextlib import suppress
from typing import NoReturn

from tfmemtop.boot import KEEPER
from tfmemtop.engine.process.daemon import detach, rename
from tfmemtop.engine.process.keeping import farewell
from tfmemtop.engine.process.kept_output import KeptOutput
from tfmemtop.engine.process.terminal import PseudoTerminal

_PACE_S = 0.5
_READ = 16 * 1024


class Keeper:
    """The engine's connection to its keeper."""

    def __init__(self, line: int) -> None:
        self._line = line

    def output_goes_to(self, path: str) -> None:
        """Send the keeper the path of the file to drain the terminal into. Call this before there is output."""
        os.write(self._line, os.fsencode(path))


def leave_behind(terminal: PseudoTerminal, others: Iterable[int]) -> Keeper:
    """Fork: the parent becomes the keeper and never returns, the child goes on as the engine.

    Call this before there are other threads. *others* are file descriptors that the keeper must not hold open.
    """
    ours, engines = os.pipe()
    engine = os.fork()
    if engine:
        os.close(engines)
        for descriptor in others:
            os.close(descriptor)
        _keep(engine, terminal, ours)
    os.close(ours)
    return Keeper(engines)


def _keep(engine: int, terminal: PseudoTerminal, line: int) -> NoReturn:
    # A signal that is meant for the engine or the script must not end this process.
    for number in signal.valid_signals() - {signal.SIGCHLD, signal.SIGKILL, signal.SIGSTOP}:
        with suppress(OSError):  # some real-time signals belong to the C library
            signal.signal(number, signal.SIG_IGN)
    detach(os.devnull)
    rename(KEEPER)
    # From now on only the script and the engine hold the terminal's other end, so that a hang-up can be detected.
    os.close(terminal.slave)
    _, status = os.waitpid(engine, 0)
    code = os.waitstatus_to_exitcode(status)
    if code:
        _replace(terminal.master, os.read(line, 4096), f"\r\n{farewell(code)}\r\n")
    os._exit(max(code, 0))


def _replace(master: int, path: bytes, last_words: str) -> None:
    """Drain *master* into the file *path*, if that can be opened, until no process is left that could write to it."""
    if _hung_up(master):
        return  # there is no script yet, or it has ended
    # Draining goes on even if the disk is full or read-only, so that the script is not blocked.
    kept = KeptOutput(path or os.devnull)
    kept.write(last_words.encode())
    while True:
        open_still = _drain(master, kept)
        if not open_still and not _session_lives():
            return
        if open_still:
            select.select([master], [], [], _PACE_S)
        else:
            time.sleep(_PACE_S)  # select() would return at once, since no process has the terminal open


def _hung_up(master: int) -> bool:
    waiting = select.poll()
    waiting.register(master, select.POLLIN)
    events = dict(waiting.poll(0)).get(master, 0)
    return bool(events & select.POLLHUP) and not events & select.POLLIN and not _session_lives()


def _drain(master: int, kept: KeptOutput) -> bool:
    """Drain what can be read now. Return whether a process still has the terminal open."""
    try:
        while data := os.read(master, _READ):
            kept.write(data)
    except OSError as error:
        return error.errno != errno.EIO
    return True


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
