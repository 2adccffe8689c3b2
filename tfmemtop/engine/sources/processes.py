"""The machine's processes, its processors and its memory. Only this module uses psutil.

psutil takes 5.7 ms for the figures of 100 processes: 0.6 % of a core at one look a second. What it cannot do, or does
at a higher cost, is read from ``/proc`` by hand, in the second half of this module.
"""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import Literal

import psutil

from tfmemtop.bounds import LONGEST_TEXT, MOST_VARIABLES, MOST_WORDS
from tfmemtop.events import ProcessReading

_ENDED = (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD)
_STOPPED = (psutil.STATUS_STOPPED, psutil.STATUS_TRACING_STOP)


class HostProcess:
    """A process of this machine, with its figures as of the last :meth:`refresh`.

    ``started`` is in seconds since the epoch. ``rss`` is in bytes. ``cpu`` is the percentage of a core that all threads
    used between the last two refreshes, ``None`` after the first.

    Raises:
        ProcessLookupError: there is no process with this number.
    """

    def __init__(self, pid: int) -> None:
        with _as_os_errors():
            self._process = psutil.Process(pid)
            self.started = self._process.create_time()
        self.pid = pid
        self.name = ""
        self.ppid = 0
        self.rss = 0
        self.stopped = False
        self.cpu: float | None = None
        self._refreshed = False

    def refresh(self) -> bool:
        """Read the figures again. Return false if the process has ended."""
        process = self._process
        with suppress(psutil.Error), process.oneshot():
            status = process.status()
            if status in _ENDED:
                return False
            self.stopped = status in _STOPPED
            self.ppid = process.ppid()  # psutil raises an exception here if another process has the number now
            self.name = text_of(process.name())
            self.rss = process.memory_info().rss
            cpu = process.cpu_percent()
            self.cpu = cpu if self._refreshed else None
            self._refreshed = True
            return True
        return False

    @property
    def reading(self) -> ProcessReading:
        """The figures that the engine sends."""
        return ProcessReading(self.pid, self.cpu, self.rss)

    def is_alive(self) -> bool:
        """Return whether the process has not ended. A zombie has, and so has one whose number another process has."""
        return self._process.is_running() and _lives(self._process)

    @cached_property
    def user(self) -> str:
        """The name of its user, or the number of a user without a name; empty if it has ended."""
        with suppress(psutil.Error):
            return self._process.username()
        return ""


def find(pid: int) -> HostProcess | None:
    """Return the process with the number *pid* and its figures; ``None`` if it has ended."""
    with suppress(ProcessLookupError):
        process = HostProcess(pid)
        if process.refresh():
            return process
    return None


def is_alive(pid: int) -> bool:
    """Return whether the process *pid* has not ended. A zombie has."""
    with suppress(psutil.Error):
        return _lives(psutil.Process(pid))
    return False


def has_memory(pid: int) -> bool:
    """Return whether the process *pid* goes on. One that ends gives up its memory before it closes its sockets."""
    with suppress(psutil.Error):
        return bool(psutil.Process(pid).cmdline())
    return False


def all_pids() -> set[int]:
    """Return the numbers of all processes."""
    return set(psutil.pids())


def session_of(pid: int) -> int | None:
    """Return the number of a process's session; ``None`` if it has ended."""
    try:
        return os.getsid(pid)
    except OSError:
        return None


def read_command(pid: int) -> list[str]:
    """Return the command line; empty for a kernel thread, a zombie, or a process that has ended."""
    with suppress(psutil.Error):
        words = psutil.Process(pid).cmdline()
        while words and not words[-1]:
            words.pop()  # what is left of a longer command line that the process has replaced
        return [text_of(word)[:LONGEST_TEXT] for word in words[:MOST_WORDS]]
    return []


def read_environment(pid: int) -> dict[str, str]:
    """Return the environment with which a process was started.

    Raises:
        OSError: the process has ended, or belongs to another user.
    """
    with _as_os_errors():
        found = list(psutil.Process(pid).environ().items())[:MOST_VARIABLES]
    return {text_of(name): text_of(value)[:LONGEST_TEXT] for name, value in found}


def carries(pid: int, entry: bytes) -> bool:
    """Return whether a process's environment contains *entry*, as ``NAME=value``; False if it cannot be read."""
    name, _, value = os.fsdecode(entry).partition("=")
    with suppress(psutil.Error):
        return psutil.Process(pid).environ().get(name) == value
    return False


def own_start() -> float:
    """Return when this process was started, in seconds since the epoch, by the clock of :attr:`HostProcess.started`."""
    return psutil.Process().create_time()


def children(pid: int, *, recursive: bool = False) -> list[HostProcess]:
    """Return the processes that *pid* has started and that have not ended; with *recursive*, also theirs."""
    with suppress(psutil.Error):
        return [found for child in psutil.Process(pid).children(recursive) if (found := find(child.pid))]
    return []


