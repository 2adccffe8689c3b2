"""Detaches a process from the one that started it. The keeper uses this too, so it imports little."""

import os


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
