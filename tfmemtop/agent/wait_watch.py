"""Notices that a pool runs out while TensorFlow still tries: an allocation waits in it for room.

TensorFlow's ``AllocatorRetry`` lets an allocation wait for up to ten seconds before it fails. Allocations that wait are
in a list, which is read here several times a second. Two kinds are not seen: allocations that TensorFlow can do
without, such as the scratch memory of convolutions, since they do not wait; and waits that end before the next look,
because memory was freed.
"""

from time import monotonic
from typing import Callable

from .direct import Direct, NoCopy
from .failures import tell_waiting
from .messenger import Messenger
from .pools import OUT_OF_MEMORY, ChunkCopies

_AGAIN_S = 2.0
"""If the allocation still waits, the pool is copied again after this time. Other threads may have freed memory
meanwhile, and a copy made without TensorFlow's lock may mix two moments, which only the engine can detect."""

_AFTER_CHUNK_S = 5e-5
"""The pool is not copied again before this time has passed for each chunk either: the engine takes a twentieth of it to
make the map."""

_LASTS_S = 1.0
"""A wait that has lasted so long most often ends in an error: the holders are looked for while they still hold memory.
Shorter waits are usual where threads share a pool that is nearly full."""


class WaitWatch:
    """Copies each pool in which an allocation waits. All of it runs in the sampler's thread."""

    def __init__(self, messenger: Messenger, copies: ChunkCopies, lasts: Callable[[], None]) -> None:
        """*lasts* is called once in each wait that lasts."""
        self._messenger = messenger
        self._copies = copies
        self._watched: dict[str, bool] = {}  # by device: whether it has a pool that can be watched
        self._lasts = lasts
        self._counted: set[str] = set()  # pools whose present wait lasts
        self._since: dict[str, float] = {}  # when the present wait was seen first
        self._next: dict[str, float] = {}  # when a pool may be copied again

    def look(self, direct: Direct) -> None:
        """Check whether an allocation waits in one of the pools that *direct* reads in place."""
        for device, place in list(direct.places.items()):
            if device not in self._watched:
                self._watched[device] = direct.shows_waits(*place)
            if self._watched[device] and direct.waits(*place):
                self._waits(direct, device, place)
            else:
                self._since.pop(device, None)
                self._counted.discard(device)

    def _waits(self, direct: Direct, device: str, place: "tuple[int, int]") -> None:
        now = monotonic()
        first = device not in self._since
        since = self._since.setdefault(device, now)
        if now - since >= _LASTS_S and device not in self._counted:
            self._counted.add(device)
            self._lasts()
        if now < self._next.get(device, 0.0):
            return
        if first:
            self._messenger.guarded("waiting", tell_waiting, self._messenger)
        try:
            copied, _ = self._copies.make(direct, device, place, OUT_OF_MEMORY)
        except NoCopy:
            self._next[device] = now + _AGAIN_S
            return
        if copied is not None:
            self._copies.tell(copied, [[None, 0.0]])
            self._next[device] = now + max(_AGAIN_S, copied["chunks"][0] * _AFTER_CHUNK_S)
