"""A script that is not a child of the engine: another program starts and ends it, as Jupyter does with a kernel.

A file descriptor of the process (a pidfd) reports its end. It never refers to a later process with the same number.
The exit code is read while the process is a zombie. If its parent collects the status first, the code is not known.
"""

import asyncio
import errno
import os
from collections.abc import Callable
from pathlib import Path

from tfmemtop.engine.sources.procfs import read_stat

_LOOK_S = 0.25
_EXIT_CODE = 49  # of /proc/PID/stat, counted from the state on (proc_pid_stat(5), field 52)


class Joined:
    """The process *pid* until its end. Then *ended* is called with the exit code.

    The exit code is as in ``subprocess.Popen``, or ``None`` if it is not known. Needs the running loop.

    Raises:
        ProcessLookupError: there is no process with that number.
    """

    def __init__(self, pid: int, ended: Callable[[int | None], None]) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._ended = ended
        self._loop = asyncio.get_running_loop()
        stat = read_stat(pid)
        if stat is None:
            raise ProcessLookupError(errno.ESRCH, os.strerror(errno.ESRCH), str(pid))
        self._started = stat.started
        try:
            self._descriptor = os.pidfd_open(pid)
        except ProcessLookupError:
            raise
        except OSError:  # before Linux 5.3, or the system does not offer it
            self._loop.call_later(_LOOK_S, self._look)
        else:
            self._loop.add_reader(self._descriptor, self._over)

    def _over(self) -> None:
        self._loop.remove_reader(self._descriptor)
        os.close(self._descriptor)
        self._ended(exit_code(self.pid))

    def _look(self) -> None:
        stat = read_stat(self.pid)
        if stat is None or stat.zombie or stat.started != self._started:
            self._ended(exit_code(self.pid))
        else:
            self._loop.call_later(_LOOK_S, self._look)


def exit_code(pid: int) -> int | None:
    """Return the exit code of a zombie, as in ``subprocess.Popen``; ``None`` if its parent has collected it already."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return None
    return os.waitstatus_to_exitcode(int(fields[_EXIT_CODE])) if fields[0] == b"Z" else None
