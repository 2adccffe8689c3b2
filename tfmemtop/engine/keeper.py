"""The engine's parent: it leads the session and holds the terminal, so that the engine's death is not the script's.

When the leader of a session dies, or the last master of its terminal closes, the kernel hangs up on the
script; and a terminal that nobody reads blocks it. The keeper does nothing but wait. Only if the engine
is killed does it go on in its place as far as the script can tell: it drains the terminal into the
output file until the script and what it left behind have ended.
"""

import os
import select
import signal
from collections.abc import Iterable
from contextlib import suppress
from typing import NoReturn

from tfmemtop.engine.daemon import become_subreaper, detach
from tfmemtop.engine.terminal import PseudoTerminal

_PACE_S = 0.5
_READ = 16 * 1024


class Keeper:
    """The engine's side of it: an engine that has a keeper says where the output goes, once it knows."""

    def __init__(self, line: int) -> None:
        self._line = line

    def output_goes_to(self, path: str) -> None:
        """What is drained in our place goes there."""
        os.write(self._line, os.fsencode(path))


def leave_behind(terminal: PseudoTerminal, inherited: Iterable[int]) -> Keeper:
    """Fork: the parent stays behind as the keeper and never returns, the child goes on as the engine.

    To be called before there are threads. *inherited* descriptors are the script's, and closed in the keeper.
    """
    ours, engines = os.pipe()
    engine = os.fork()
    if engine:
        os.close(engines)
        for descriptor in inherited:
            os.close(descriptor)
        _keep(engine, terminal, ours)
    os.close(ours)
    return Keeper(engines)


def _keep(engine: int, terminal: PseudoTerminal, line: int) -> NoReturn:
    # Who means the engine or the script does not mean the terminal between them.
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    become_subreaper()
    detach(os.devnull)
    _, status = os.waitpid(engine, 0)
    code = os.waitstatus_to_exitcode(status)
    if code:
        how = f"was ended by {signal.Signals(-code).name}" if code < 0 else "has failed"
        _replace(terminal.master, os.read(line, 4096), f"\r\n[tfmemtop {how}; the script goes on]\r\n")
    os._exit(max(code, 0))


def _replace(master: int, path: bytes, farewell: str) -> None:
    """Drain *master* into the file *path*, if it can be opened, until no child is left."""
    file: int | None = None
    with suppress(OSError):  # a full or read-only disk: what counts is that the script is not blocked
        file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
        os.write(file, farewell.encode())
    while _has_children():
        select.select([master], [], [], _PACE_S)
        _drain(master, file)
    _drain(master, file)


def _drain(master: int, file: int | None) -> None:
    with suppress(OSError):  # nothing more for now
        while data := os.read(master, _READ):
            if file is not None:
                with suppress(OSError):
                    os.write(file, data)


def _has_children() -> bool:
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return False
    return True
