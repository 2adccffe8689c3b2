"""What turns a process that somebody started into one of its own. Light: the keeper has this too."""

import ctypes
import os

_PR_SET_CHILD_SUBREAPER = 36


def become_subreaper() -> None:
    """Have orphans of the script come back to this process: they can be ended, and are reaped."""
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def detach(log: str) -> None:
    """Let go of the caller's stdio; what goes wrong from now on is written to *log*."""
    nowhere = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    written = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    for descriptor, target in ((0, nowhere), (1, nowhere), (2, written)):
        os.dup2(target, descriptor)
    os.close(nowhere)
    os.close(written)


def inherited() -> list[int]:
    """What the user's shell opened for the script, to be asked before anything else is opened."""
    names = map(int, os.listdir("/proc/self/fd"))  # noqa: PTH208 (numbers, not paths)
    return [number for number in names if number > 2 and _is_inheritable(number)]


def _is_inheritable(descriptor: int) -> bool:
    try:
        return os.get_inheritable(descriptor)
    except OSError:
        return False  # that of the listing itself, closed again
