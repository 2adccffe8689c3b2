"""Distinguishes a signal to the whole process group, or Slurm step, from a signal to this process alone.

A process that catches a signal cannot find out which of the two it was. So there is a second process, which only
catches signals. It is either in the same process group, or in the same step but in a process session of its own. If it
receives the same signal at the same time, the signal was sent to the whole group or step, and so to the script too.
"""

import asyncio
import os
import signal
import threading
import time
from collections.abc import Collection, Iterable
from contextlib import suppress

WAIT_S = 0.05
"""This many seconds after a signal, it is certain whether the group received it too."""
_SAME_TIME_S = 3 * WAIT_S


class _Listener:
    """The second process, with process number ``pid``. It ends with this process.

    Create it before there are other threads. Like the script, it is a child of this process: Slurm may send a signal to
    all descendants of the process that it started, and an orphan would not receive it.

    Raises:
        OSError: the second process cannot be started.
    """

    def __init__(self, numbers: Collection[int], *, apart: bool = False) -> None:
        """*numbers* are the signals to catch. With *apart*, the process is in a process session of its own."""
        self._heard, told = os.pipe()
        held, self._held = os.pipe()
        os.set_blocking(told, False)
        self.pid = os.fork()
        if self.pid == 0:
            try:
                if apart:
                    os.setsid()
                os.close(self._held)
                _listen(numbers, told, held)
            finally:
                os._exit(0)
        os.close(told)
        os.close(held)
        self._at: dict[int, float] = {}

    def _take(self) -> bool:
        """Wait for signals that the second process has received, and store their time. Return false once it ended."""
        numbers = os.read(self._heard, 4096)
        self._at.update(dict.fromkeys(numbers, time.monotonic()))
        return bool(numbers)

    def _heard_within(self, number: int, seconds: float) -> bool:
        at = self._at.get(number)  # not removed: two signals soon after one another may have arrived there as one
        return at is not None and time.monotonic() - at < seconds

    def _end(self) -> None:
        os.close(self._held)
        with suppress(ChildProcessError):  # it has ended, and its status was collected with the script's
            if os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:  # it still has the number
                os.kill(self.pid, signal.SIGKILL)  # a stopped process would not end by itself
            os.waitpid(self.pid, 0)


class GroupListener(_Listener):
    """Receives the signals that are sent to this process's group.

    Create it in the running loop. It ends with :meth:`close`, or with this process.
    """

    def __init__(self, numbers: Collection[int]) -> None:
        super().__init__(numbers)
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._heard, self._read)

    def heard(self, number: int) -> bool:
        """Return whether the whole group received the signal *number*. Call this ``WAIT_S`` after it arrived here."""
        return self._heard_within(number, _SAME_TIME_S)

    def close(self) -> None:
        """End the second process."""
        self._loop.remove_reader(self._heard)
        os.close(self._heard)
        self._end()

    def _read(self) -> None:
        if not self._take():  # the second process was killed: no further signals can be received
            self._loop.remove_reader(self._heard)


class StepListener(_Listener):
    """Receives signals to all processes of a Slurm step, but none that are sent to this process or its group only."""

    WAIT_S = 0.2
    """This many seconds after a signal, it is certain whether the step received it too.

    A screen that is drawing handles its own signals late.
    """
    _SAME_TIME_S = 1.0

    def __init__(self, numbers: Collection[int]) -> None:
        super().__init__(numbers, apart=True)
        threading.Thread(target=self._read, daemon=True, name="step signals").start()

    def heard(self, number: int) -> bool:
        """Return whether the whole step received the signal *number*. Call this ``WAIT_S`` after it arrived here."""
        return self._heard_within(number, self.WAIT_S + self._SAME_TIME_S)

    def ever_heard(self, number: int) -> bool:
        """Return whether the whole step has received the signal *number* since this listener was created."""
        return number in self._at

    def _read(self) -> None:
        while self._take():
            pass


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
