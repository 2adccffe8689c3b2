"""Finds TensorFlow's allocators in another process, from the objects in which TensorFlow lists them.

``ProcessState`` and ``GPUProcessState`` exist once in each process. A variable of the library points to each of them.
The variable has no exported name, but the class's table of functions has one, and an object of the class begins with
the address of that table. So the pointer is the one, among the library's few variables, that leads to such an object.
Only where the library does not export the tables, the process's memory is searched for allocators, for a short time.
"""

import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from struct import Struct
from threading import get_native_id

from tfmemtop.agent.layouts import Layout
from tfmemtop.engine.sources.outside.elf import Library
from tfmemtop.engine.sources.outside.remote import Regions, RemoteMemory
from tfmemtop.units import MIB

CPU, GPU, PINNED = "CPU:0", "GPU", "HOST:0"
_CPUS, _GPUS = b"_ZTVN10tensorflow12ProcessStateE", b"_ZTVN10tensorflow15GPUProcessStateE"
_POOLS = (b"_ZTVN3tsl12BFCAllocatorE", b"_ZTVN10tensorflow15GPUBFCAllocatorE")
_CLASSES = (b"N3tsl12BFCAllocatorE", b"N10tensorflow15GPUBFCAllocatorE")
_TABLE = 16  # bytes of a class's table before its first function
_POINTER, _VECTOR = Struct("<Q"), Struct("<QQQ")
_MOST_VARIABLES = 8 * MIB
_MOST_GPUS = 64
_PIECE = 4 * MIB
_SEARCH_S, _PART_S = 2.0, 3.0
"""The most CPU time of a search, and the most wall-clock time of one part of it.

On a busy machine a thread with a low priority gets CPU time slowly.
"""
_NICE = 10


class Search:
    """Searches *regions* for objects that begin with one of *needles*: a part at each :meth:`proceed`.

    The CPU time of the whole search is bounded, and so is the wall-clock time of each part. On a busy machine a search
    takes more parts.
    """

    def __init__(self, memory: RemoteMemory, needles: list[bytes], regions: Regions) -> None:
        self._memory = memory
        self._needles = needles
        self._pieces = (
            (at, min(_PIECE, end - at)) for start, end in regions.pieces for at in range(start, end, _PIECE)
        )
        self._left_s = _SEARCH_S
        self.over = False

    def proceed(self) -> list[int]:
        """Search the next part, and return the addresses of what was found in it.

        It runs in a thread of its own with a lower priority: the calling thread could not raise its priority again
        afterwards.
        """
        if self.over:
            return []
        with ThreadPoolExecutor(1, initializer=_be_nice) as apart:
            return apart.submit(lambda: list(self._part())).result()

    def _part(self) -> Iterator[int]:
        begun, until = time.thread_time(), time.monotonic() + _PART_S
        for at, size in self._pieces:
            yield from self._in_piece(at, self._memory.block(at, size) or b"")
            spent = time.thread_time() - begun
            if spent > self._left_s:
                break
            if time.monotonic() > until:
                self._left_s -= spent
                return
        self.over = True

    def _in_piece(self, start: int, piece: bytes) -> Iterator[int]:
        for needle in self._needles:
            place = piece.find(needle)
            while place >= 0:
                if place % 8 == 0:
                    yield start + place
                place = piece.find(needle, place + 8)


class Lists:
    """TensorFlow's own lists of its allocators, in one process.

    Raises:
        NotReadable: the library's table of symbols is missing or invalid.
        Gone: the process has no memory any more.
    """

    def __init__(self, memory: RemoteMemory, library: Library, layout: Layout) -> None:
        self._memory = memory
        self._layout = layout
        self._bss = library.bss
        self._tables = {name: address + _TABLE for name in (_CPUS, _GPUS) if (address := library.symbol(name))}
        self._pools = {address + _TABLE for name in _POOLS if (address := library.symbol(name))}
        self._states: dict[bytes, int] = {}

    @property
    def named(self) -> bool:
        """Whether the library exports the class's table of functions, so that its object can be found."""
        return _CPUS in self._tables

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

    def search(self, regions: Regions) -> Search:
        """Return a search of the process's memory for objects that may be allocators with a pool."""
        return Search(self._memory, [_POINTER.pack(table) for table in self._pools], regions)

    def _listed(self, vector: int, size: int, place: int) -> list[int]:
        found = self._memory.values(vector, _VECTOR)
        if found is None or not 0 <= found[1] - found[0] <= _MOST_GPUS * size or (found[1] - found[0]) % size:
            return []
        entries = self._memory.block(found[0], found[1] - found[0]) or b""
        return [int(_POINTER.unpack_from(entries, at + place)[0]) for at in range(0, len(entries), size)]


def _be_nice() -> None:
    try:
        os.setpriority(os.PRIO_PROCESS, get_native_id(), _NICE)
    except OSError:
        return  # the priority was lower already
