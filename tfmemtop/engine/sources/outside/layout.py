"""Reads one allocator's figures and chunks in another process's memory, by the table of TensorFlow's layouts."""

from collections.abc import Iterator
from struct import Struct
from typing import NamedTuple

from tfmemtop.agent.layouts import Figures, Layout, figures_in, form_of
from tfmemtop.engine.sources.outside.remote import RemoteMemory
from tfmemtop.events import Damage
from tfmemtop.events.damage import Damaged
from tfmemtop.units import MIB

MOST_CHUNKS, MOST_REGIONS = 200_000, 10_000
_SOME_REGIONS = 64
_TRIES = 10
_LONGEST_NAME = 63
_POINTER, _STRING, _VECTOR = Struct("<Q"), Struct("<QQ"), Struct("<QQQ")


class NotSound(Damaged):
    """What was read cannot be an allocator's figures."""


class Copy(NamedTuple):
    """A pool's regions and chunks at one moment, as their bytes in memory, and its figures."""

    regions: bytes
    chunks: bytes
    figures: Figures


class Pool:
    """The allocator at *address*. Its figures are read again and again, and checked each time.

    ``unsound`` counts the readings in a row that were not sound.

    Raises:
        NotSound: there is no allocator at *address* that divides a pool into chunks.
        Gone: the process has no memory any more.
    """

    def __init__(self, memory: RemoteMemory, layout: Layout, address: int) -> None:
        self.address = address
        self.unsound = 0
        self._memory = memory
        self._layout = layout
        self._form = form_of(layout)
        first = memory.values(address, _POINTER)
        if first is None:
            raise NotSound(Damage.UNMAPPED)
        self._functions = first[0]
        self._last: Figures | None = None
        self.name = self._read_name()
        if not any(self._adds_up() for _ in range(_TRIES)):
            raise NotSound(Damage.REGIONS)

    def read(self) -> Figures:
        """Return the allocator's figures at one moment. They are read until they are the same twice in a row.

        Raises:
            NotSound: the figures do not become the same, or cannot be those of this allocator.
            Gone: the process has no memory any more.
        """
        layout, memory = self._layout, self._memory
        size = layout.stats + layout.stats_size
        found = memory.block(self.address, size)
        for _ in range(_TRIES):
            before, found = found, memory.block(self.address, size)
            if found is None or before is None:
                raise NotSound(Damage.UNMAPPED)
            if found[layout.stats :] == before[layout.stats :]:
                break
        else:
            raise NotSound(Damage.UNSTEADY)
        if _POINTER.unpack_from(found)[0] != self._functions:
            raise NotSound(Damage.REPLACED)
        figures = figures_in(found[layout.stats :], self._form)
        limit = _POINTER.unpack_from(found, layout.limit)[0]
        _check(figures, limit)
        last = self._last
        if last is not None and (figures.allocations < last.allocations or figures.limit != last.limit):
            raise NotSound(Damage.CONTRADICTS)
        self._last = figures
        return figures

    def copy(self) -> Copy | None:
        """Return the pool's regions and chunks, copied twice and the same both times.

        ``None`` if they changed during every attempt.

        Raises:
            NotSound: there are too many of them for a map, or the pointers to them are invalid.
            Gone: the process has no memory any more.
        """
        layout, memory = self._layout, self._memory
        before = self._vectors()
        for _ in range(_TRIES):
            (regions, end, _), (chunks, end_of_chunks, _) = before[0], before[1]
            first, second = end - regions, end_of_chunks - chunks
            if first < 0 or second < 0 or first % layout.region_size or second % layout.chunk_size:
                raise NotSound(Damage.LISTS)
            if first > MOST_REGIONS * layout.region_size or second > MOST_CHUNKS * layout.chunk_size:
                raise NotSound(Damage.TOO_MANY)
            once = memory.block(regions, first), memory.block(chunks, second)
            again = memory.block(regions, first), memory.block(chunks, second)
            after = self._vectors()
            if before == after and once == again and once[0] is not None and once[1] is not None:
                return Copy(once[0], once[1], figures_in(after[2], self._form))
            before = after
        return None

    def grows(self) -> bool | None:
        """Return whether the pool grows as needed, judging by its regions; ``None`` while they do not show that."""
        (regions, end, _), _, stats = self._vectors()
        figures, count = figures_in(stats, self._form), (end - regions) // self._layout.region_size
        if not figures.pool or not figures.limit or figures.limit <= 4 * MIB:
            return None
        # Without growth TensorFlow takes the whole limit at once, or nine tenths of it if that much is not free.
        whole = figures.pool >= figures.limit - (figures.limit >> 3)
        return None if whole and count != 1 else not whole

    def _vectors(self) -> tuple[tuple[int, int, int], tuple[int, int, int], bytes]:
        layout = self._layout
        found = self._memory.block(self.address + layout.regions, layout.stats + layout.stats_size - layout.regions)
        if found is None:
            raise NotSound(Damage.UNMAPPED)
        regions = _VECTOR.unpack_from(found)
        chunks = _VECTOR.unpack_from(found, layout.chunks - layout.regions)
        return regions, chunks, found[layout.stats - layout.regions :]

    def _read_name(self) -> str:
        text = self._memory.values(self.address + self._layout.name, _STRING)
        if text is None or not 0 < text[1] <= _LONGEST_NAME:
            raise NotSound(Damage.NO_NAME)
        name = (self._memory.block(*text) or b"").decode("ascii", "replace")
        if not (name and name.isascii() and name.isprintable()):
            raise NotSound(Damage.NO_NAME)
        return name

    def _adds_up(self) -> bool:
        """Return whether the regions add up to the size of the pool. Of many regions only the first are checked."""
        layout = self._layout
        (begin, end, _), (chunks, end_of_chunks, _), stats = self._vectors()
        figures = figures_in(stats, self._form)
        if end < begin or (end - begin) % layout.region_size or (end_of_chunks - chunks) % layout.chunk_size:
            return False
        count = (end - begin) // layout.region_size
        found = self._memory.block(begin, min(count, _SOME_REGIONS) * layout.region_size)
        if found is None or figures.pool is None:
            return False
        total = sum(self._sizes(found))
        return total == figures.pool or (count > _SOME_REGIONS and 0 < total < figures.pool)

    def _sizes(self, regions: bytes) -> Iterator[int]:
        for place in range(self._layout.region_bytes, len(regions), self._layout.region_size):
            yield int(_POINTER.unpack_from(regions, place)[0])


def _check(figures: Figures, limit: int) -> None:
    rising = [0, figures.in_use]
    rising += [size for size in (figures.pool, figures.peak_pool, figures.limit) if size is not None]
    sound = rising == sorted(rising) and figures.allocations >= 0 and figures.limit in (None, limit)
    if not sound or (figures.in_use and not figures.allocations):
        raise NotSound(Damage.FIGURES, str(figures))
