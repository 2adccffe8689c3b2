"""Distinguishes a signal to the whole process group, or Slurm step, from a signal to this process alone.

A process that catches a signal cannot find out which of the two it was. So there is a second process, in the same
process group, or in the same step but in a process session of its own. It blocks the signals, and is asked whether one
is pending. The kernel makes a signal to the group pending in all its processes at once. So the answer is right however
late either of the two runs.
"""

import os
import queue
import signal
import socket
import threading
import time
from collections.abc import Callable, Collection
from contextlib import suppress

_PassOn = Callable[[int], object]
_WAIT_S = 0.1
"""Seconds after a signal until the others have received it too.

Slurm sends a signal to one process after another. ``timeout`` sends it to this process, and then to the group.
"""


class GroupListener:
    """Finds the signals that were sent to this process alone.

    Create it before there are other threads. Like the script, the second process, with process number ``pid``, is a
    child of this process: Slurm may send a signal to all descendants of the process that it started, and an orphan
    would not receive it. It ends with :meth:`close`, or with this process.

    Raises:
        OSError: the second process cannot be started.
    """

    def __init__(self, numbers: Collection[int], *, apart: bool = False) -> None:
        """*numbers* are the signals. *apart*: the second process is in a process session of its own."""
        self._line, line = socket.socketpair()
        before = signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
        self.pid = os.fork()
        if self.pid == 0:
            try:
                if apart:
                    os.setsid()
                _answer(line)
            finally:
                os._exit(0)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        line.close()
        self._received: queue.SimpleQueue[tuple[int, float, _PassOn]] = queue.SimpleQueue()
        threading.Thread(target=self._decide, daemon=True, name="group signals").start()

    def received(self, number: int, pass_on: _PassOn) -> None:
        """Have a thread call *pass_on* with the signal *number*, which has just arrived, if it came to us alone."""
        self._received.put((number, time.monotonic(), pass_on))

    def close(self) -> None:
        """End the second process."""
        with suppress(ChildProcessError):  # it has ended, and its status was collected with the script's
            if os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:  # it still has the number
                os.kill(self.pid, signal.SIGKILL)  # a stopped process would not end by itself
            os.waitpid(self.pid, 0)

    def _decide(self) -> None:
        others_have: dict[int, float] = {}  # what arrived before that time, the others have received
        while True:
            number, arrived, pass_on = self._received.get()
            time.sleep(max(0, arrived + _WAIT_S - time.monotonic()))
            if self._is_pending(number):
                others_have[number] = time.monotonic()
            elif arrived > others_have.get(number, 0):  # two signals may be pending as one
                pass_on(number)

    def _is_pending(self, number: int) -> bool:
        try:
            self._line.send(bytes([number]))
            return self._line.recv(1) == b"\1"
        except OSError:
            return False  # the second process was killed


def _answer(line: socket.socket) -> None:
    """Answer for each number from *line* whether that signal is pending, and discard it, until *line* is closed."""
    # Other processes may wait until our stdout, or another descriptor of ours, is closed everywhere. They must not wait
    # for this process.
    for descriptor in map(int, os.listdir("/proc/self/fd")):  # noqa: PTH208
        if descriptor != line.fileno():
            with suppress(OSError):  # the descriptor of the listing itself
                os.close(descriptor)
    while number := line.recv(1):
        pending = 0
        while signal.sigtimedwait(number, 0):
            pending = 1
        line.send(bytes([pending]))
