"""The history graph: every peak is drawn, little looks like little, and old columns are not computed again."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests import streams as s
from tests.ui.shown import rows
from tfmemtop import events
from tfmemtop.state.history import History, Sample
from tfmemtop.state.views import GPU_LAYERS, DevicePanel, PhaseMark, RunLimit, Whole, panels
from tfmemtop.ui.draw.graph import Graph, Mark
from tfmemtop.ui.draw.lines import Line, width_of
from tfmemtop.ui.draw.palette import FAILED, LIMIT
from tfmemtop.ui.draw.scale import ScaleChoice
from tfmemtop.ui.draw.window import SPANS, Window, newest, whole

GIB = 1 << 30
FIVE_MINUTES = 1
BLANK = " ⠀┊│┤└"


def panel(
    history: History, capacity: int | None = 16 * GIB, limit: int | None = None, ran_out: tuple[float, ...] = ()
) -> DevicePanel:
    return DevicePanel(
        key="gpu0",
        capacity=capacity,
        used=None,
        layers=(),
        limit=limit,
        history=history,
        kinds=GPU_LAYERS,
        limits=(RunLimit(0.0, limit),),
        ran_out=ran_out,
    )


def draw(
    graph: Graph,
    shown: DevicePanel,
    now: float,
    *,
    marks: tuple[Mark, ...] = (),
    scale: ScaleChoice = ScaleChoice.WHOLE,
    width: int = 68,
    height: int = 9,
    span: int = FIVE_MINUTES,
    window: Window | None = None,
) -> list[Line]:
    return graph.build(shown, window or newest(span, now), marks, scale, width, height)


def steady(sample: tuple[int, ...], seconds: int = 300) -> History:
    history = History()
    for second in range(seconds):
        history.add(float(second), sample)
    return history


def test_where_card_and_in_use_are_far_apart_the_scale_is_logarithmic_by_itself_and_says_so() -> None:
    def axis_at(in_use: int, scale: ScaleChoice) -> str:
        return rows(draw(graph, panel(steady((in_use, GIB, GIB, GIB)), 64 * GIB), 299.0, scale=scale))[-1]

    graph = Graph()
    assert "scale: 1/32 of 64.0G" in axis_at(GIB * 31 // 10, ScaleChoice.AUTO)
    assert "scale: log" in axis_at(2 * GIB, ScaleChoice.AUTO)
    assert "scale: log" in axis_at(GIB * 31 // 10, ScaleChoice.AUTO), "not back and forth"
    assert "scale: 1/32 of 64.0G" in axis_at(5 * GIB, ScaleChoice.AUTO)
    assert "scale: 1/32 of 64.0G" in axis_at(GIB // 8, ScaleChoice.LINEAR)
    assert "scale: all 64.0G" in axis_at(GIB // 8, ScaleChoice.WHOLE)


def test_on_a_logarithmic_scale_twice_as_much_is_always_the_same_step_up() -> None:
    sizes = (GIB // 8, 64 * GIB, 64 * GIB, 64 * GIB)
    lines = rows(draw(Graph(), panel(steady(sizes), 64 * GIB), 299.0, scale=ScaleChoice.LOG))
    figures = [line[:6].strip() for line in lines]
    assert figures[0] == "64.0G" and figures[-1] == "4.0M", "it does not reach 0, and does not say so"
    assert [(row, figure) for row, figure in enumerate(figures[1:-1], 1) if figure] == [(3, "1.0G"), (6, "32.0M")]
    assert [line[20] == "⣿" for line in lines[:-1]] == [False] * 6 + [True] * 2, "128 MiB: 5 of 14 doublings"


def test_what_an_earlier_run_held_is_not_cut_at_the_limit_of_the_next() -> None:
    history = steady((GIB, 12 * GIB, 12 * GIB, 12 * GIB), 100)
    for second in range(100, 300):
        history.add(float(second), (GIB, 2 * GIB, 2 * GIB, 2 * GIB))
    lines = rows(draw(Graph(), panel(history, 4 * GIB), 299.0))
    assert lines[0].startswith(" 12.0G"), "of the CPU's pool, the capacity is the newest run's limit"
    assert lines[0][15] not in BLANK and lines[0][60] in BLANK


def test_a_limit_is_drawn_over_its_own_run() -> None:
    shown = replace(
        panel(steady((GIB, 12 * GIB, 12 * GIB, 12 * GIB))), limits=(RunLimit(0, 14 * GIB), RunLimit(150, GIB))
    )
    lines = draw(Graph(), shown, 299.9, scale=ScaleChoice.WHOLE)
    reds = [["".join(part.text for part in line if part.style == LIMIT)] for line in lines]
    (higher,), (lower,) = [red for red in reds if red[0]]
    assert len(higher) == len(lower) == 30 and "limit 14.0G" in higher


def test_a_pause_between_two_runs_is_folded() -> None:
    history = History()
    for second in [*range(100), *range(3700, 3800)]:
        size = GIB if second < 99 or second >= 3700 else 0
        history.add(float(second), (size, size, size, size))
    marks = (Mark(0.0, "run 1"), Mark(3700.0, "run 2"))
    window = newest(FIVE_MINUTES, 3799.0, ((100.0, 3700.0),))
    lines = rows(draw(Graph(), panel(history, GIB), 3799.0, width=108, window=window, marks=marks))
    axis = lines[-1]
    assert " 01:00:00 //" in axis and axis.index("run 1") < axis.index("//") < axis.index("run 2")
    drawn = "".join("x" if cell not in BLANK else " " for cell in lines[4][8:]).split()
    assert [len(each) for each in drawn] == [34, 34], "both runs are as long as they were"


def test_a_spike_between_two_frames_reaches_its_height() -> None:
    history = steady((GIB, GIB, GIB, GIB), 100)
    history.add(100.02, (13 * GIB, 13 * GIB, 13 * GIB, 13 * GIB))
    history.add(100.04, (GIB, GIB, GIB, GIB))
    for second in range(101, 300):
        history.add(float(second), (GIB, GIB, GIB, GIB))
    for span in range(FIVE_MINUTES, len(SPANS)):
        lines = rows(draw(Graph(), panel(history), 299.0, span=span))
        assert lines[1][8:].strip(), f"lost over {SPANS[span][1]}"
        assert not lines[0][8:].strip()


def test_without_a_known_size_of_the_card_the_scale_is_what_is_used() -> None:
    unknown = rows(draw(Graph(), panel(steady((GIB // 8, GIB, GIB, GIB)), capacity=None), 299.0))
    assert unknown[0].startswith("  2.0G ┤") and "scale: what is used" in unknown[-1]


@pytest.mark.parametrize("used", [GIB, 16 * GIB])
def test_where_memory_ran_out_there_is_a_sign_at_its_column_and_a_word(used: int) -> None:
    shown = panel(steady((used, used, used, used)), ran_out=(120.0,))
    lines = draw(Graph(), shown, 299.9)
    at = 8 + 24
    assert rows(lines)[0][at] == "×" and rows(lines)[0].count("×") == 1
    assert next(segment for segment in lines[0] if "×" in segment.text).style == FAILED
    assert rows(lines)[-1][at:].startswith("×out of memory ")
    last = rows(draw(Graph(), panel(shown.history, ran_out=(299.0,)), 299.9))
    assert last[0].endswith("×") and last[-1].endswith(" out of memory×")


def run_of(started: float, ended: float | None, history: History) -> Whole:
    return Whole(1, started, ended, history)


def test_the_run_that_has_ended_stays_from_its_first_sample_to_its_last() -> None:
    history = History()
    for second in range(700):
        size = GIB * (16 if second < 100 else 12 if second in (101, 398) else 1)
        history.add(float(second), (size, size, size, size))
        if second == 399:
            kept = history.last(300.0)
    window = whole(run_of(100.0, 400.0, kept), 700.0)
    shown = replace(panel(history), whole=run_of(100.0, 400.0, kept))
    marks = (Mark(100.0, "run 1"),)
    lines = rows(draw(Graph(), shown, 700.0, window=window, marks=marks))
    assert lines[-1][8:].startswith("╵run 1 ") and lines[-1].endswith(" ended after 00:05:00 ")
    assert [at for at, cell in enumerate(lines[2][8:]) if cell not in " ⠀"] in ([0, 58], [0, 59])
    assert not any(cell not in " ⠀┊" for cell in lines[0][8:]), "nothing of the run before"


SIZES = st.lists(st.integers(0, 20 * GIB), min_size=4, max_size=4).map(lambda sizes: tuple(sorted(sizes)))


@given(
    st.lists(st.tuples(st.floats(0, 40), SIZES), min_size=1, max_size=40),
    st.booleans(),
    st.integers(1, 120),
    st.integers(0, 12),
    st.integers(0, len(SPANS) - 1),
)
def test_drawn_bit_by_bit_it_is_the_same_as_drawn_at_once(
    readings: list[tuple[float, tuple[int, ...]]], whole_run: bool, width: int, height: int, span: int
) -> None:
    history, now = History(), 0.0
    kept = Graph()
    shown = panel(history, limit=9 * GIB)
    marks = (Mark(20.0, "run 1"),)
    for gap, sample in readings:
        now += gap
        history.add(now, sample)
        window = whole(run_of(20.0, None, history), max(20.0, now)) if whole_run else None
        lines = draw(kept, shown, now, width=width, height=height, span=span, marks=marks, window=window)
        assert all(width_of(line) == width for line in lines)
    at_once = draw(Graph(), shown, now, width=width, height=height, span=span, marks=marks, window=window)
    assert rows(lines) == rows(at_once)
    assert lines == at_once


class CountingHistory(History):
    """A history that stores in ``asked`` how many columns each call of ``read`` requested."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[int] = []

    def read(self, span_s: float, width_s: float, first: int, stop: int, since: float = 0.0) -> list[Sample | None]:
        self.asked.append(stop - first)
        return super().read(span_s, width_s, first, stop, since)


