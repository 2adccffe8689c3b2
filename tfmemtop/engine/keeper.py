"""The engine's parent: it leads the session and holds the terminal, so that the engine's death is not the script's.

When the leader of a session dies, or the last master of its terminal closes, the kernel hangs up on the
script; and a terminal that nobody reads blocks it. The keeper does nothing but wait. Only if the engine
is killed does it go on in its place as far as the script can tell: it drains the terminal into the
output file until the script and what it left behind have ended.

Whoever ends everything that is called tfmemtop (``pkill -9 -f tfmemtop``) wants to be rid of a monitor and not of the
training. So the keeper bears another name.
"""

import errno
import os
import select
import signal
import time
from collections.abc import Iterable
from contextlib import suppress
from typing import NoReturn

from tfmemtop.engine.daemon import detach, rename
from tfmemtop.engine.kept_output import KeptOutput
from tfmemtop.engine.terminal import PseudoTerminal

NAME = "pty-keeper"

_PACE_S = 0.5
_READ = 16 * 1024


class Keeper:
    """The engine's side of it: an engine that has a keeper says where the output goes, before there is any."""

    def __init__(self, line: int) -> None:
        self._line = line

    def output_goes_to(self, path: str) -> None:
        """What is drained in our place goes there."""
        os.write(self._line, os.fsencode(path))


def leave_behind(terminal: PseudoTerminal, others: Iterable[int]) -> Keeper:
    """Fork: the parent stays behind as the keeper and never returns, the child goes on as the engine.

    To be called before there are threads. *others* are descriptors that the keeper is not to hold open.
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
    # Who means the engine or the script does not mean the terminal between them.
    for number in signal.valid_signals() - {signal.SIGCHLD, signal.SIGKILL, signal.SIGSTOP}:
        with suppress(OSError):  # some real-time signals are the C library's own
            signal.signal(number, signal.SIG_IGN)
    detach(os.devnull)
    rename(NAME)
    # Not to be seen as hung up on: from now on only the script and the engine hold the terminal's other end.
    os.close(terminal.slave)
    _, status = os.waitpid(engine, 0)
    code = os.waitstatus_to_exitcode(status)
    if code:
        how = f"was ended by {signal.Signals(-code).name}" if code < 0 else "has failed"
        _replace(terminal.master, os.read(line, 4096), f"\r\n[tfmemtop {how}; the script goes on]\r\n")
    os._exit(max(code, 0))


def _replace(master: int, path: bytes, farewell: str) -> None:
    """Drain *master* into the file *path*, if it can be opened, until nobody is left who could write to it."""
    if _hung_up(master):
        return  # there is no script yet, or no more
    # A full or read-only disk is no reason to stop: what counts is that the script is not blocked.
    kept = KeptOutput(path or os.devnull)
    kept.write(farewell.encode())
    while True:
        open_still = _drain(master, kept)
        if not open_still and not _session_lives():
            return
        if open_still:
            select.select([master], [], [], _PACE_S)
        else:
            time.sleep(_PACE_S)  # it would be told at once, each time, that nobody has the terminal open


def _hung_up(master: int) -> bool:
    waiting = select.poll()
    waiting.register(master, select.POLLIN)
    events = dict(waiting.poll(0)).get(master, 0)
    return bool(events & select.POLLHUP) and not events & select.POLLIN and not _session_lives()


def _drain(master: int, kept: KeptOutput) -> bool:
    """Whether anybody has the terminal open still."""
    try:
        while data := os.read(master, _READ):
            kept.write(data)
    except OSError as error:
        return error.errno != errno.EIO
    return True


def _session_lives() -> bool:
    """Whether any process but this one is in this session: all of them would be hung up on."""
    own, session = os.getpid(), os.getsid(0)
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) != own:
            with suppress(OSError), open(f"/proc/{name}/stat", "rb") as file:
                fields = file.read().rpartition(b")")[2].split()
                if int(fields[3]) == session and fields[0] not in (b"Z", b"X"):
                    return True
    return False
