"""A window that was forged is shown as far as it goes, in little time and memory, and ends nothing."""

from pathlib import Path

import pytest

from tests import streams as s
from tests import windows as w
from tests.state.forged import forged
from tfmemtop.cli import main as cli
from tfmemtop.events import Event, Holders, RunEnd
from tfmemtop.events.allocations import MOST_EVENTS
from tfmemtop.findings.xla import nameless
from tfmemtop.state.growing import growing
from tfmemtop.state.holder_views import at_us, course_slices, happened
from tfmemtop.state.holders import By, course, standing
from tfmemtop.state.map_faces import Faces

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
