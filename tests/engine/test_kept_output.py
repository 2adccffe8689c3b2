"""The bounded file of the script's output.

What the file keeps, what it reports of the part left out, and what it contains after a kill.
"""

import errno
import os
import random
import re
import resource
import select
import signal
import sys
from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest

from tests.disks import small_disk
from tests.engines import Engines
from tests.limited import limited
from tfmemtop.engine.process import keeper, kept_output, output
from tfmemtop.engine.process.kept_output import KeptOutput
from tfmemtop.engine.process.launch import Launched
from tfmemtop.events import Notice, Output, RunEnd

HEAD, TAIL = 8192, 16384
LINE = 13
MARKER = re.compile(rb"\n\[tfmemtop: (\d{15}) bytes left out here; the output goes on after byte (\d{15})\]\n")


def text(start: int, end: int) -> bytes:
    """Return bytes *start* to *end* of an output in which every byte shows its position."""
    first = start // LINE
    lines = b"".join(b"%012d\n" % number for number in range(first, end // LINE + 1))
    return lines[start - first * LINE : end - first * LINE]


def parts(path: Path) -> tuple[bytes, int, bytes, bool]:
    """Return the head, the bytes left out, the end, and whether the writer was killed while it moved the end."""
    content = path.read_bytes()
    found = MARKER.match(content, HEAD)
    if not found:
        return content, 0, b"", False
    start = int(found[2])
    if start > len(content):
        start = found.end()  # the part before the end has been cut off already
    return content[:HEAD], int(found[1]), content[start:], start > found.end()


def written(path: Path) -> int:
    """Return how many bytes of :func:`text` were written, computed from the file; check that its bytes are right."""
    head, left_out, end, _ = parts(path)
    total = len(head) + left_out + len(end)
    assert head == text(0, len(head))
    assert end == text(total - len(end), total)
    assert path.stat().st_size <= HEAD + 200 + 2 * TAIL + TAIL // 2
    return total


def small(path: Path) -> KeptOutput:
    return KeptOutput(path, HEAD, TAIL)


def test_what_has_room_is_kept_whole(tmp_path: Path) -> None:
    path = tmp_path / "output"
    output = small(path)
    assert not path.exists(), "who only watches leaves no file"
    output.write(text(0, HEAD + 2 * TAIL))
    assert path.read_bytes() == text(0, HEAD + 2 * TAIL)
    assert path.stat().st_mode & 0o777 == 0o600
    assert output.trouble == ""


@pytest.mark.parametrize("piece", [100, 300_000])
def test_a_flood_leaves_its_beginning_its_end_and_the_number_of_bytes_between(tmp_path: Path, piece: int) -> None:
    path, total = tmp_path / "output", 1_000_000
    output = small(path)
    path.touch()
    first = path.stat()
    for at in range(0, total, piece):
        output.write(text(at, min(at + piece, total)))
        if at % 50_000 < piece:
            assert written(path) == min(at + piece, total)
    head, left_out, end, _ = parts(path)
    assert written(path) == total and left_out > 0
    assert list(tmp_path.iterdir()) == [path]
    assert path.stat().st_ino == first.st_ino, "who follows the file sees it go on"
    assert len(head) == HEAD and len(end) >= TAIL // 2
    assert (total - len(end)) % LINE == 0, "what is kept of the end begins with a whole line"


def test_a_line_without_an_end_is_cut_where_it_must(tmp_path: Path) -> None:
    path = tmp_path / "output"
    output = small(path)
    for _ in range(100):
        output.write(b"x" * 5000)
    head, left_out, end, _ = parts(path)
    assert len(head) + left_out + len(end) == 500_000


def test_a_file_that_somebody_emptied_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "output"
    output = small(path)
    output.write(text(0, 300_000))
    os.truncate(path, 0)
    output.write(text(0, 5000))
    assert path.read_bytes() == text(0, 5000)


def _flood(path: Path) -> None:
    output, total = small(path), 0
    while True:
        output.write(text(total, total + 4001))
        total += 4001


def in_child(work: Callable[[], object]) -> int:
    child = os.fork()
    if child:
        return child
    try:
        work()
    finally:
        os._exit(1)


@pytest.mark.programs
def test_killed_at_any_moment_it_holds_its_beginning_and_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        kept_output, "_PIECE", 256
    )  # as slow as with ends of many megabytes, so that kills happen while the end is moved
    chance = random.Random(26)
    halves = longest = 0
    for number in count():
        if number >= 60 and halves and longest > 4 * TAIL:
            break  # the kills met what the test is about
        assert number < 5000
        path = tmp_path / str(number)
        child = in_child(lambda: _flood(path))  # noqa: B023 (forked at once)
        select.select([], [], [], chance.uniform(0, 0.01))  # a short wait, for no event
        os.kill(child, signal.SIGKILL)
        assert os.waitpid(child, 0)[1] == signal.SIGKILL
        if path.exists():
            longest = max(longest, written(path))
            halves += parts(path)[3]


@pytest.mark.programs
def test_shortening_needs_no_more_room_on_the_disk(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk") as disk:
        path, output = disk / "output", small(disk / "output")
        for at in range(0, 400_000, 4001):
            output.write(text(at, at + 4001))
            assert output.trouble == ""
        assert written(path) == 400_100


def test_a_full_disk_is_told_and_what_was_lost_is_counted_once_there_is_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_output, "_RETRY_S", 0.0)
    path = tmp_path / "output"
    output = small(path)
    output.write(b"before\n")
    # A limit on the size of files has the same effect as a full disk.
    with limited(resource.RLIMIT_FSIZE, 10):
        output.write(b"0123456789\n")
        assert output.trouble == os.strerror(errno.EFBIG)
        output.write(b"lost\n")
        assert output.trouble
    output.write(b"after\n")
    assert output.trouble == ""
    assert path.read_bytes() == b"before\n012\n[tfmemtop: 000000000000013 bytes left out here]\nafter\n"


@pytest.mark.parametrize("place", ["no/such/folder/output", "/dev/full"])
def test_a_place_where_nothing_can_be_written_is_told_and_nothing_raised(tmp_path: Path, place: str) -> None:
    output = small(tmp_path / place)
    output.write(b"x" * 100)
    assert output.trouble
    output.write(b"x" * 100_000)
    output.close()


_PRINTS_MUCH = """
import os
def write(data):
    while data:
        data = data[os.write(1, data):]
write(b"the beginning\\n")
for number in range(1000):
    write((b"%06d " % number + b"x" * 72 + b"\\n") * 800)
write(b"the end\\n")
"""


def _content(launched: Launched) -> bytes:
    return Path(launched.output_path or "").read_bytes()


async def test_a_flood_costs_neither_disk_nor_screen(engines: Engines) -> None:
    launched = engines.launch(sys.executable, "-c", _PRINTS_MUCH)
    screen = await engines.look(launched.socket)
    end = await screen.until(RunEnd)
    assert end.exit_code == 0
    assert [notice for notice in screen.all(Notice) if notice.key != "nvml"] == []
    printed = 64_800_000 + len(b"the beginning\r\nthe end\r\n")
    content = _content(launched)
    assert len(content) <= kept_output.HEAD + 2 * kept_output.TAIL + (1 << 20)
    assert content.startswith(b"the beginning\r\n") and content.endswith(b"the end\r\n")
    marker = re.search(rb"\n\[tfmemtop: (\d+) bytes left out here; the output goes on after byte \d+\]\n", content)
    assert marker and len(content) - len(marker[0]) + int(marker[1]) == printed
    told = screen.all(Output)
    assert sum(len(event.text) + event.skipped for event in told) == printed
    assert screen.shown.endswith("the end\r\n")
    time_s = end.t - told[0].t
    assert len(screen.shown) <= 2 * 256 * 1024 + time_s / output.TICK_S * keeper.CHUNK
