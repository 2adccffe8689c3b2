"""The map of a whole pool: its regions, its chunks, and where they lie."""

from enum import Enum
from typing import Annotated

import msgspec

from tfmemtop.bounds import Few, Many, Name, Number, Positive, Seconds, Share, Size, Some, Text
from tfmemtop.events.base import DescribedEnum, Event, Latest, Origin
from tfmemtop.events.damage import Damage


class Region(msgspec.Struct, frozen=True, array_like=True):
    """A piece of address space that a pool took at once. It has ``cells`` cells of the map."""

    address: Size
    size: Positive
    in_use: Size
    chunks: Size
    chunks_in_use: Size
    cells: Size


class Bin(msgspec.Struct, frozen=True, array_like=True):
    """All chunks of at least ``size`` bytes and less than the size of the next bin."""

    number: Number
    size: Size
    chunks: Size
    chunks_in_use: Size
    bytes: Size
    bytes_in_use: Size


class Chunk(msgspec.Struct, frozen=True, array_like=True):
    """A chunk in use, and how many bytes of it were requested."""

    address: Size
    size: Size
    requested: Size


class Mapless(DescribedEnum):
    """Why the hook sends no map of a pool; in braces, the fields of :class:`MemoryMap` that belong to the reason."""

    ASYNC = "async", "cuda_malloc_async, CUDA's own pool, does not show how it is cut up"
    NOT_BFC = "not_bfc", "only pools of the allocator BFC have a map, and this is another one"
    NO_FOLDER = "no_folder", "the session's folder is not known in this process"
    TOO_MANY = "too_many", "the pool has more than {count} chunks, too many for a map"
    NO_ROOM = "no_room", "there is no room to put the map down: {detail}"


class MapMoment(Enum):
    """When the map was made."""

    LIVE = "live"
    OUT_OF_MEMORY = "out_of_memory"  # an allocation failed, and TensorFlow still tried when the hook copied the pool


class MemoryMap(Event, tag="memory_map", frozen=True):
    """How a pool's address space is used.

    ``cells`` has one byte for each cell, region after region: the share in use, from 0 (nothing) to 255 (all).
    With ``region``, a region's address, all cells show that region. ``sizes[i]`` is the number of chunks in use that
    have at least 2**i bytes and less than twice that. ``mapless``, with ``count`` and ``detail``, is the reason why
    the hook sends no map. ``damage``, with ``detail``, is what was wrong with the copy of the pool of which it is made.
    """

    origin = Origin.HOOK
    keep = Latest("pid", "device", "moment", "of_one_region")
    droppable = True

    pid: Number
    device: Name
    moment: MapMoment = MapMoment.LIVE
    region: Size | None = None
    pool: Size = 0
    in_use: Size = 0
    chunks: Size = 0
    chunks_in_use: Size = 0
    largest_free: Size = 0
    fragmentation: Share = 0.0  # share of the free bytes that lie outside the largest free chunk
    regions_found: Size = 0  # the number of all regions; at most 512 are listed
    cells: Annotated[bytes, Many] = b""
    regions: Annotated[list[Region], Some] = msgspec.field(default_factory=list)
    bins: Annotated[list[Bin], Few] = msgspec.field(default_factory=list)
    sizes: Annotated[list[Size], Few] = msgspec.field(default_factory=list)
    biggest: Annotated[list[Chunk], Few] = msgspec.field(default_factory=list)
    cost_us: Size | None = None  # time that reading it took in the script's process
    pace_s: Seconds | None = None  # time to the next map, longer where reading costs much
    mapless: Mapless | None = None
    count: Size | None = None
    detail: Text = ""
    damage: Damage | None = None

    @property
    def is_missing(self) -> bool:
        """Whether there is no map."""
        return self.mapless is not None or self.damage is not None

    @property
    def of_one_region(self) -> bool:
        """Whether all cells show one region."""
        return self.region is not None


class Chunks(msgspec.Struct, tag_field="type", tag="chunks", frozen=True, kw_only=True):
    """A hook's message: a file in the session's folder lists the regions and chunks of a pool.

    The engine makes maps of the file. The message itself is not an event and is not published.

    The file contains all regions, then all chunks. ``regions`` and ``chunks`` describe these records, each by four
    numbers: how many records there are, the bytes of one record, and the offsets of address and size in it. ``chunk``
    are the offsets of the requested bytes, the number and the bin in the record of a chunk. ``wanted`` are the
    requested maps: each is a region's address, or ``None`` for all regions, with the seconds until the next map.
    ``moment`` is that of :class:`MemoryMap`; each moment has a file of its own.
    """

    pid: Number
    device: Name
    moment: MapMoment = MapMoment.LIVE
    pool: Size
    in_use: Size
    regions: tuple[Size, Size, Size, Size]
    chunks: tuple[Size, Size, Size, Size]
    chunk: tuple[Size, Size, Size]
    wanted: Annotated[list[tuple[Size | None, Seconds]], Few]
    cost_us: Size
