"""Distinguishes a signal to the whole process group, or Slurm step, from a signal to this process alone.

A process that catches a signal cannot find out which of the two it was. So there is a second process, which only
catches signals. It is either in the same process group, or in the same step but in a process session of its own. If it
receives the same signal at the same time, the signal was sent to the whole group or step, and so to the script too.
"""

import os
import signal
import threading
import time
from collections.abc import Collection, Iterable
from contextlib import suppress


class GroupListener:
    """Receives the signals that are sent to this process's group, in a second process with process number ``pid``.

    Create it before there are other threads. Like the script, the second process is a child of this process: Slurm may
    send a signal to all descendants of the process that it started, and an orphan would not receive it. It ends with
    :meth:`close`, or with this process.

    Raises:
        OSError: the second process cannot be started.
    """

    WAIT_S = 0.05
    """This many seconds after a signal, it is certain whether the others received it too."""
    _SAME_TIME_S = 0.15
    _APART = False
    """Whether the second process is in a process session of its own."""

    def __init__(self, numbers: Collection[int]) -> None:
        """*numbers* are the signals to catch."""
        self._heard, told = os.pipe()
        held, self._held = os.pipe()
        os.set_blocking(told, False)
        self.pid = os.fork()
        if self.pid == 0:
            try:
                if self._APART:
                    os.setsid()
                os.close(self._held)
                _listen(numbers, told, held)
            finally:
                os._exit(0)
        os.close(told)
        os.close(held)
        self._at: dict[int, float] = {}
        threading.Thread(target=self._read, daemon=True, name="group signals").start()

    def heard(self, number: int) -> bool:
        """Return whether all the others received the signal *number* too. Call this ``WAIT_S`` after it arrived."""
        at = self._at.get(number)  # not removed: two signals soon after one another may have arrived there as one
        return at is not None and time.monotonic() - at < self._SAME_TIME_S

    def ever_heard(self, number: int) -> bool:
        """Return whether all the others have received the signal *number* since this listener was created."""
        return number in self._at

    def close(self) -> None:
        """End the second process."""
        os.close(self._held)
        with suppress(ChildProcessError):  # it has ended, and its status was collected with the script's
            if os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:  # it still has the number
                os.kill(self.pid, signal.SIGKILL)  # a stopped process would not end by itself
            os.waitpid(self.pid, 0)

    def _read(self) -> None:
        """Store the times of the signals that the second process has received, until it ends."""
        with os.fdopen(self._heard, "rb", buffering=0) as pipe:
            while numbers := pipe.read(4096):
                self._at.update(dict.fromkeys(numbers, time.monotonic()))


class StepListener(GroupListener):
    """Receives signals to all processes of a Slurm step, but none that are sent to this process or its group only."""

    WAIT_S = 0.2  # a screen that is drawing handles its own signals late
    _SAME_TIME_S = 1.2
    _APART = True


def _listen(numbers: Iterable[int], told: int, held: int) -> None:
    """Write the *numbers* of received signals to *told*, until the parent process closes the other end of *held*."""
    for number in numbers:
        signal.signal(number, _hear)
    signal.set_wakeup_fd(told, warn_on_full_buffer=False)
    # Other processes may wait until our stdout, or another descriptor of ours, is closed everywhere. They must not wait
    # for this process.
    for descriptor in map(int, os.listdir("/proc/self/fd")):  # noqa: PTH208
        if descriptor not in (told, held):
            with suppress(OSError):  # the descriptor of the listing itself
                os.close(descriptor)
    os.read(held, 1)


def _hear(*_: object) -> None:
    """Do nothing: Python has written the number into the pipe before it calls this."""
