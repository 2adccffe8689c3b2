"""Reads TensorFlow's pools in place: without the native library, and so without a compiler.

No function of an allocator is called and none of its locks is taken. Its figures and chunks are copied from the places
that a table gives for this version. So nothing is created, changed or held up, and a wrong address does no harm.
If TensorFlow changed something during a copy, this is recognised, and it is copied again.
"""

from _struct import Struct, calcsize
from ctypes import CDLL, c_void_p
from os import RTLD_LAZY, RTLD_NOLOAD
from sys import byteorder
from time import monotonic
from typing import Any, Optional

from .devices import asynchronous, gpu_count
from .layouts import Reading, figures_in, form_of, layout_of
from .memory import Memory, Sheet
from .trust import CPU, GPU, NotTrusted, PoolReader, PublicReader, SizeChange, Taken, agree

MOST_CHUNKS = 200_000
"""Chunks of one map at most. The engine, which is written in Python, takes about a second for so many."""

_LIBRARY = "libtensorflow_framework.so.2"
_CPU_STATE = "_ZN10tensorflow12ProcessState9singletonEv"
_GPU_STATE = "_ZN10tensorflow15GPUProcessState9singletonEPS0_"
_ENVIRONMENT = "_ZN3tsl3Env7DefaultEv"
_POOLS = (b"N3tsl12BFCAllocatorE\0", b"N10tensorflow15GPUBFCAllocatorE\0")
"""Classes whose objects have the layout, by the names in their C++ type information."""

_FLAGS = 0b11  # of absl::CondVar, in the lowest bits of its pointer
_TRIES = 10
_PATIENCE = 3  # checks, one with each reading: a pool is not trusted if its regions fail in all of them
_MOST_GPUS = 64
_MOST_REGIONS = 10_000
_SOME_REGIONS = 64
_LONGEST_NAME = 63
_POINTER, _STRING, _VECTOR = Struct("<Q"), Struct("<QQ"), Struct("<QQQ")


class NoCopy(Exception):
    """A pool cannot be copied, now or later. ``events/memory_map.py`` has the values of *why*."""

    def __init__(self, why: str, count: Optional[int] = None, detail: str = "") -> None:
        super().__init__(why, count, detail)
        self.why, self.count, self.detail = why, count, detail


