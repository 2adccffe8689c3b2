"""Reads TensorFlow's pools in place: without the native library, and so without a compiler.

If TensorFlow changed something during a copy, this is recognised, and it is copied again.
"""

from _struct import calcsize
from ctypes import CDLL, c_void_p
from os import RTLD_LAZY, RTLD_NOLOAD
from sys import byteorder
from time import monotonic
from typing import Any, Optional

from .bfc import MOST_CHUNKS, MOST_GPUS, POINTER, TRIES, VECTOR, Allocators
from .devices import asynchronous, gpu_count
from .layouts import layout_of
from .memory import Memory, Sheet
from .trust import CPU, GPU, NotTrusted, PoolReader, PublicReader, SizeChange, Taken, agree

_LIBRARY = "libtensorflow_framework.so.2"
_CPU_STATE = "_ZN10tensorflow12ProcessState9singletonEv"
_GPU_STATE = "_ZN10tensorflow15GPUProcessState9singletonEPS0_"
_ENVIRONMENT = "_ZN3tsl3Env7DefaultEv"
_FLAGS = 0b11  # of absl::CondVar, in the lowest bits of its pointer
_PATIENCE = 3  # checks, one with each reading: a pool is not trusted if its regions fail in all of them


class NoCopy(Exception):
    """A pool cannot be copied, now or later. ``events/memory_map.py`` has the values of *why*."""

    def __init__(self, why: str, count: Optional[int] = None, detail: str = "") -> None:
        super().__init__(why, count, detail)
        self.why, self.count, self.detail = why, count, detail


class Direct(PoolReader):
    """The reader of this process's pools. Only one thread may use it, and never in a forked child.

    Raises:
        NotTrusted: the pools of this TensorFlow cannot be read in this way, or not on this system.
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
            self._memory = Memory()
            self._allocators = Allocators(self._memory, layout)
        except (OSError, AttributeError, ValueError) as error:
            raise NotTrusted("system", str(error)) from None
        for function, arguments in ((self._cpu_state, []), (self._gpu_state, [c_void_p]), (environment, [])):
            function.restype, function.argtypes = c_void_p, arguments
        self._environment: Optional[int] = environment()
        self._layout = layout
        self._cuda_is_there = False
        self._found: dict[tuple[int, int], Optional[tuple[int, str]]] = {}  # address and name; None is no pool
        self._last: dict[tuple[int, int], tuple[int, Optional[int]]] = {}  # peak and pool
        self._uneven: dict[tuple[int, int], int] = {}  # number of checks in which the regions did not add up

    def gpus(self) -> int:
        """Return how many GPU allocators TensorFlow has made."""
        vector = self._of_gpus(self._layout.gpus)
        count = 0 if vector is None else (vector[1] - vector[0]) // self._layout.part_size
        return min(max(0, count), MOST_GPUS)

    def take(self, kind: int, index: int) -> Optional[Taken]:
        found = self._find(kind, index)
        reading = None if found is None else self._allocators.figures(found[0])
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
        address, allocators = found[0], self._allocators
        if not agree(lambda: allocators.figures(address), public):
            return False
        reading = allocators.figures(address)
        if reading is None or not reading.pool:
            return False  # the sums of an empty pool are right even if the table is wrong
        if any(allocators.adds_up(address) for _ in range(TRIES)):
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
        layout, address, allocators = self._layout, found[0], self._allocators
        reading = allocators.figures(address)
        return (
            allocators.pointer(address + layout.environment) == self._environment
            and reading is not None
            and reading.limit is not None
            and allocators.pointer(address + layout.limit) == reading.limit
            and self._memory.block(address + layout.retries, 1) == b"\1"
        )

    def waits(self, kind: int, index: int) -> bool:
        """Return whether an allocation waits for room in that pool. It waits for up to 10 s before it fails.

        This was measured with every version in the table, with one and with three allocations that waited. The list
        was always empty while threads allocated what had room. It was never empty while an allocation waited and no
        memory was freed.
        """
        found = self._find(kind, index)
        waiters = None if found is None else self._allocators.pointer(found[0] + self._layout.waiters)
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
        layout, memory, allocators = self._layout, self._memory, self._allocators
        for _ in range(TRIES):
            lists = allocators.lists(found[0])
            if lists is None:
                return None
            if allocators.too_many(lists):
                raise NoCopy("too_many", MOST_CHUNKS)
            if not allocators.are_whole(lists):
                continue
            first, second = lists.regions_size, lists.chunks_size
            to = sheet.room(first + second)
            whole = memory.copy(lists.regions, first, to) and memory.copy(lists.chunks, second, to + first)
            if whole and allocators.unchanged(found[0], lists):
                of_region = [layout.region_size, layout.region_address, layout.region_bytes]
                of_chunk = [layout.chunk_size, layout.chunk_address, layout.chunk_bytes]
                return {
                    "pool": lists.figures.pool or 0,
                    "in_use": lists.figures.in_use,
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
            name = self._allocators.name(address) if self._allocators.is_pool(address) else ""
            if name is None:
                raise NotTrusted("name")
            self._found[key] = (address, name) if name else None
        return self._found[key]

    def _allocator(self, kind: int, index: int) -> Optional[int]:
        """Return an allocator's address from the list in which TensorFlow keeps it; ``None`` if it is not there.

        TensorFlow's getters are not used, as they would make the allocator. The list is read without its lock, so the
        object at the address is checked before it is trusted.
        """
        layout = self._layout
        if kind == CPU:
            vector = self._memory.values(self._cpu_state() + layout.cpus, VECTOR)
            size, place = POINTER.size, 0
        else:
            vector = self._of_gpus(layout.gpus if kind == GPU else layout.hosts)
            size, place = layout.part_size, layout.part_allocator
        if vector is None or not 0 <= index < (vector[1] - vector[0]) // size:
            return None
        return self._allocators.pointer(vector[0] + index * size + place)

    def _of_gpus(self, place: int) -> "Optional[tuple[Any, ...]]":
        """Return a vector in TensorFlow's state of its GPUs; ``None`` without a driver: this would make that state."""
        self._cuda_is_there = self._cuda_is_there or gpu_count() is not None
        return self._memory.values(self._gpu_state(None) + place, VECTOR) if self._cuda_is_there else None
