"""TensorFlow's allocators in another process's memory: where they are, and their figures and chunks.

``ProcessState`` and ``GPUProcessState`` list them. Each exists once in a process, and a variable of the library points
to it. The variable has no exported name, but the class's table of functions has one, and an object of the class begins
with the address of that table. So the pointer is the one, among the library's few variables, that leads to such an
object.
"""

from collections.abc import Iterator
from typing import NamedTuple

from tfmemtop.agent.bfc import MOST_GPUS, POINTER, TRIES, VECTOR, Allocators, Lists
from tfmemtop.agent.layouts import Layout, Reading
from tfmemtop.engine.sources.outside.remote import MappedLibrary, Regions, RemoteMemory
from tfmemtop.events import Damage
from tfmemtop.events.damage import Damaged
from tfmemtop.units import MIB

CPU, GPU, PINNED = "CPU:0", "GPU", "HOST:0"
_CPUS, _GPUS = b"_ZTVN10tensorflow12ProcessStateE", b"_ZTVN10tensorflow15GPUProcessStateE"
_TABLE = 16  # bytes of a class's table before its first function
_MOST_VARIABLES = 8 * MIB


class Found:
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
            for (pointer,) in POINTER.iter_unpack(found or b""):
                if pointer and pointer % 8 == 0 and pointer in regions:
                    first = self._memory.values(pointer, POINTER)
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

    def _listed(self, vector: int, size: int, place: int) -> list[int]:
        found = self._memory.values(vector, VECTOR)
        if found is None or not 0 <= found[1] - found[0] <= MOST_GPUS * size or (found[1] - found[0]) % size:
            return []
        entries = self._memory.block(found[0], found[1] - found[0]) or b""
        return [int(POINTER.unpack_from(entries, at + place)[0]) for at in range(0, len(entries), size)]


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
        self._allocators = Allocators(memory, layout)
        self._functions = self._allocators.pointer(address)
        self._last: Reading | None = None
        name = self._allocators.name(address)
        if name is None:
            raise Damaged(Damage.NO_NAME)
        self.name = name
        if not any(self._allocators.adds_up(address) for _ in range(TRIES)):
            raise Damaged(Damage.REGIONS)

    def read(self) -> Reading:
        """Return the allocator's figures at one moment.

        Raises:
            Damaged: the figures cannot be those of this allocator.
            NoMemory: the process has no memory any more.
        """
        figures = self._allocators.figures(self.address)
        if figures is None:
            raise Damaged(Damage.UNMAPPED)
        if self._allocators.pointer(self.address) != self._functions:
            raise Damaged(Damage.REPLACED)
        _check(figures, self._allocators.pointer(self.address + self._layout.limit))
        last = self._last
        if last is not None and ((figures.allocations or 0) < (last.allocations or 0) or figures.limit != last.limit):
            raise Damaged(Damage.CONTRADICTS)
        self._last = figures
        return figures

    def copy(self) -> Copy | None:
        """Return the pool's regions and chunks, copied twice and the same both times.

        ``None`` if they changed during every attempt.

        Raises:
            Damaged: there are too many of them for a map, or they cannot be read.
            NoMemory: the process has no memory any more.
        """
        memory = self._memory
        for _ in range(TRIES):
            lists = self._lists()
            if self._allocators.too_many(lists):
                raise Damaged(Damage.TOO_MANY)
            if not self._allocators.are_whole(lists):
                continue
            of_regions, of_chunks = (lists.regions, lists.regions_size), (lists.chunks, lists.chunks_size)
            once = memory.block(*of_regions), memory.block(*of_chunks)
            same = once == (memory.block(*of_regions), memory.block(*of_chunks))
            if once[0] is not None and once[1] is not None and same and self._allocators.unchanged(self.address, lists):
                return Copy(once[0], once[1], lists.figures)
        return None

    def grows(self) -> bool | None:
        """Return whether the pool grows as needed, judging by its regions; ``None`` while they do not show that."""
        lists = self._lists()
        figures, count = lists.figures, lists.regions_size // self._layout.region_size
        if not figures.pool or not figures.limit or figures.limit <= 4 * MIB:
            return None
        # Without growth TensorFlow takes the whole limit at once, or nine tenths of it if that much is not free.
        whole = figures.pool >= figures.limit - (figures.limit >> 3)
        return None if whole and count != 1 else not whole

    def _lists(self) -> Lists:
        lists = self._allocators.lists(self.address)
        if lists is None:
            raise Damaged(Damage.UNMAPPED)
        return lists


def _check(figures: Reading, limit: int | None) -> None:
    rising = [0, figures.in_use]
    rising += [size for size in (figures.pool, figures.peak_pool, figures.limit) if size is not None]
    sound = rising == sorted(rising) and (figures.allocations or 0) >= 0 and figures.limit in (None, limit)
    if not sound or (figures.in_use and not figures.allocations):
        raise Damaged(Damage.FIGURES, str(figures))
