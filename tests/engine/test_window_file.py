"""A damaged, cut or made-up window file is refused, or its events add up. It does no harm."""

import os
import random
import struct
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.engine.window_files import ZERO_NS, Allocator, header, section, told, training_step
from tests.engine.windows_read import Unpacked
from tfmemtop.engine.sources.window_events import Known, events_of
from tfmemtop.engine.sources.window_file import read_window
from tfmemtop.events import Holders, Opened, encode
from tfmemtop.events.damage import Damaged
from tfmemtop.events.decoding import decode_event

damaging = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])


def a_file() -> bytes:
    """Return the file of a small window."""
    allocator = Allocator()
    for number in range(4):
        allocator.allocate(700 * number + 1, f"weight{number}", "[]")
    window = allocator.window().step()
    allocator.call(-5)
    training_step(allocator, 30)
    window.end_step()
    return window.file(pieces=2)


GOOD = a_file()
DAY_NS = 24 * 3600 * 10**9
POOL = section(1, 1, struct.pack("<qqqq", 0, 0, ZERO_NS, 0))
ROWS = "<qQqqqIIIHBBq"
NAMES = (
    "at", "address", "requested", "size", "in_use", "thread", "operation", "shape", "pool", "region", "dtype", "run",
)  # fmt: skip
ROW = (ZERO_NS + 5, 4096, 100, 256, 256, 1, 0, 0, 0, 1, 1, 0)


def record(**changes: int) -> bytes:
    """Return a section with one record: :data:`ROW` with *changes*."""
    row = dict(zip(NAMES, ROW, strict=True)) | changes
    return section(4, 1, struct.pack(ROWS, *row.values()))


def adds_up(folder: Path, data: bytes) -> None:
    """Check that the events of the file, if it has any, add up and are within their bounds.

    Raises:
        ValueError: the file is damaged.
    """
    (folder / "w").write_bytes(data)
    window = told(data, opened=Opened.START)
    file = read_window(folder, "w", len(data))
    for event in events_of(window, file, Known(), lambda monotonic: monotonic, t=9.0):
        assert type(decode_event(encode(event))) is type(event)
        if isinstance(event, Holders):
            found = Unpacked(event)
            assert found.total(event.peak_at) <= event.peak
            assert max(found.times, default=0) >= 0


def test_what_is_whole_is_read(tmp_path: Path) -> None:
    adds_up(tmp_path, GOOD)
    adds_up(tmp_path, header() + POOL)
    adds_up(tmp_path, header() + POOL + record())


@pytest.mark.parametrize(
    "data",
    [
        b"",
        header(),
        b"TFMWIN1\0" + GOOD[8:],
        GOOD[:-8],
        header() + section(1, 1, struct.pack("<qqqq", -1, 0, 0, 0)),
        header() + POOL + section(2, 1, struct.pack("<QqqHHI", 1 << 63, 256, 1, 0, 0, 0)),
        header() + POOL + section(3, 1, struct.pack("<I", 100)),
        header() + POOL + section(4, 1 << 30, b""),
        header() + POOL + record(address=1 << 63),
        header() + POOL + record(at=ZERO_NS + DAY_NS),
        header() + POOL + section(5, 1, struct.pack("<qq", ZERO_NS - DAY_NS, ZERO_NS)),
        header() + section(1, 1, struct.pack("<qqqq", 0, 0, 0, 0)),
        header()[:24] + struct.pack("<qq", -1, 5) + bytes(24) + POOL,
        header() + POOL + record(pool=1),
    ],
)
def test_what_is_damaged_is_refused(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(ValueError):
        adds_up(tmp_path, data)


@damaging
@given(st.data())
def test_whatever_is_changed_in_it_is_refused_or_adds_up(tmp_path: Path, data: st.DataObject) -> None:
    changed = bytearray(GOOD)
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(changed) - 1))
        changed[at] = data.draw(st.integers(0, 255))
    cut = data.draw(st.sampled_from([len(changed), len(changed) - 8, at]))
    try:
        adds_up(tmp_path, bytes(changed[:cut]))
    except ValueError:
        return


rows = st.tuples(
    st.integers(ZERO_NS, ZERO_NS + 50),
    st.sampled_from([256, 512, 1024, 2**63 - 1]),
    st.integers(0, 2**61),
    st.sampled_from([256, -256, 512, -512, 1 << 61, -(1 << 61)]),
    st.sampled_from([0, 256, 512, 768, 1 << 40]),
    st.integers(0, 3),
    st.integers(0, 2),
    st.integers(0, 2),
    st.just(0),
    st.integers(0, 255),
    st.integers(0, 255),
    st.integers(-2, 2),
)
calls = st.tuples(st.integers(ZERO_NS, ZERO_NS + 50), st.integers(-2, 2), st.integers(0, 3))
python = st.tuples(*[st.integers(ZERO_NS, ZERO_NS + 50)] * 2, st.integers(0, 3), st.integers(0, 2))


@damaging
@given(
    st.lists(rows, max_size=60),
    st.lists(st.binary(max_size=8), min_size=2, max_size=2),
    st.integers(0, 60),
    st.lists(calls, max_size=6),
    st.lists(python, max_size=6),
)
def test_made_up_records_add_up_too(
    tmp_path: Path,
    made_up: list[tuple[int, ...]],
    texts: list[bytes],
    begin: int,
    called: list[tuple[int, int, int]],
    ran: list[tuple[int, ...]],
) -> None:
    parts = [header(), POOL, section(3, 2, b"".join(struct.pack("<I", len(text)) + text for text in texts))]
    parts.append(section(4, len(made_up), b"".join(struct.pack(ROWS, *row) for row in made_up)))
    parts.append(section(5, 1, struct.pack("<qq", ZERO_NS + begin, ZERO_NS + begin + 20)))
    parts.append(section(7, len(called), b"".join(struct.pack("<qqII", *call, 0) for call in called)))
    parts.append(section(8, len(ran), b"".join(struct.pack("<qqII", *run) for run in ran)))
    adds_up(tmp_path, b"".join(parts))


@pytest.mark.parametrize("beyond_ns", [1 << 62, ZERO_NS + DAY_NS])
def test_times_at_random_end_the_reading(tmp_path: Path, beyond_ns: int) -> None:
    chance = random.Random(0)
    times = sorted(chance.randrange(ZERO_NS, beyond_ns) for _ in range(20_000))
    file = header() + POOL + section(4, len(times), b"".join(struct.pack(ROWS, at, *ROW[1:]) for at in times))
    if beyond_ns > ZERO_NS + DAY_NS:
        with pytest.raises(Damaged):
            adds_up(tmp_path, file)
    else:
        adds_up(tmp_path, file)


def test_a_pipe_a_link_or_another_folder_is_none(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "there").write_bytes(GOOD)
    (tmp_path / "link").symlink_to(tmp_path / "there")
    for name in ("pipe", "../there", "."):
        with pytest.raises((ValueError, OSError)):
            read_window(tmp_path, name, len(GOOD))
    with pytest.raises(OSError):
        read_window(tmp_path, "link", len(GOOD))
    with pytest.raises(ValueError):
        read_window(tmp_path, "there", len(GOOD) + 1)
    with pytest.raises(ValueError):
        read_window(tmp_path, "there", 1 << 40)