def test_a_frame_works_out_only_what_is_new() -> None:
    history = CountingHistory()
    graph, shown = Graph(), panel(history)
    for second in range(600):
        history.add(float(second), (GIB, 2 * GIB, 3 * GIB, 4 * GIB))
        draw(graph, shown, float(second))
    assert history.asked[0] == 120
    assert max(history.asked[1:]) <= 6
    run = run_of(0.0, 599.0, history)
    for second in range(600, 700):
        draw(graph, replace(shown, whole=run), float(second), window=whole(run, float(second)))
    assert len(history.asked) == 601, "of a run that has ended nothing is read again"


def test_phases_stand_above_the_graph_where_they_begin_with_their_peaks_as_far_as_there_is_room() -> None:
    marks = (
        ("block", "block", 200.0, 3),
        ("fit", "fit 2", 180.0, 2),
        ("fit", "fit 1", 60.0, 1),
        ("一", "一", 120.0, 1),
    )
    phases = tuple(PhaseMark(name, label, began, peak * GIB) for name, label, began, peak in marks)
    shown = replace(panel(steady((GIB, GIB, GIB, GIB))), phases=phases)
    line = draw(Graph(), shown, 299.0)
    first = rows(line)[0]
    assert "┊block 3.0G " in first and "┊fit 1 1.0G " in first
    assert "fit 2" not in first and first.index("┊block") - 4 == first.rindex("┊", 0, first.index("┊block"))
    assert {width_of(each) for each in line} == {68}
    limited = replace(panel(steady((GIB, GIB, GIB, GIB)), limit=16 * GIB), phases=phases)
    assert "┊block 3.0G " in rows(draw(Graph(), limited, 299.0))[1], "below the limit's line"
    cached = replace(shown, history=steady((GIB, *(16 * GIB,) * 3)))
    assert "┊block 3.0G " in rows(draw(Graph(), cached, 299.0))[0]
    full = replace(shown, history=steady((16 * GIB,) * 4))
    assert "fit" not in rows(draw(Graph(), full, 299.0))[0]


