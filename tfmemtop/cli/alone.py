"""Runs the user's command without tfmemtop, where the system has no room for both."""

import os
import signal
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress

from tfmemtop import boot
from tfmemtop.cli.output import say

NO_ROOM = "the system lets this user start too few threads (ulimit -u)"

_THREADS = 32
"""The threads and processes that tfmemtop starts at most, with as many of the command's as it needs at least."""

_NOT_FOUND, _NOT_STARTED = 127, 126  # the exit codes that a shell uses


def has_room() -> bool:
    """Return whether tfmemtop's threads can be started beside the command's. It would fail if it lacked one later.

    A child process tries that. Each thread would leave 64 MiB of addresses reserved in this process, which count
    against a limit of its memory (``ulimit -v``).
    """
    try:
        child = os.fork()
    except OSError:
        return False
    if not child:
        try:
            _start_threads()
            os._exit(0)
        finally:
            os._exit(1)
    return os.waitpid(child, 0)[1] == 0


def _start_threads() -> None:
    threading.stack_size(1 << 16)  # bytes: the usual size would count against a limit of memory
    never = threading.Event()
    for _ in range(_THREADS):
        threading.Thread(target=never.wait, daemon=True).start()


def run_alone(command: Sequence[str], environment: Mapping[str, str]) -> int:
    """Replace this process by *command*; return an exit code only if that fails."""
    for number in signal.valid_signals():
        with suppress(OSError):  # the handlers of KILL and STOP cannot be set
            signal.signal(number, signal.SIG_IGN if number in boot.ignored else signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, boot.blocked)
    try:
        os.execvpe(command[0], list(command), environment)
    except OSError as error:
        say(f"the command cannot be started: {command[0]}: {error.strerror or error}")
        return _NOT_FOUND if isinstance(error, FileNotFoundError) else _NOT_STARTED
