"""Tells a signal that was sent to this whole process group, or job, from one that was sent to this process alone.

Who catches a signal is not told which of the two it was. So a process of nothing but handlers stays in the
group: what it hears at the same time, the group was told, and the script in it too.
"""

import asyncio
import os
import signal
from collections.abc import Collection, Iterable
from contextlib import suppress

WAIT_S = 0.05
"""So long after a signal it is settled whether the group heard it."""
_SAME_TIME_S = 3 * WAIT_S


class Canary:
    """Lives until :meth:`close` or this process's end. Make it before other threads; its parent is not this process.

    Raises:
        OSError: it cannot be started.
    """

    def __init__(self, numbers: Collection[int]) -> None:
        self._heard, told = os.pipe()
        rope, self._rope = os.pipe()
        os.set_blocking(told, False)
        between = os.fork()
        if between == 0:
            try:
                if os.fork() == 0:
                    _listen(numbers, told, rope)
            finally:
                os._exit(0)
        os.waitpid(between, 0)
        os.close(told)
        os.close(rope)
        self._at: dict[int, float] = {}

    def begin(self) -> None:
        """Take what it hears; needs the running loop."""
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._heard, self._take)

    def heard(self, number: int) -> bool:
        """Whether the group was told *number* as well, ``WAIT_S`` after it came here."""
        at = self._at.get(number)  # not taken: two soon after one another may have come there as one
        return at is not None and self._loop.time() - at < _SAME_TIME_S

    def close(self) -> None:
        """Let it go."""
        self._loop.remove_reader(self._heard)
        os.close(self._heard)
        os.close(self._rope)

    def _take(self) -> None:
        numbers = os.read(self._heard, 4096)
        if not numbers:  # it was killed: from now on nothing is heard
            self._loop.remove_reader(self._heard)
        self._at.update(dict.fromkeys(numbers, self._loop.time()))


def _listen(numbers: Iterable[int], told: int, rope: int) -> None:
    """The canary's life, to the end of the one that holds the *rope*."""
    for number in numbers:
        signal.signal(number, _hear)
    signal.set_wakeup_fd(told, warn_on_full_buffer=False)
    # Whoever reads what we print, or waits for our descriptors to be closed, is not to wait for the canary.
    for descriptor in map(int, os.listdir("/proc/self/fd")):  # noqa: PTH208
        if descriptor not in (told, rope):
            with suppress(OSError):  # that of the listing itself
                os.close(descriptor)
    os.read(rope, 1)


def _hear(*_: object) -> None:
    """The number went into the pipe before this was called."""
