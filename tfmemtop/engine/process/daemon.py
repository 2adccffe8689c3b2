"""Detaches a process from the one that started it. The keeper uses this too, so it imports little."""

import os
from contextlib import suppress

_NAME_BYTES = 15  # the Linux kernel stores no more of a process's name
_ARGUMENTS_START, _ARGUMENTS_END = 45, 46  # of /proc/PID/stat, counted from the state on


def rename(name: str) -> None:
    """Make process lists show *name* for this process instead of its command line, as far as the system allows it."""
    with suppress(OSError, ValueError):
        with open("/proc/self/comm", "wb") as file:
            file.write(name.encode()[:_NAME_BYTES])
        with open("/proc/self/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
        start, end = int(fields[_ARGUMENTS_START]), int(fields[_ARGUMENTS_END])
        shown = name.encode()[: end - start - 1]
        with open("/proc/self/mem", "r+b", buffering=0) as memory:
            memory.seek(start)
            memory.write(shown + bytes(end - start - len(shown)))


def detach(log: str) -> None:
    """Replace the caller's stdio: stdin and stdout by ``/dev/null``, stderr by the file *log*.

    If *log* cannot be opened, stderr is ``/dev/null`` too.
    """
    nowhere = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    try:
        written = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    except OSError:
        written = os.dup(nowhere)
    for descriptor, target in ((0, nowhere), (1, nowhere), (2, written)):
        os.dup2(target, descriptor)
    os.close(nowhere)
    os.close(written)


def inherited() -> list[int]:
    """Return the file descriptors that the user's shell opened for the script. Call this before any other open."""
    names = map(int, os.listdir("/proc/self/fd"))
    return [number for number in names if number > 2 and _is_inheritable(number)]


def _is_inheritable(descriptor: int) -> bool:
    try:
        return os.get_inheritable(descriptor)
    except OSError:
        return False  # the descriptor of the listing itself, which is closed by now
