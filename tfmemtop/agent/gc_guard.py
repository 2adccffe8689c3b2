"""Keeps Python's collector of cycles out of the agent's thread.

The collector runs in whichever thread makes one object too many. In the agent's thread it would run the script's
finalizers and callbacks. Some of these may run in one thread only, as those of sqlite's connections. And they would be
cut off if the process ended meanwhile.
"""

import gc
import time
from typing import Optional

_ROOM = 64
"""The containers that may be made, less those that are freed, between two checks of whether the collector is due. The
script's threads may make any number whenever the agent's thread waits for the kernel or for TensorFlow, so the check is
repeated after each such wait. A reading makes 10, the counts of calls 29."""

_PATIENCE_S = 0.25


class Collector:
    """The guard of the agent's one thread.

    That thread makes nothing while :meth:`waits` is true, and makes all else between :meth:`off` and :meth:`on`.
    Neither this class nor its callers may make a container while the collector is due.
    """

    def __init__(self) -> None:
        self._since: Optional[float] = None
        self._off = False

    def waits(self) -> bool:
        """Return whether to wait, so that the script's threads make the next objects. Not for long: they may sleep."""
        if not _soon():
            self._since = None
            return False
        if self._since is None:
            self._since = time.monotonic()
        return time.monotonic() - self._since < _PATIENCE_S

    def off(self, much: bool = False) -> None:
        """Turn the collector off until :meth:`on`, if it is due or *much* will be made.

        A script that turns the collector off or on meanwhile is overruled. That time is short: the script's threads
        sleep or wait for the agent's, for a millisecond or so twice a minute, or for as long as a requested look for
        tensors takes.
        """
        if not self._off and gc.isenabled() and (much or _soon()):
            self._off = True
            gc.disable()

    def take_over(self) -> None:
        """Note that the hook has turned the collector off, so that :meth:`on` turns it on again."""
        self._off = True

    def on(self) -> None:
        """Undo :meth:`off`."""
        if self._off:
            gc.enable()  # first, so that it is on in a child that is forked between these two lines
            self._off = False


def _soon() -> bool:
    threshold = gc.get_threshold()[0]
    return threshold > 0 and gc.isenabled() and gc.get_count()[0] > threshold - _ROOM
