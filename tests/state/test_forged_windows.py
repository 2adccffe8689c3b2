"""A window that was forged is shown as far as it goes, in little time and memory, and ends nothing."""

import zlib
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from tests import streams as s
from tests import windows as w
from tfmemtop.cli import main as cli
from tfmemtop.events import Event, Holders, Holding, RunEnd
from tfmemtop.events.allocations import FOREVER, MOST_EVENTS, WindowAllocations, pack
from tfmemtop.findings.rules.xla import nameless
from tfmemtop.state.growing import growing
from tfmemtop.state.holder_views import at_us, course_slices, happened
from tfmemtop.state.holders import By, course, standing
from tfmemtop.state.map_faces import Faces

MOST = 2**63 - 1
_LARGE = [Holding(0, [MOST] * 8, "", "", MOST, MOST, 2**31 - 1)]


def forged(t: float) -> Iterator[Holders]:
    """Windows of a step of which one or two fields are forged; each is later than the one before."""
    for number, fields in enumerate(_fields()):
        yield replace(w.step().done(t + number), window=number + 1, **fields)


def _fields() -> Iterator[dict[str, object]]:
    step = w.step().content()
    for text in (b"\xff", b"\x91\x91\xa1\xff", b"\x91\x01", b"\x91" * 1000, b"\x90", b""):
        yield {"packed": zlib.compress(text)}
    columns = list(msgspec.structs.astuple(step))
    for place, forgery in enumerate(([1], [[1]], [1e300], [-1], [MOST], [MOST], [-5])):
        packed = msgspec.msgpack.encode([*columns[:place], forgery, *columns[place + 1 :]])
        yield {"packed": zlib.compress(packed)}
    yield {"packed": b"no zlib"}
    yield {"packed": pack(replace(step, times=[MOST] * 200))}
    yield {"peak_at": 2**31 - 1}
    for begin, end in ((0, MOST_EVENTS - 1), (-1, FOREVER), (MOST_EVENTS - 1, FOREVER)):
        yield {"packed": pack(_spans(1, begin, end, 0))}
    # Addresses and times that add up to more than 64 bits, and allocations without end:
    yield {"packed": pack(_spans(9, 0, FOREVER, 0))}
    yield {"packed": pack(_spans(2**15, 0, FOREVER, MOST))}


def _spans(count: int, begin: int, end: int, time: int) -> WindowAllocations:
    return WindowAllocations(
        kinds=_LARGE,
        holdings=[0] * count,
        addresses=[MOST] * count,
        begins=[begin] * count,
        ends=[end] * count,
        times=[time] * MOST_EVENTS,
    )


BEFORE: list[Event] = [s.session(), s.run(), s.process(0.6, 100), s.hook(1.1, 100), w.census(), w.step().done(4.0)]


@pytest.mark.parametrize("window", forged(5.0), ids=lambda window: f"window {window.window}")
def test_each_is_shown(window: Holders) -> None:
    state = s.fold([*BEFORE, window])
    hooked = state.processes[100].hooked
    assert hooked is not None
    moments = course(window, hooked)
    assert moments[0].event == -1 and len(moments) <= MOST_EVENTS + 1
    assert course_slices(window, hooked, 100)
    for at in (None, -1, 0, MOST_EVENTS, 2**31 - 1):
        found = standing(window, hooked, By.LAYER, at)
        assert sum(row.bytes for row in found.holders) + found.unknown == found.total
        assert happened(window, found.at) is None or at_us(window, found.at) is not None
    Faces(window, hooked).at(2**64)
    growing(hooked, "GPU:0")
    list(nameless(state))


def test_a_report_of_all_of_them_is_made(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    s.written(tmp_path / "run.jsonl", [*BEFORE, *forged(5.0), RunEnd(t=60.0, run=1, exit_code=0, signal=None)])
    for command in ("why", "holders"):
        assert cli.main([command, str(tmp_path / "run.jsonl")]) == 0
    out, err = capsys.readouterr()
    assert err == "" and "cannot" not in out
