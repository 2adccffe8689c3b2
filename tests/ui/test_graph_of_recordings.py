"""The graphs of real sessions, as a user sees them.

Memory is visible in them, it stays visible after the run has ended, and no fact depends on colour.
"""

from collections.abc import Sequence

import pytest

from tests.ui.recorded import events_until
from tfmemtop import events
from tfmemtop.state import State, apply
from tfmemtop.state.views import panels
from tfmemtop.ui.draw.graph import Graph
from tfmemtop.ui.draw.lines import Line
from tfmemtop.ui.draw.palette import UNICODE
from tfmemtop.ui.draw.scale import ScaleChoice
from tfmemtop.ui.draw.window import whole
from tfmemtop.ui.panels.device_panel import DevicesPanel

NEVER = 1e9
BLANK = " ⠀┊│┤└"


def folded(name: str, t: float = NEVER) -> State:
    state = State()
    for event in events_until(name, t):
        apply(state, event)
    return state


def graphs(state: State, width: int = 76, height: int = 9, scale: ScaleChoice = ScaleChoice.AUTO) -> list[list[str]]:
    """Return for each device the rows of the newest run's graph, from the run's start to its end, or to now."""
    found = []
    for panel in panels(state):
        assert panel.whole is not None
        drawn = Graph(UNICODE, braille=True).build(panel, whole(panel.whole, state.now), [], scale, width, height)
        found.append(rows(drawn))
    return found


def rows(lines: Sequence[Line]) -> list[str]:
    return ["".join(segment.text for segment in line) for line in lines]


@pytest.mark.parametrize("away_s", [0.0, 3600.0, 86_400.0])
def test_who_comes_back_finds_the_run_from_its_start_to_its_end(away_s: float) -> None:
    state = folded("cpu-oom")
    run = state.run
    assert run is not None and run.ended is not None
    apply(state, events.ProcessReadings(t=state.now + away_s, processes=[]))
    panel = DevicesPanel()
    panel.show(state)
    *_, foot, axis = rows(panel.build(100, 20))
    assert " ended after 00:00:1" in axis or "out of memory×" in axis
    area = foot[9:-1]
    assert area[-1] not in BLANK, "the last sample is at the right end"
    panel.toggle_whole()
    if away_s:
        assert rows(panel.build(100, 20))[-2][-3] in BLANK, "what has ended holds nothing now"
    assert area[0] in BLANK and area.strip(BLANK)[0] not in BLANK and area[len(area) // 2] not in BLANK


def test_it_is_marked_too_where_the_crash_left_only_tensorflows_words_in_the_output() -> None:
    state = State()
    for event in events_until("cpu-oom", NEVER):
        if not isinstance(event, events.OutOfMemory):
            apply(state, event)
    (graph,) = graphs(state, width=120)
    (known,) = graphs(folded("cpu-oom"), width=120)
    assert graph[-1].index("×") == known[-1].index("×")
