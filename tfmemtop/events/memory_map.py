"""What the probe reads of a whole pool: its regions, its chunks, and how they lie."""

from enum import Enum
from typing import Annotated, Literal

import msgspec

from tfmemtop.bounds import Few, Many, Name, Number, Seconds, Share, Size, Some, Text
from tfmemtop.events.base import Event, Origin
from tfmemtop.events.damage import Damage
from tfmemtop.events.keep import Latest


class Region(msgspec.Struct, frozen=True, array_like=True):
    """A piece of address space that a pool took at once. ``cells`` of the map are its."""

    address: Size
    size: Size
    in_use: Size
    chunks: Size
    chunks_in_use: Size
    cells: Size


class Bin(msgspec.Struct, frozen=True, array_like=True):
    """All chunks from ``size`` bytes up to the next bin's."""

    number: Number
    size: Size
    chunks: Size
    chunks_in_use: Size
    bytes: Size
    bytes_in_use: Size


class Chunk(msgspec.Struct, frozen=True, array_like=True):
    """A chunk in use, and how much of it was asked for."""

    address: Size
    size: Size
    requested: Size


class Mapless(Enum):
    """Why the hook gives no map of a pool; in brackets, which fields of :class:`MemoryMap` belong to it."""

    ASYNC = "async"  # cuda_malloc_async, CUDA's own pool, does not show it
    NOT_BFC = "not_bfc"
    NO_FOLDER = "no_folder"  # of the session is known in the process
    TOO_MANY = "too_many"  # chunks, without the probe (count: how many may be)
    NO_ROOM = "no_room"  # to put it down (detail: the error)


class MemoryMap(Event, tag="memory_map", frozen=True):
    """How a pool's address space is used.

    ``cells`` holds a byte for each cell, region after region: the share in use, 0 nothing, 255 all.
    With ``region``, its address, all cells are of that one. ``sizes[i]`` counts chunks in use of
    2**i bytes up to twice that. ``moment`` is ``out_of_memory`` for what TensorFlow wrote down when
    an allocation failed. ``mapless``, with ``count`` and
    ``detail``, is why the hook gives no map; ``damage``, with ``detail``, is what was wrong with one; ``missing`` is
    a sentence of an older recording. With ``of_copy`` the pool was read without the probe.
    """

    origin = Origin.HOOK
    keep = Latest("pid", "device", "moment", "of_one_region")
    droppable = True

    pid: Number
    device: Name
    moment: Literal["live", "out_of_memory"] = "live"
    region: Size | None = None
    pool: Size = 0
    in_use: Size = 0
    chunks: Size = 0
    chunks_in_use: Size = 0
    largest_free: Size = 0
    fragmentation: Share = 0.0  # share of the free bytes that lie outside the largest free chunk
    regions_found: Size = 0  # of which at most 512 are listed
    cells: Annotated[bytes, Many] = b""
    regions: Annotated[list[Region], Some] = msgspec.field(default_factory=list)
    bins: Annotated[list[Bin], Few] = msgspec.field(default_factory=list)
    sizes: Annotated[list[Size], Few] = msgspec.field(default_factory=list)
    biggest: Annotated[list[Chunk], Few] = msgspec.field(default_factory=list)
    cost_us: Size | None = None  # of reading it, in the script's process
    pace_s: Seconds | None = None  # time to the next one, stretched where reading costs much
    missing: Text | None = None
    of_copy: bool = False
    mapless: Mapless | None = None
    count: Size | None = None
    detail: Text = ""
    damage: Damage | None = None

    @property
    def is_missing(self) -> bool:
        """Whether there is no map."""
        return self.mapless is not None or self.damage is not None or self.missing is not None

    @property
    def of_one_region(self) -> bool:
        """Whether all cells are of one region."""
        return self.region is not None


class Chunks(msgspec.Struct, tag_field="type", tag="chunks", frozen=True, kw_only=True):
    """How a pool is cut up lies in the session's folder, for the engine to make maps of.

    Hooks send it, but it is not an event: it is not published.

    ``regions`` and ``chunks``, which lie there one after the other, are each described by count, bytes of one, and
    where in it address and size are; ``chunk`` is where a chunk has the bytes asked for, number and bin.
    ``wanted`` are regions by address, ``None`` for all, and the seconds until the next map. ``moment`` is that of
    :class:`MemoryMap`; each has a file of its own.
    """

    pid: Number
    device: Name
    moment: Literal["live", "out_of_memory"] = "live"
    pool: Size
    in_use: Size
    regions: tuple[Size, Size, Size, Size]
    chunks: tuple[Size, Size, Size, Size]
    chunk: tuple[Size, Size, Size]
    wanted: Annotated[list[tuple[Size | None, Seconds]], Few]
    cost_us: Size