class Direct(PoolReader):
    """The reader of this process's pools. Only one thread may use it, and never in a forked child.

    Raises:
        NotTrusted: the pools of this TensorFlow cannot be read in this way, or not on this system.
        OSError: the kernel does not let this process read its own memory.
    """

    def __init__(self, folder: str, version: str) -> None:
        """*folder* is that of the ``tensorflow`` package that runs here."""
        super().__init__()
        layout = layout_of(version)
        if layout is None:
            raise NotTrusted("layout_unknown", version)
        if calcsize("P") != 8 or byteorder != "little":
            raise NotTrusted("not_64_bit")
        try:
            # Only the library that TensorFlow has loaded already. This call loads none.
            library = CDLL(f"{folder}/{_LIBRARY}", mode=RTLD_NOLOAD | RTLD_LAZY)
            self._cpu_state, self._gpu_state = getattr(library, _CPU_STATE), getattr(library, _GPU_STATE)
            environment = getattr(library, _ENVIRONMENT)
            self._form = form_of(layout)
        except (OSError, AttributeError, ValueError) as error:
            raise NotTrusted("system", str(error)) from None
        for function, arguments in ((self._cpu_state, []), (self._gpu_state, [c_void_p]), (environment, [])):
            function.restype, function.argtypes = c_void_p, arguments
        self._environment: Optional[int] = environment()
        self._layout = layout
        self._memory = Memory()
        self._vectors_to_stats = layout.stats + layout.stats_size - layout.regions
        self._cuda_is_there = False
        self._found: dict[tuple[int, int], Optional[tuple[int, str]]] = {}  # address and name; None is no pool
        self._last: dict[tuple[int, int], tuple[int, Optional[int]]] = {}  # peak and pool
        self._uneven: dict[tuple[int, int], int] = {}  # number of checks in which the regions did not add up

    def gpus(self) -> int:
        """Return how many GPU allocators TensorFlow has made."""
        vector = self._of_gpus(self._layout.gpus)
        count = 0 if vector is None else (vector[1] - vector[0]) // self._layout.part_size
        return min(max(0, count), _MOST_GPUS)

    def take(self, kind: int, index: int) -> Optional[Taken]:
        found = self._find(kind, index)
        reading = None if found is None else self._read(found[0])
        if found is None or reading is None:
            return None
        peak, pool = self._last.get((kind, index), (reading.peak, reading.pool))
        self._last[kind, index] = reading.peak, reading.pool
        if reading.peak > peak:
            reading = reading._replace(high=reading.peak)  # reached since the last reading; else not known
        growths = []
        if pool is not None and reading.pool is not None and pool != reading.pool:
            growths.append(SizeChange(monotonic(), pool, reading.pool))
        return Taken(reading, found[1], None, growths)

    def forget(self) -> None:
        """Drop the last readings: growth since then was reported by another reader."""
        self._last.clear()

    def check(self, kind: int, index: int, public: Optional[PublicReader]) -> bool:
        """Return ``False`` if TensorFlow has not made that allocator, has allocated nothing, or is changing the pool.

        An allocator without a pool is not checked; that returns ``True``.
        """
        if self._allocator(kind, index) is None:
            return False
        found = self._find(kind, index)
        if found is None:
            return True
        address = found[0]
        if not agree(lambda: self._read(address), public):
            return False
        reading = self._read(address)
        if reading is None or not reading.pool:
            return False  # the sums of an empty pool are right even if the table is wrong
        if any(self._adds_up(address) for _ in range(_TRIES)):
            return True
        # On a busy machine the script's thread may have been stopped while it made the pool larger.
        uneven = self._uneven[kind, index] = self._uneven.get((kind, index), 0) + 1
        if uneven == _PATIENCE:
            raise NotTrusted("regions")
        return False

    def shows_waits(self, kind: int, index: int) -> bool:
        """Return whether that allocator keeps a pool in which allocations wait for room, and :meth:`waits` sees it.

        Waiting allocations are in a list at the end of TensorFlow's ``AllocatorRetry``. That object lies between two
        values that are known from elsewhere: it begins with a pointer to TensorFlow's ``Env``, and the pool's limit
        follows it. If both values are found, the list is between them, where the headers of this version place it.
        """
        found = self._find(kind, index)
        if found is None:
            return False
        layout, address = self._layout, found[0]
        reading, limit = self._read(address), self._memory.values(address + layout.limit, _POINTER)
        return (
            self._pointer(address + layout.environment) == self._environment
            and reading is not None
            and limit == (reading.limit,)
            and self._memory.block(address + layout.retries, 1) == b"\1"
        )

    def waits(self, kind: int, index: int) -> bool:
        """Return whether an allocation waits for room in that pool. It waits for up to 10 s before it fails.

        This was measured with every version in the table, with one and with three allocations that waited. The list
        was always empty while threads allocated what had room. It was never empty while an allocation waited and no
        memory was freed.
        """
        found = self._find(kind, index)
        waiters = None if found is None else self._pointer(found[0] + self._layout.waiters)
        return waiters is not None and waiters & ~_FLAGS != 0

    def cut(self, kind: int, index: int, sheet: Sheet) -> "Optional[dict[str, Any]]":
        """Copy a pool's regions and then its chunks to *sheet*, as they lie in TensorFlow's memory.

        Return what a Chunks event says of the copy; ``None`` if the pool changed during every attempt.

        Raises:
            NoCopy: the allocator keeps no pool, or the pool has too many chunks or regions.
            OSError: the sheet has no room.
        """
        found = self._find(kind, index)
        if found is None:
            raise NoCopy("async" if asynchronous() else "not_bfc")
        layout, memory = self._layout, self._memory
        at = found[0] + layout.regions
        for _ in range(_TRIES):
            before = memory.block(at, self._vectors_to_stats)
            if before is None:
                return None
            regions, end_of_regions, _ = _VECTOR.unpack_from(before)
            chunks, end_of_chunks, _ = _VECTOR.unpack_from(before, layout.chunks - layout.regions)
            first, second = end_of_regions - regions, end_of_chunks - chunks
            if first > _MOST_REGIONS * layout.region_size or second > MOST_CHUNKS * layout.chunk_size:
                raise NoCopy("too_many", MOST_CHUNKS)
            if first < 0 or second < 0:
                continue
            to = sheet.room(first + second)
            whole = memory.copy(regions, first, to) and memory.copy(chunks, second, to + first)
            if whole and memory.block(at, self._vectors_to_stats) == before:
                reading = figures_in(before[layout.stats - layout.regions :], self._form)
                of_region = [layout.region_size, layout.region_address, layout.region_bytes]
                of_chunk = [layout.chunk_size, layout.chunk_address, layout.chunk_bytes]
                return {
                    "pool": reading.pool or 0,
                    "in_use": reading.in_use,
                    "regions": [first // layout.region_size, *of_region],
                    "chunks": [second // layout.chunk_size, *of_chunk],
                    "chunk": [layout.chunk_requested, layout.chunk_id, layout.chunk_bin],
                }
        return None

    def _find(self, kind: int, index: int) -> "Optional[tuple[int, str]]":
        """Return address and name of a pool, which exists until the process ends; ``None`` if there is none."""
        key = kind, index
        if key not in self._found:
            address = self._allocator(kind, index)
            if address is None:
                return None
            self._found[key] = (address, self._name(address)) if self._is_pool(address) else None
        return self._found[key]

    def _allocator(self, kind: int, index: int) -> Optional[int]:
        """Return an allocator's address from the list in which TensorFlow keeps it; ``None`` if it is not there.

        TensorFlow's getters are not used, as they would make the allocator. The list is read without its lock, so the
        object at the address is checked before it is trusted.
        """
        layout = self._layout
        if kind == CPU:
            vector = self._memory.values(self._cpu_state() + layout.cpus, _VECTOR)
            size, place = _POINTER.size, 0
        else:
            vector = self._of_gpus(layout.gpus if kind == GPU else layout.hosts)
            size, place = layout.part_size, layout.part_allocator
        if vector is None or not 0 <= index < (vector[1] - vector[0]) // size:
            return None
        return self._pointer(vector[0] + index * size + place)

    def _of_gpus(self, place: int) -> "Optional[tuple[Any, ...]]":
        """Return a vector in TensorFlow's state of its GPUs; ``None`` without a driver: this would make that state."""
        self._cuda_is_there = self._cuda_is_there or gpu_count() is not None
        return self._memory.values(self._gpu_state(None) + place, _VECTOR) if self._cuda_is_there else None

    def _is_pool(self, address: int) -> bool:
        """Return whether an object of one of the known classes is there: each object leads to its class's name."""
        functions = self._pointer(address)
        kind = self._pointer(functions - 8) if functions else None
        name = self._pointer(kind + 8) if kind else None
        return name is not None and any(self._memory.block(name, len(known)) == known for known in _POOLS)

    def _name(self, address: int) -> str:
        text = self._memory.values(address + self._layout.name, _STRING)
        if text is None or not 0 < text[1] <= _LONGEST_NAME:
            raise NotTrusted("name")
        name = (self._memory.block(*text) or b"").decode("ascii", "replace")
        if not (name.isascii() and name.isprintable()):
            raise NotTrusted("name")
        return name

    def _pointer(self, address: int) -> Optional[int]:
        """Return the address in the pointer at *address*; ``None`` if that is null or cannot be read."""
        found = self._memory.values(address, _POINTER)
        return found[0] or None if found else None

    def _read(self, address: int) -> Optional[Reading]:
        """Return the figures of a pool at one moment: they are read until two reads are the same."""
        layout = self._layout
        found = self._memory.block(address + layout.stats, layout.stats_size)
        for _ in range(_TRIES):
            before, found = found, self._memory.block(address + layout.stats, layout.stats_size)
            if found == before:
                break
        return None if found is None else figures_in(found, self._form)

    def _adds_up(self, address: int) -> bool:
        """Return whether the regions, or the first of many, fit the pool's size and both vectors hold whole elements.

        ``False`` also if they cannot be read.
        """
        layout = self._layout
        before = self._memory.block(address + layout.regions, self._vectors_to_stats)
        if before is None:
            return False
        begin, end, _ = _VECTOR.unpack_from(before)
        chunks, end_of_chunks, _ = _VECTOR.unpack_from(before, layout.chunks - layout.regions)
        limit = self._memory.values(address + layout.limit, _POINTER)
        reading = figures_in(before[layout.stats - layout.regions :], self._form)
        if (end - begin) % layout.region_size or (end_of_chunks - chunks) % layout.chunk_size or limit is None:
            return False
        count = (end - begin) // layout.region_size
        regions = self._memory.block(begin, min(count, _SOME_REGIONS) * layout.region_size)
        if count < 0 or regions is None or reading.pool is None or reading.limit not in (None, limit[0]):
            return False
        places = range(layout.region_bytes, len(regions), layout.region_size)
        total = sum(int(_POINTER.unpack_from(regions, place)[0]) for place in places)
        return total == reading.pool or (count > _SOME_REGIONS and 0 < total < reading.pool)
