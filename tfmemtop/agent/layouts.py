"""The places of an allocator's figures in memory, by TensorFlow's version: offsets and sizes in bytes.

A compiler printed them from TensorFlow's own headers. ``tests/tools/layouts.py`` makes the row of a new version. They
are right for 64-bit processes with GCC's new ``std::string``.
"""

from _struct import Struct, calcsize
from typing import NamedTuple, Optional


class Layout(NamedTuple):
    """Offsets and sizes in bytes in one version of TensorFlow.

    The first eight are places in a ``BFCAllocator``, ``allocations`` to ``peak_pool`` in its ``AllocatorStats``.

    ``environment`` and ``waiters`` are the first and the last part of its ``AllocatorRetry``: a pointer to TensorFlow's
    ``Env``, and a pointer to the list of threads that wait for memory. Apart from flag bits, the latter is null while
    no thread waits. ``retries`` is a bool: whether allocations wait at all.

    ``limit_told`` to ``peak_pool`` are ``std::optional``, ``regions`` and ``chunks`` vectors.
    """

    environment: int
    waiters: int
    retries: int
    name: int
    limit: int
    stats: int
    regions: int
    chunks: int
    allocations: int
    in_use: int
    peak: int
    limit_told: int
    pool: int
    peak_pool: int
    stats_size: int
    chunk_size: int  # of one chunk in the vector, and places in it
    chunk_bytes: int
    chunk_requested: int
    chunk_id: int
    chunk_address: int
    chunk_bin: int
    region_size: int  # of one region in the vector, and places in it
    region_address: int
    region_bytes: int
    cpus: int  # in ProcessState, a vector of pointers to allocators
    gpus: int  # in GPUProcessState, a vector of structures, and so is the next
    hosts: int
    part_size: int  # of one such structure
    part_allocator: int


_OF_2_19 = Layout(
    **{"environment": 8, "waiters": 24, "retries": 1217},
    **{"name": 1256, "limit": 32, "stats": 1456, "regions": 1392, "chunks": 1416},
    **{"allocations": 0, "in_use": 8, "peak": 16, "limit_told": 32, "pool": 88, "peak_pool": 104, "stats_size": 120},
    **{"chunk_size": 64, "chunk_bytes": 0, "chunk_requested": 8, "chunk_id": 16, "chunk_address": 24, "chunk_bin": 48},
    **{"region_size": 48, "region_address": 0, "region_bytes": 8},
    **{"cpus": 24, "gpus": 32, "hosts": 80, "part_size": 40, "part_allocator": 0},
)
_OF_2_18 = _OF_2_19._replace(cpus=32, gpus=40, hosts=88)
_OF_2_16 = _OF_2_18._replace(waiters=40, retries=1233, name=1272, limit=48, stats=1480, regions=1416, chunks=1440)
_OF_2_22 = _OF_2_19._replace(
    **{"retries": 889, "name": 944, "stats": 1152, "regions": 1080, "chunks": 1104},
    **{"pool": 96, "peak_pool": 112, "stats_size": 128, "chunk_size": 104},
)

LAYOUTS = {
    "2.16": _OF_2_16,
    "2.17": _OF_2_16,
    "2.18": _OF_2_18,
    "2.19": _OF_2_19,
    "2.20": _OF_2_19,
    "2.21": _OF_2_19,
    "2.22": _OF_2_22,  # of 2.22.0rc0
}


def layout_of(version: str) -> Optional[Layout]:
    """Return the layout of the TensorFlow *version*, such as ``2.21.0``; ``None`` if it is not known."""
    return LAYOUTS.get(".".join(version.split(".")[:2]))


class Reading(NamedTuple):
    """An allocator's figures at one moment, in bytes; ``None`` where the reader cannot find the figure."""

    in_use: int
    peak: int
    pool: Optional[int] = None
    limit: Optional[int] = None
    peak_pool: Optional[int] = None
    allocations: Optional[int] = None
    high: Optional[int] = None  # highest in use since the reading before


def form_of(layout: Layout) -> Struct:
    """Return the form of an ``AllocatorStats``: after a figure that may be missing comes a flag whether it is there.

    Raises:
        ValueError: the figures of *layout* are not in the order of their places.
    """
    form, at = "<", 0
    figures = [(layout.allocations, "q"), (layout.in_use, "q"), (layout.peak, "q")]
    figures += [(layout.limit_told, "q?"), (layout.pool, "q?"), (layout.peak_pool, "q?")]
    for place, figure in figures:
        if place < at:
            raise ValueError(layout)
        form += f"{place - at}x{figure}"
        at = place + calcsize("<" + figure)
    return Struct(form)


def figures_in(stats: bytes, form: Struct) -> Reading:
    """Return the figures of an ``AllocatorStats``."""
    allocations, in_use, peak, limit, limited, pool, pooled, peak_pool, peaked = form.unpack_from(stats)
    return Reading(
        in_use,
        max(in_use, peak),  # the copy may fall between two writes of TensorFlow, which sets the peak next
        pool if pooled else None,
        (limit or None) if limited else None,
        max(pool, peak_pool) if pooled and peaked else None,
        allocations,
    )
