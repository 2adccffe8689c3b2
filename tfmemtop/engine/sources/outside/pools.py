"""TensorFlow's allocators in another process's memory: where they are, and their figures and chunks.

``ProcessState`` and ``GPUProcessState`` list them. Each exists once in a process, and a variable of the library points
to it. The variable has no exported name, but the class's table of functions has one, and an object of the class begins
with the address of that table. So the pointer is the one, among the library's few variables, that leads to such an
object. An allocator is read by the table of TensorFlow's layouts.
"""

from collections.abc import Iterator
from struct import Struct
from typing import NamedTuple

from tfmemtop.agent.layouts import Layout, Reading, figures_in, form_of
from tfmemtop.engine.sources.outside.remote import MappedLibrary, Regions, RemoteMemory
from tfmemtop.events import Damage
from tfmemtop.events.damage import Damaged
from tfmemtop.units import MIB

CPU, GPU, PINNED = "CPU:0", "GPU", "HOST:0"
_CPUS, _GPUS = b"_ZTVN10tensorflow12ProcessStateE", b"_ZTVN10tensorflow15GPUProcessStateE"
_CLASSES = (b"N3tsl12BFCAllocatorE", b"N10tensorflow15GPUBFCAllocatorE")
_TABLE = 16  # bytes of a class's table before its first function
_MOST_VARIABLES = 8 * MIB
_MOST_GPUS = 64
MOST_CHUNKS, MOST_REGIONS = 200_000, 10_000
_SOME_REGIONS = 64
_TRIES = 10
_LONGEST_NAME = 63
_POINTER, _STRING, _VECTOR = Struct("<Q"), Struct("<QQ"), Struct("<QQQ")


class Lists:
    """TensorFlow's own lists of its allocators, in one process.

    Raises:
        Damaged: the library does not export the tables of functions of the classes of these lists.
    """

    def __init__(self, memory: RemoteMemory, library: MappedLibrary, layout: Layout) -> None:
        self._memory = memory
        self._layout = layout
        self._bss = library.bss
        self._tables = {name: address + _TABLE for name, address in library.addresses((_CPUS, _GPUS))}
        if _CPUS not in self._tables:
            raise Damaged(Damage.NO_SYMBOLS)
        self._states: dict[bytes, int] = {}

    @property
    def made(self) -> bool:
        """Whether TensorFlow has made the object that lists the CPU's allocators."""
        return _CPUS in self._states

    def look(self, regions: Regions) -> None:
        """Search for those two objects, unless they have been found before."""
        missing = {table: name for name, table in self._tables.items() if name not in self._states}
        for bss in self._bss if missing else ():
            found = self._memory.block(bss.address, min(bss.size, _MOST_VARIABLES) & ~7)
            for (pointer,) in _POINTER.iter_unpack(found or b""):
                if pointer and pointer % 8 == 0 and pointer in regions:
                    first = self._memory.values(pointer, _POINTER)
                    if first and (name := missing.get(first[0])):
                        self._states.setdefault(name, pointer)

    def allocators(self) -> Iterator[tuple[str, int]]:
        """Yield device and address of each allocator that TensorFlow has made, whether or not it keeps a pool."""
        layout = self._layout
        if state := self._states.get(_CPUS):
            for address in self._listed(state + layout.cpus, 8, 0)[:1]:
                yield CPU, address
        if state := self._states.get(_GPUS):
            for number, address in enumerate(
                self._listed(state + layout.gpus, layout.part_size, layout.part_allocator)
            ):
                if address:
                    yield f"{GPU}:{number}", address
            for address in self._listed(state + layout.hosts, layout.part_size, layout.part_allocator)[:1]:
                yield PINNED, address

    def keeps_pool(self, address: int) -> bool:
        """Return whether the allocator at *address* divides a pool into chunks. The name of its class shows that."""
        # The address of the class's table does not show that: each of TensorFlow's libraries may have a copy of it.
        functions = self._pointer(address)
        kind = self._pointer(functions - 8) if functions else 0
        name = self._pointer(kind + 8) if kind else 0
        return bool(name) and self._memory.text(name) in _CLASSES

    def _pointer(self, address: int) -> int:
        found = self._memory.values(address, _POINTER)
        return int(found[0]) if found else 0

    def _listed(self, vector: int, size: int, place: int) -> list[int]:
        found = self._memory.values(vector, _VECTOR)
        if found is None or not 0 <= found[1] - found[0] <= _MOST_GPUS * size or (found[1] - found[0]) % size:
            return []
        entries = self._memory.block(found[0], found[1] - found[0]) or b""
        return [int(_POINTER.unpack_from(entries, at + place)[0]) for at in range(0, len(entries), size)]


