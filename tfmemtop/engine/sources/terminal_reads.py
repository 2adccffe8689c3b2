"""Detects that the script waits for input: a process in the foreground is blocked in a read of its terminal.

The kernel shows in ``/proc/PID/syscall`` in which system call a process is blocked, and with which arguments. This file
cannot be read for processes of other users. Where ``ptrace_scope`` is 2 or more, it cannot be read for those of the
same user either. Then nothing is published.
"""

import os
import platform
from collections.abc import Callable

from tfmemtop.engine.sources.source import Source
from tfmemtop.engine.stream.stream import Stream
from tfmemtop.events import Event, ProcessReadings, Run, RunEnd, TerminalRead

_CALLS: dict[str, tuple[int, frozenset[int]]] = {
    "x86_64": (0, frozenset({23, 270})),
    "aarch64": (63, frozenset({72})),
}
"""By machine: the numbers of ``read``, and of ``select`` and ``pselect6``, from Linux's tables of system calls."""

_DEV_TTY = os.makedev(5, 0)
_MOST = 8  # processes of the foreground group that are looked at, so that a look costs less than a millisecond


class TerminalReads(Source):
    """Looks once for each reading of the processes, and publishes what has changed."""

    def __init__(self, stream: Stream, master: int, slave: int, of_runs: Callable[[], set[int]]) -> None:
        """*master* and *slave* are the two ends of the script's terminal. *of_runs* returns the script's processes."""
        super().__init__(stream)
        self._master = master
        self._terminal = os.fstat(slave).st_rdev
        self._of_runs = of_runs
        self._run = 0
        self._told: int | None = None

    def on_event(self, event: Event) -> None:
        """Handle an event of the stream."""
        match event:
            case Run():
                self._run, self._told = event.run, None
            case RunEnd():
                self._run = 0
            case ProcessReadings() if self._run:
                self._tell(self._reader())
            case _:
                pass

    def _tell(self, pid: int | None) -> None:
        if pid != self._told:
            self._told = pid
            self._stream.publish(TerminalRead(t=self._stream.now(), run=self._run, pid=pid))

    def _reader(self) -> int | None:
        try:
            group = os.tcgetpgrp(self._master)
        except OSError:
            return None  # no group is in the foreground
        foreground = [pid for pid in sorted(self._of_runs()) if _group(pid) == group]
        return next((pid for pid in foreground[:_MOST] if waits_for(pid, self._terminal)), None)


def _group(pid: int) -> int | None:
    try:
        return os.getpgid(pid)
    except OSError:
        return None  # the process has ended


def waits_for(pid: int, terminal: int) -> bool:
    """Return whether the main thread of process *pid* is blocked in a read of the device number *terminal*.

    ``select`` counts as a read if it waits for file descriptor 0 alone, as it does in GNU readline.
    """
    known = _CALLS.get(platform.machine())
    if known is None:
        return False
    read, selects = known
    try:
        with open(f"/proc/{pid}/syscall", "rb") as file:  # noqa: PTH123 (each second)
            call, *arguments = file.read(256).split()
        number = int(call)  # ValueError if this is no number: the process is running
        if number == read:
            descriptor = int(arguments[0], 16)
        elif number in selects and int(arguments[0], 16) == 1:
            descriptor = 0
        else:
            return False
        file_read = f"/proc/{pid}/fd/{descriptor}"
        # Another file may be one of a file system that does not answer, which would hold up this process too.
        is_device = os.readlink(file_read).startswith("/dev/")  # noqa: PTH115
        return is_device and os.stat(file_read).st_rdev in (terminal, _DEV_TTY)  # noqa: PTH116
    except (OSError, ValueError):
        return False  # the process has ended, does not wait, or may not be looked at
