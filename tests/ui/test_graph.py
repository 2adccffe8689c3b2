"""The history graph: every peak is drawn, little is seen, and old columns are not worked out again."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfmemtop.state.history import History, Sample
from tfmemtop.state.views import DevicePanel
from tfmemtop.ui.graph import SPANS, Graph, Mark, Scale
from tfmemtop.ui.lines import Line, width_of
from tfmemtop.ui.palette import ASCII, LAYER, UNICODE

GIB = 1 << 30
KINDS = ("in_use", "cached", "rest", "others")
FIVE_MINUTES = 1


def panel(history: History, capacity: int | None = 16 * GIB, limit: int | None = None) -> DevicePanel:
    return DevicePanel("gpu0", "GPU 0", (), capacity, None, (), limit, None, history, KINDS)


def draw(
    graph: Graph,
    shown: DevicePanel,
    now: float,
    *,
    marks: tuple[Mark, ...] = (),
    scale: Scale = Scale.CAPACITY,
    width: int = 68,
    height: int = 9,
    span: int = FIVE_MINUTES,
) -> list[Line]:
    return graph.build(shown, now, marks, span, scale, width, height)


def rows(lines: list[Line]) -> list[str]:
    return ["".join(segment.text for segment in line) for line in lines]


def steady(sample: tuple[int, ...], seconds: int = 300) -> History:
    history = History()
    for second in range(seconds):
        history.add(float(second), sample)
    return history


def test_layers_stand_on_one_another_at_the_scale_of_the_capacity() -> None:
    lines = rows(draw(Graph(ASCII, braille=False), panel(steady((2 * GIB, 6 * GIB, 8 * GIB, 10 * GIB))), 299.0))
    assert [line[20] for line in lines] == [" ", " ", " ", "-", "+", "=", "=", "#", "-"]
    assert lines[0].startswith(" 16.0G +") and lines[4].startswith("  8.0G +") and lines[8].startswith("     0 +")
    assert "-5 min" in lines[8] and "scale: capacity" in lines[8] and lines[8].endswith(" now ")


@pytest.mark.parametrize("braille", [True, False])
def test_two_percent_in_use_under_a_full_pool_is_seen(braille: bool) -> None:
    lines = draw(Graph(UNICODE, braille), panel(steady((GIB // 50, 16 * GIB, 16 * GIB, 16 * GIB))), 299.0)
    assert lines[-2][-1].style == LAYER["in_use"]
    assert lines[-3][-1].style == LAYER["cached"]


def test_little_is_drawn_as_little_and_not_above_a_limit_that_it_is_below() -> None:
    shown = panel(steady((GIB // 4, GIB // 2, GIB, GIB + GIB // 8)), 140 * GIB, 4 * GIB)
    *above, foot, _axis = rows(draw(Graph(UNICODE, braille=True), shown, 299.0, height=7))
    assert not any(cell != "⠀" and "\u2800" <= cell <= "\u28ff" for line in above for cell in line)
    assert set(foot[8:]) == {"⣀"}


def test_a_spike_between_two_frames_reaches_its_height() -> None:
    history = steady((GIB, GIB, GIB, GIB), 100)
    history.add(100.02, (13 * GIB, 13 * GIB, 13 * GIB, 13 * GIB))
    history.add(100.04, (GIB, GIB, GIB, GIB))
    for second in range(101, 300):
        history.add(float(second), (GIB, GIB, GIB, GIB))
    for span in range(FIVE_MINUTES, len(SPANS)):
        lines = rows(draw(Graph(UNICODE, braille=True), panel(history), 299.0, span=span))
        assert lines[1][8:].strip(), f"lost over {SPANS[span][1]}"
        assert not lines[0][8:].strip()


def test_the_scale_can_follow_what_is_used_and_says_so() -> None:
    shown = panel(steady((GIB // 8, GIB // 2, GIB, GIB)), limit=2 * GIB)
    graph = Graph(UNICODE, braille=True)
    used = rows(draw(graph, shown, 299.0, scale=Scale.USED))
    assert used[0].startswith("  1.0G ┤") and "scale: highest use " in used[-1] and "2.0G" not in "".join(used)
    in_use = rows(draw(graph, shown, 299.0, scale=Scale.IN_USE))
    assert in_use[0].startswith("128.0M ┤") and "scale: highest in use " in in_use[-1]
    unknown = rows(draw(graph, panel(shown.history, capacity=None), 299.0))
    assert unknown[0].startswith("  1.0G ┤")


def test_the_limit_is_a_line_with_its_figure_that_leaves_the_area_readable() -> None:
    free = rows(draw(Graph(UNICODE, braille=True), panel(steady((GIB, GIB, GIB, GIB)), limit=8 * GIB), 299.0))
    assert free[4] == "  8.0G ┤" + "⠉" * 60
    full = draw(Graph(ASCII, braille=False), panel(steady((GIB, 9 * GIB, 9 * GIB, 9 * GIB)), limit=8 * GIB), 299.0)
    assert rows(full)[4][8:].count("=") == 40 and rows(full)[4][8:].count("-") == 20
    foot = rows(draw(Graph(ASCII, braille=False), panel(steady((GIB, GIB, GIB, GIB)), limit=GIB), 299.0))
    assert foot[7] == "  1.0G +" + "#" * 60


def test_runs_are_marked_where_they_began() -> None:
    marks = (Mark(30.0, "run 1"), Mark(120.0, "run 2"))
    lines = rows(draw(Graph(UNICODE, braille=True), panel(History()), 299.9, marks=marks))
    assert [index for index, cell in enumerate(lines[0]) if cell == "┊"] == [14, 32]
    assert lines[-1].index("╵run 2") == 32


SIZES = st.lists(st.integers(0, 20 * GIB), min_size=4, max_size=4).map(lambda sizes: tuple(sorted(sizes)))


@given(
    st.lists(st.tuples(st.floats(0, 40), SIZES), min_size=1, max_size=40),
    st.sampled_from([Scale.CAPACITY, Scale.USED, Scale.IN_USE]),
    st.integers(1, 120),
    st.integers(0, 12),
    st.integers(0, len(SPANS) - 1),
)
def test_drawn_bit_by_bit_it_is_the_same_as_drawn_at_once(
    readings: list[tuple[float, tuple[int, ...]]], scale: Scale, width: int, height: int, span: int
) -> None:
    history, now = History(), 0.0
    kept = Graph(UNICODE, braille=True)
    shown = panel(history, limit=9 * GIB)
    marks = (Mark(20.0, "run 1"),)
    for gap, sample in readings:
        now += gap
        history.add(now, sample)
        lines = draw(kept, shown, now, scale=scale, width=width, height=height, span=span, marks=marks)
        assert all(width_of(line) == width for line in lines)
    at_once = draw(
        Graph(UNICODE, braille=True), shown, now, scale=scale, width=width, height=height, span=span, marks=marks
    )
    assert rows(lines) == rows(at_once)
    assert lines == at_once


class CountingHistory(History):
    """Knows how many columns each reading of it asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[int] = []

    def read(self, span_s: float, width_s: float, first: int, stop: int) -> list[Sample | None]:
        self.asked.append(stop - first)
        return super().read(span_s, width_s, first, stop)


def test_a_frame_works_out_only_what_is_new() -> None:
    history = CountingHistory()
    graph, shown = Graph(UNICODE, braille=True), panel(history)
    for second in range(600):
        history.add(float(second), (GIB, 2 * GIB, 3 * GIB, 4 * GIB))
        draw(graph, shown, float(second))
    assert history.asked[0] == 120
    assert max(history.asked[1:]) <= 6