class Copy(NamedTuple):
    """A pool's regions and chunks at one moment, as their bytes in memory, and its figures."""

    regions: bytes
    chunks: bytes
    figures: Reading


class Pool:
    """The allocator at *address*. Its figures are read again and again, and checked each time.

    ``unsound`` counts the readings in a row that were not sound.

    Raises:
        Damaged: there is no allocator at *address* that divides a pool into chunks.
        NoMemory: the process has no memory any more.
    """

    def __init__(self, memory: RemoteMemory, layout: Layout, address: int) -> None:
        self.address = address
        self.unsound = 0
        self._memory = memory
        self._layout = layout
        self._form = form_of(layout)
        first = memory.values(address, _POINTER)
        if first is None:
            raise Damaged(Damage.UNMAPPED)
        self._functions = first[0]
        self._last: Reading | None = None
        self.name = self._read_name()
        if not any(self._adds_up() for _ in range(_TRIES)):
            raise Damaged(Damage.REGIONS)

    def read(self) -> Reading:
        """Return the allocator's figures at one moment. They are read until they are the same twice in a row.

        Raises:
            Damaged: the figures do not become the same, or cannot be those of this allocator.
            NoMemory: the process has no memory any more.
        """
        layout, memory = self._layout, self._memory
        size = layout.stats + layout.stats_size
        found = memory.block(self.address, size)
        for _ in range(_TRIES):
            before, found = found, memory.block(self.address, size)
            if found is None or before is None:
                raise Damaged(Damage.UNMAPPED)
            if found[layout.stats :] == before[layout.stats :]:
                break
        else:
            raise Damaged(Damage.UNSTEADY)
        if _POINTER.unpack_from(found)[0] != self._functions:
            raise Damaged(Damage.REPLACED)
        figures = figures_in(found[layout.stats :], self._form)
        limit = _POINTER.unpack_from(found, layout.limit)[0]
        _check(figures, limit)
        last = self._last
        if last is not None and ((figures.allocations or 0) < (last.allocations or 0) or figures.limit != last.limit):
            raise Damaged(Damage.CONTRADICTS)
        self._last = figures
        return figures

    def copy(self) -> Copy | None:
        """Return the pool's regions and chunks, copied twice and the same both times.

        ``None`` if they changed during every attempt.

        Raises:
            Damaged: there are too many of them for a map, or the pointers to them are invalid.
            NoMemory: the process has no memory any more.
        """
        layout, memory = self._layout, self._memory
        before = self._vectors()
        for _ in range(_TRIES):
            (regions, end, _), (chunks, end_of_chunks, _) = before[0], before[1]
            first, second = end - regions, end_of_chunks - chunks
            if first < 0 or second < 0 or first % layout.region_size or second % layout.chunk_size:
                raise Damaged(Damage.LISTS)
            if first > MOST_REGIONS * layout.region_size or second > MOST_CHUNKS * layout.chunk_size:
                raise Damaged(Damage.TOO_MANY)
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
            raise Damaged(Damage.UNMAPPED)
        regions = _VECTOR.unpack_from(found)
        chunks = _VECTOR.unpack_from(found, layout.chunks - layout.regions)
        return regions, chunks, found[layout.stats - layout.regions :]

    def _read_name(self) -> str:
        text = self._memory.values(self.address + self._layout.name, _STRING)
        if text is None or not 0 < text[1] <= _LONGEST_NAME:
            raise Damaged(Damage.NO_NAME)
        name = (self._memory.block(*text) or b"").decode("ascii", "replace")
        if not (name and name.isascii() and name.isprintable()):
            raise Damaged(Damage.NO_NAME)
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


def _check(figures: Reading, limit: int) -> None:
    rising = [0, figures.in_use]
    rising += [size for size in (figures.pool, figures.peak_pool, figures.limit) if size is not None]
    sound = rising == sorted(rising) and (figures.allocations or 0) >= 0 and figures.limit in (None, limit)
    if not sound or (figures.in_use and not figures.allocations):
        raise Damaged(Damage.FIGURES, str(figures))
