"""Tells a signal that was sent to this whole process group, or job, from one that was sent to this process alone.

A process that catches a signal is not told which of the two it was. So a second process, which does nothing but
catch signals, stays in the group, or in the job and in no group of ours. What it hears at the same time was sent to
the group, or to all of the job, and so to the script in it.
"""

import asyncio
import os
import signal
import threading
import time
from collections.abc import Collection, Iterable
from contextlib import suppress

WAIT_S = 0.05
"""So long after a signal it is settled whether the group heard it."""
_SAME_TIME_S = 3 * WAIT_S


class _Listener:
    """The second process, of number ``pid``. It ends with this process.

    Make it before there are other threads. It is a child of this process, as the script is: Slurm may send a signal to
    every process that descends from what it started, and an orphan would not hear it.

    Raises:
        OSError: it cannot be started.
    """

    def __init__(self, numbers: Collection[int], *, apart: bool = False) -> None:
        """*apart*: in a session of its own."""
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
        """Note what it has heard; whether there may be more."""
        numbers = os.read(self._heard, 4096)
        self._at.update(dict.fromkeys(numbers, time.monotonic()))
        return bool(numbers)

    def _heard_within(self, number: int, seconds: float) -> bool:
        at = self._at.get(number)  # not taken: two soon after one another may have come there as one
        return at is not None and time.monotonic() - at < seconds

    def _end(self) -> None:
        os.close(self._held)
        with suppress(ChildProcessError):  # it has been ended, and collected with the script's
            if os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:  # the number is still its
                os.kill(self.pid, signal.SIGKILL)  # one that is stopped would not end by itself
            os.waitpid(self.pid, 0)


class GroupListener(_Listener):
    """Hears what is sent to this process's group. Make it in the running loop. It ends with :meth:`close`, too."""

    def __init__(self, numbers: Collection[int]) -> None:
        super().__init__(numbers)
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._heard, self._read)

    def heard(self, number: int) -> bool:
        """Whether the group was told *number* as well, ``WAIT_S`` after it came here."""
        return self._heard_within(number, _SAME_TIME_S)

    def close(self) -> None:
        """End it."""
        self._loop.remove_reader(self._heard)
        os.close(self._heard)
        self._end()

    def _read(self) -> None:
        if not self._take():  # it was killed: from now on nothing is heard
            self._loop.remove_reader(self._heard)


class StepListener(_Listener):
    """Hears what is sent to all processes of a Slurm step, and nothing that is sent to this process or its group."""

    WAIT_S = 0.2
    """So long after a signal it is settled whether the step heard it. A screen that draws hears late itself."""
    _SAME_TIME_S = 1.0

    def __init__(self, numbers: Collection[int]) -> None:
        super().__init__(numbers, apart=True)
        threading.Thread(target=self._read, daemon=True, name="step signals").start()

    def heard(self, number: int) -> bool:
        """Whether all of the step was told *number* as well, ``WAIT_S`` after it came here."""
        return self._heard_within(number, self.WAIT_S + self._SAME_TIME_S)

    def ever_heard(self, number: int) -> bool:
        """Whether all of the step was told *number* since this listens."""
        return number in self._at

    def _read(self) -> None:
        while self._take():
            pass


def _listen(numbers: Iterable[int], told: int, held: int) -> None:
    """Write the numbers of signals to *told*, until the process that made this closes *held*'s other end."""
    for number in numbers:
        signal.signal(number, _hear)
    signal.set_wakeup_fd(told, warn_on_full_buffer=False)
    # Others may wait until our stdout, or another descriptor of ours, is closed: they must not wait for this process.
    for descriptor in map(int, os.listdir("/proc/self/fd")):  # noqa: PTH208
        if descriptor not in (told, held):
            with suppress(OSError):  # that of the listing itself
                os.close(descriptor)
    os.read(held, 1)


def _hear(*_: object) -> None:
    """Python has written the number into the pipe before it calls this."""