def test_the_end_of_the_phases_is_marked_where_the_script_goes_on_without_one() -> None:
    def marked(*phases: tuple[float, float | None], now: float = 80.0) -> list[float]:
        told = [
            events.ScriptPhase(
                t=9.0, pid=100, number=at + 1, name="fit", epoch=at, began=began, ended=ended, peaks={"CPU:0": GIB}
            )
            for at, (began, ended) in enumerate(phases)
        ]
        reading = s.allocator(now, 100, GIB, pool=GIB, name="CPU:0")
        state = s.fold([s.session(), s.run(), s.process(0.6, 100), s.hook(1.1, 100), *told, reading])
        return [mark.began for panel in panels(state) for mark in panel.phases if not mark.label]

    assert marked((2.0, 10.0), (10.1, 20.0)) == [20.0] and marked((2.0, 10.0), (15.0, None)) == [10.0]
    assert marked((2.0, 10.0), (4.0, 6.0), (10.1, None)) == [] and marked((2.0, 79.5)) == []
    many = [(2.0 + 5 * at, 7.0 + 5 * at) for at in range(2 * events.PHASES_KEPT)]
    assert marked(*many, now=2000.0) == [many[-1][1]], "those between that are not kept were phases too"
    phases = (PhaseMark("fit", "fit 2", 60.0, GIB), PhaseMark("", "", 180.0, 0))
    first = rows(draw(Graph(), replace(panel(steady((GIB,) * 4)), phases=phases), 299.0))[0]
    assert first.rindex("┊") > first.index("┊fit 2 1.0G") and "0" not in first[first.rindex("┊") :]
