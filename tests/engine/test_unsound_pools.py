"""A pool whose figures cannot be right is left out, and then searched for again, whatever the other pools are.

The pools are in this process's own memory, which is read as another process's is.
"""

import ctypes
import os
import struct
from collections.abc import Iterator

import pytest
from msgspec.structs import replace

from tfmemtop.agent.layouts import LAYOUTS
from tfmemtop.engine.sources.outside.look import Look
from tfmemtop.engine.sources.outside.pools import Pool
from tfmemtop.engine.sources.outside.remote import RemoteMemory
from tfmemtop.events import Damage, OutsideState

LAYOUT = LAYOUTS["2.21"]
LIMIT, POOL, IN_USE = 1 << 30, 1 << 20, 4096
READINGS = 20
"""After so many that are not sound, a pool is given up."""


class Made:
    """An allocator in this process's memory, laid out as TensorFlow's are, with one region and no chunks."""

    def __init__(self, name: bytes) -> None:
        self._name = ctypes.create_string_buffer(name)
        self._region = ctypes.create_string_buffer(LAYOUT.region_size)
        self._whole = ctypes.create_string_buffer(LAYOUT.stats + LAYOUT.stats_size)
        self.address = ctypes.addressof(self._whole)
        struct.pack_into("<Q", self._region, LAYOUT.region_bytes, POOL)
        region = ctypes.addressof(self._region)
        self._put(0, "<Q", self.address)
        self._put(LAYOUT.name, "<QQ", ctypes.addressof(self._name), len(name))
        self._put(LAYOUT.limit, "<q", LIMIT)
        self._put(LAYOUT.regions, "<QQQ", region, *(region + LAYOUT.region_size,) * 2)
        self._put(LAYOUT.stats + LAYOUT.allocations, "<q", 1)
        self._put(LAYOUT.stats + LAYOUT.limit_told, "<q?", LIMIT, True)
        self._put(LAYOUT.stats + LAYOUT.pool, "<q?", POOL, True)
        self.use(IN_USE)

    def use(self, in_use: int) -> None:
        """Set the bytes in use. More than the pool has are not sound."""
        self._put(LAYOUT.stats + LAYOUT.in_use, "<q", in_use)

    def _put(self, place: int, form: str, *values: int) -> None:
        struct.pack_into(form, self._whole, place, *values)


@pytest.fixture
def made() -> dict[str, Made]:
    return {f"GPU:{number}": Made(b"GPU_%d_bfc" % number) for number in range(3)}


@pytest.fixture
def look(made: dict[str, Made]) -> Iterator[Look]:
    """A look at this process that has found those pools."""
    found = Look(os.getpid())
    found._memory = memory = RemoteMemory(os.getpid())
    found._pools = {device: Pool(memory, LAYOUT, one.address) for device, one in made.items()}
    found.about = replace(found.about, state=OutsideState.READING)
    yield found
    found.close()


def test_each_has_its_own_count(made: dict[str, Made], look: Look) -> None:
    made["GPU:0"].use(POOL + 1)
    made["GPU:1"].use(POOL + 1)
    for _ in range(READINGS - 1):
        look.read()
    assert look._pools.keys() == made.keys()
    made["GPU:0"].use(IN_USE)
    made["GPU:2"].use(POOL + 1)
    assert look.read().keys() == {"GPU:0"}
    assert look._pools.keys() == {"GPU:0", "GPU:2"}
    made["GPU:0"].use(POOL + 1)
    for _ in range(READINGS):
        look.read()
    assert not look._pools
    assert (look.about.state, look.about.damage) == (OutsideState.NOT_SOUND, Damage.FIGURES)