def descendants(root: int) -> set[int]:
    """Return all processes that descend from *root* now, except zombies."""
    return {process.pid for process in children(root, recursive=True)}


def ancestors(pid: int) -> list[int]:
    """Return the numbers of the parent of *pid*, of its parent, and so on; empty if *pid* has ended."""
    with suppress(psutil.Error):
        return [parent.pid for parent in psutil.Process(pid).parents()]
    return []


def working_folder(pid: int) -> str:
    """Return the working folder of a process; empty where it cannot be read."""
    with suppress(psutil.Error):
        return text_of(psutil.Process(pid).cwd())
    return ""


def machine_memory() -> int:
    """Return the bytes of memory that the machine has."""
    return psutil.virtual_memory().total


def available_memory() -> int:
    """Return the bytes that are available without swapping."""
    return psutil.virtual_memory().available


def busy_percent() -> float:
    """Return the percentage of time in which the processors were busy since this thread's previous call, 0 at first."""
    return psutil.cpu_percent()


def text_of(text: str) -> str:
    """Return *text*, which :func:`os.fsdecode` made, as valid UTF-8."""
    return os.fsencode(text).decode(errors="replace")


def _lives(process: psutil.Process) -> bool:
    with suppress(psutil.Error):
        return process.status() not in _ENDED
    return False


@contextmanager
def _as_os_errors() -> Iterator[None]:
    """Raise psutil's exceptions as those that the system itself would raise."""
    try:
        yield
    except psutil.AccessDenied as error:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(error.pid)) from None
    except psutil.Error:
        raise ProcessLookupError(errno.ESRCH, os.strerror(errno.ESRCH)) from None


# From here on by hand.

Namespace = Literal["first", "other", "unknown"]

_START, _EXIT_CODE = 19, 49  # of /proc/PID/stat, counted from the state on (proc_pid_stat(5), fields 22 and 52)
_GPU_FILES = ("/dev/nvidia", "/dev/dxg", "/dev/nvmap", "/dev/nvhost")
_CONTROL = "/dev/nvidiactl"  # a process that only queries the driver opens this file alone
_FIRST_NAMESPACE = "pid:[4026531836]"  # PROC_PID_INIT_INO of the kernel's include/linux/proc_ns.h
_LIBRARIES = (b"libtensorflow_framework", b"_pywrap_tensorflow")


def exit_code(pid: int) -> int | None:
    """Return the exit code of a zombie, as in ``subprocess.Popen``; ``None`` if its parent has collected it already.

    psutil does not read it.
    """
    fields = _stat(pid)
    return os.waitstatus_to_exitcode(int(fields[_EXIT_CODE])) if fields and fields[0] == b"Z" else None


def start_ticks(pid: int) -> int:
    """Return when a process started, in ticks of the kernel since the machine's boot; 0 if it has ended.

    psutil adds the time of the boot, so its figure changes when the clock is set.
    """
    fields = _stat(pid)
    return int(fields[_START]) if fields else 0


def _stat(pid: int) -> list[bytes]:
    """Return the fields of ``/proc/PID/stat``, counted from the state on; empty if the process has ended."""
    try:
        # The program's name is in parentheses and may contain any character, also parentheses.
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return []


def executable(pid: int) -> str:
    """Return the path of the program that a process runs, as the process sees it.

    psutil guesses it from the command line where it may not be read.

    Raises:
        OSError: the process has ended, or may not be looked at.
    """
    return os.readlink(f"/proc/{pid}/exe").removesuffix(" (deleted)")  # noqa: PTH115 (it may point to no path)


def has_tensorflow(pid: int) -> bool:
    """Return whether TensorFlow's library is mapped into a process; False if its mappings cannot be read.

    psutil takes 3.9 ms for the mappings of a small process, this 0.2 ms; TensorFlow has ten times as many.
    """
    try:
        with Path(f"/proc/{pid}/maps").open("rb") as maps:
            return any(library in line for line in maps for library in _LIBRARIES)
    except OSError:
        return False


def uses_gpu(pid: int, root: Path = Path("/")) -> bool:
    """Return whether process *pid* of this namespace has an NVIDIA GPU open.

    ``False`` also if its file descriptors cannot be read. psutil lists regular files only, and no devices.
    """
    folder = root / "proc" / str(pid) / "fd"
    try:
        targets = [os.readlink(folder / name) for name in os.listdir(folder)]  # noqa: PTH115, PTH208 (each second)
    except OSError:
        return False
    return any(target.startswith(_GPU_FILES) and target != _CONTROL for target in targets)


def pid_namespace(root: Path = Path("/")) -> Namespace:
    """Return which namespace numbers the processes.

    It is ``first`` if processes have the numbers of the machine's kernel, ``other`` if not, as in a container, and
    ``unknown`` if this cannot be read.
    """
    try:
        name = os.readlink(root / "proc/self/ns/pid")  # noqa: PTH115 (a link that points to no path)
    except OSError:
        return "unknown"
    return "first" if name == _FIRST_NAMESPACE else "other"
