"""The files of chunks that a hook writes become maps, all parts of which agree. A file of nonsense does no harm."""

import os
import struct
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.pools import check_map
from tfmemtop.engine.sources.chunk_maps import ChunkMaps, Piece, condense
from tfmemtop.engine.stream import Stream
from tfmemtop.events import Chunks, Damage, Event, HookEnd, HookEnding, MapMoment, MemoryMap
from tfmemtop.events.damage import damage_text
from tfmemtop.findings.missing import refusal_text

BASE = 1 << 40
# Two adjacent regions. The list of chunks is in no order, and one of the chunks is free.
REGIONS = [(BASE, 1024), (BASE + 1024, 2048)]
CHUNKS = [(BASE + 1024, 2048, 2000, 7, -1), (0, 512, 0, -1, -1), (BASE + 512, 512, 0, -1, 1), (BASE, 512, 300, 9, -1)]

TOLD = Chunks(
    pid=7,
    device="GPU:0",
    pool=3072,
    in_use=2560,
    regions=(2, 16, 0, 8),
    chunks=(4, 40, 24, 0),
    chunk=(8, 16, 32),
    wanted=[(None, 1.0), (BASE + 1024, 0.5)],
    cost_us=5,
)


class Desk:
    """A folder with the file that a hook wrote, and the events that are published of it."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "7.GPU:0.live.chunks"
        stream = Stream()
        self.events: list[Event] = []
        stream.listen(self.events.append)
        self._publish = stream.publish
        self.maps = ChunkMaps(stream, folder)
        self.maps.begin()
        regions = b"".join(struct.pack("<QQ", *region) for region in REGIONS)
        chunks = b"".join(
            struct.pack("<QQqQi4x", size, asked, number, at, bin) for at, size, asked, number, bin in CHUNKS
        )
        self.file.write_bytes(regions + chunks)

    def told(self, chunks: Chunks, times: int = 1) -> list[MemoryMap]:
        """Return the maps that are made of *chunks*."""
        before = len(self.events)
        for _ in range(times):
            self.maps.take(chunks)
            self.maps.drain()
        return [event for event in self.events[before:] if isinstance(event, MemoryMap)]

    def ends(self) -> None:
        """Publish that the process has ended."""
        self._publish(HookEnd(t=0.0, pid=7, reason=HookEnding.LOST))
        self.maps.drain()


@pytest.fixture
async def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


async def test_chunks_become_the_maps_that_were_wanted(desk: Desk) -> None:
    whole, zoomed = desk.told(TOLD)
    assert [(one.region, one.pace_s, one.cost_us, one.moment) for one in (whole, zoomed)] == [
        (None, 1.0, 5, MapMoment.LIVE),
        (BASE + 1024, 0.5, 5, MapMoment.LIVE),
    ]
    assert [(one.address, one.size, one.in_use, one.chunks) for one in whole.regions] == [
        (BASE, 1024, 512, 2),
        (BASE + 1024, 2048, 2048, 1),
    ]
    assert [one.cells for one in whole.regions] == [4, 8] and [one.cells for one in zoomed.regions] == [0, 8]
    assert (whole.pool, whole.in_use, whole.chunks, whole.largest_free) == (3072, 2560, 3, 512)
    assert [(one.size, one.requested) for one in whole.biggest] == [(2048, 2000), (512, 300)]
    desk.ends()
    assert not desk.file.exists()


@pytest.mark.parametrize(
    ("changes", "damage"),
    [
        ({"in_use": 2048}, Damage.IN_USE),
        ({"chunks": (3, 40, 24, 0)}, Damage.GAPS),
        ({"chunks": (5, 40, 24, 0)}, Damage.CUT_SHORT),
        ({"chunks": (1 << 60, 40, 24, 0)}, Damage.TOO_MANY),
        ({"chunks": (4, 40, 24, 40)}, Damage.OTHER_FORM),
        ({"chunk": (-8, 16, 32)}, Damage.OTHER_FORM),
        ({"device": "../GPU:0"}, Damage.NOT_A_FILE),
        ({"device": "GPU:1"}, Damage.SYSTEM),
        ({"device": "\0"}, Damage.UNFORESEEN),
    ],
)
async def test_what_does_not_fit_is_no_map_and_is_told_once(
    desk: Desk, changes: dict[str, object], damage: Damage
) -> None:
    wrong = msgspec.structs.replace(TOLD, **changes)
    assert not desk.told(wrong, 19)
    (missing,) = desk.told(wrong, 19)
    assert missing.damage is damage
    assert refusal_text(missing).endswith(f": {damage_text(damage, missing.detail)}")
    assert len(desk.told(TOLD)) == 2


async def test_a_pipe_or_a_link_in_its_place_holds_nobody_up(desk: Desk, tmp_path: Path) -> None:
    content = desk.file.read_bytes()
    desk.file.unlink()
    os.mkfifo(desk.file)
    assert not desk.told(TOLD)
    desk.file.unlink()
    (tmp_path / "elsewhere").write_bytes(content)
    desk.file.symlink_to(tmp_path / "elsewhere")
    assert not desk.told(TOLD)


@given(
    st.lists(st.tuples(st.integers(1, 5000), st.booleans(), st.sampled_from([0, 0, 0, 1 << 20])), min_size=1),
    st.data(),
)
def test_every_part_of_a_map_says_the_same(layout: list[tuple[int, bool, int]], data: st.DataObject) -> None:
    pieces, at = [], 1 << 40
    for units, in_use, gap in layout:
        at += gap
        pieces.append(Piece(at, units * 256, units * 256 - 7, in_use))
        at += units * 256
    starts = data.draw(st.sets(st.sampled_from([piece.address for piece in pieces])))
    found = condense(1, "GPU:0", pieces, starts)
    assert starts <= {region.address for region in found.regions}
    check_map(found)
