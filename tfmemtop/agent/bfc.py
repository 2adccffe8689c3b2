"""Reads TensorFlow's BFC allocators in memory, in this process or in another one.

No function of an allocator is called and none of its locks is taken. Its figures and chunks are copied from the places
that a table gives for this version. So nothing is created, changed or held up, and a wrong address does no harm.
"""

from _struct import Struct
from typing import Any, NamedTuple, Optional

from .layouts import Layout, Reading, figures_in, form_of

MOST_CHUNKS = 200_000
"""Chunks of one map at most. The engine, which is written in Python, takes about a second for so many."""

POINTER, VECTOR = Struct("<Q"), Struct("<QQQ")
TRIES = 10
MOST_GPUS = 64

_POOLS = (b"N3tsl12BFCAllocatorE\0", b"N10tensorflow15GPUBFCAllocatorE\0")
"""Classes whose objects have the layout, by the names in their C++ type information."""

_STRING = Struct("<QQ")
_LONGEST_NAME = 63
_MOST_REGIONS = 10_000
_SOME_REGIONS = 64


class Lists(NamedTuple):
    """A pool's lists of regions and of chunks: their addresses, and their sizes in bytes.

    ``figures`` are those of the same moment. ``raw`` are the bytes that all this was read from.
    """

    regions: int
    regions_size: int
    chunks: int
    chunks_size: int
    figures: Reading
    raw: bytes


class Allocators:
    """Allocators in *memory*, laid out by *layout*. A method returns ``None`` for what is not there.

    Raises:
        ValueError: the figures of *layout* are not in the order of their places.
    """

    def __init__(self, memory: Any, layout: Layout) -> None:
        """*memory* has the methods ``block`` and ``values`` of :class:`.memory.Memory`."""
        self._memory = memory
        self._layout = layout
        self._form = form_of(layout)
        self._lists_size = layout.stats + layout.stats_size - layout.regions

    def pointer(self, address: int) -> Optional[int]:
        """Return the address in the pointer at *address*; ``None`` if that is null or cannot be read."""
        found = self._memory.values(address, POINTER)
        return found[0] or None if found else None

    def is_pool(self, address: int) -> bool:
        """Return whether an object of one of the known classes is there: each object leads to its class's name."""
        # The address of the class's table does not show that: each of TensorFlow's libraries may have a copy of it.
        functions = self.pointer(address)
        kind = self.pointer(functions - 8) if functions else None
        name = self.pointer(kind + 8) if kind else None
        return name is not None and any(self._memory.block(name, len(known)) == known for known in _POOLS)

    def name(self, address: int) -> Optional[str]:
        """Return the name of an allocator."""
        text = self._memory.values(address + self._layout.name, _STRING)
        if text is None or not 0 < text[1] <= _LONGEST_NAME:
            return None
        name = (self._memory.block(*text) or b"").decode("ascii", "replace")
        return name if name and name.isascii() and name.isprintable() else None

    def figures(self, address: int) -> Optional[Reading]:
        """Return the figures of a pool at one moment: they are read until two reads are the same."""
        layout = self._layout
        found = self._memory.block(address + layout.stats, layout.stats_size)
        for _ in range(TRIES):
            before, found = found, self._memory.block(address + layout.stats, layout.stats_size)
            if found == before:
                break
        return None if found is None else figures_in(found, self._form)

    def lists(self, address: int) -> Optional[Lists]:
        """Return the lists of a pool. TensorFlow may just be changing them."""
        layout, raw = self._layout, self._raw(address)
        if raw is None:
            return None
        regions, end, _ = VECTOR.unpack_from(raw)
        chunks, end_of_chunks, _ = VECTOR.unpack_from(raw, layout.chunks - layout.regions)
        figures = figures_in(raw[layout.stats - layout.regions :], self._form)
        return Lists(regions, end - regions, chunks, end_of_chunks - chunks, figures, raw)

    def unchanged(self, address: int, lists: Lists) -> bool:
        """Return whether the pool's lists and figures are still those of *lists*."""
        return self._raw(address) == lists.raw

    def are_whole(self, lists: Lists) -> bool:
        """Return whether both lists hold whole elements."""
        layout, first, second = self._layout, lists.regions_size, lists.chunks_size
        return first >= 0 and second >= 0 and not (first % layout.region_size or second % layout.chunk_size)

    def too_many(self, lists: Lists) -> bool:
        """Return whether the lists are too long for a map."""
        layout = self._layout
        many = lists.chunks_size > MOST_CHUNKS * layout.chunk_size
        return many or lists.regions_size > _MOST_REGIONS * layout.region_size

    def adds_up(self, address: int) -> bool:
        """Return whether the regions, or the first of many, fit the pool's size and both lists hold whole elements.

        ``False`` also if they cannot be read.
        """
        layout, lists = self._layout, self.lists(address)
        if lists is None or not self.are_whole(lists):
            return False
        figures, limit = lists.figures, self._memory.values(address + layout.limit, POINTER)
        count = lists.regions_size // layout.region_size
        regions = self._memory.block(lists.regions, min(count, _SOME_REGIONS) * layout.region_size)
        if limit is None or regions is None or figures.pool is None or figures.limit not in (None, limit[0]):
            return False
        places = range(layout.region_bytes, len(regions), layout.region_size)
        total = sum(int(POINTER.unpack_from(regions, place)[0]) for place in places)
        return total == figures.pool or (count > _SOME_REGIONS and 0 < total < figures.pool)

    def _raw(self, address: int) -> Optional[bytes]:
        found: Optional[bytes] = self._memory.block(address + self._layout.regions, self._lists_size)
        return found
