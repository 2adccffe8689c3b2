"""A script that is not a child of the engine: another program starts and ends it, as Jupyter does with a kernel.

A file descriptor of the process (a pidfd) reports its end. It never refers to a later process with the same number.
The exit code is read while the process is a zombie. If its parent collects the status first, the code is not known.
"""

import asyncio
import os
from collections.abc import Callable

from tfmemtop.engine.sources.processes import HostProcess, exit_code

_LOOK_S = 0.25


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
        self._process = HostProcess(pid)
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
        if self._process.is_alive():
            self._loop.call_later(_LOOK_S, self._look)
        else:
            self._ended(exit_code(self.pid))
