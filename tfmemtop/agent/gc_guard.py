"""Keeps Python's collector of cycles out of our thread.

The collector runs in whichever thread makes one object too many. In ours it would run the script's finalizers and
callbacks. Some of these may run in one thread only, as those of sqlite's connections. And they would be cut off if the
process ended meanwhile.
"""

import gc
import time
from typing import Optional

_ROOM = 64
"""Containers made, beyond those given back, between two looks: the script's threads may make any number whenever ours
waits for the kernel or for TensorFlow, so we look again after that. A reading makes 10, the counts of calls 29."""

_PATIENCE_S = 0.25


class Collector:
    """For our one thread. It makes nothing while :meth:`waits` is true, and what it makes, between ``off`` and ``on``.

    Neither this class nor its callers may make a container while the collector is due.
    """

    def __init__(self) -> None:
        self._since: Optional[float] = None
        self._off = False

    def waits(self) -> bool:
        """Whether to let the script's threads make the next objects. Not for long: they may sleep."""
        if not _soon():
            self._since = None
            return False
        if self._since is None:
            self._since = time.monotonic()
        return time.monotonic() - self._since < _PATIENCE_S

    def off(self, much: bool = False) -> None:
        """Turn it off, if it is due or *much* will be made, until :meth:`on`.

        A script that turns it off or on meanwhile is overruled: only where its threads sleep or wait for us, for a
        millisecond or so twice a minute, or for as long as a look for tensors takes that somebody asked for.
        """
        if not self._off and gc.isenabled() and (much or _soon()):
            self._off = True
            gc.disable()

    def take_over(self) -> None:
        """It was turned off for us before, and is to be turned on again by :meth:`on`."""
        self._off = True

    def on(self) -> None:
        """Undo :meth:`off`."""
        if self._off:
            gc.enable()  # first: a child forked in between is to find it on
            self._off = False


def _soon() -> bool:
    threshold = gc.get_threshold()[0]
    return threshold > 0 and gc.isenabled() and gc.get_count()[0] > threshold - _ROOM
