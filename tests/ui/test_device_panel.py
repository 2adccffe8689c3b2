"""The devices' panel: it uses little room well, and shows what is known."""

import math

import pytest
from msgspec.structs import replace

from tests import streams as s
from tests.streams import GIB, MIB, fold
from tests.ui.shown import events_until, rows
from tfmemtop import events
from tfmemtop.state import State, apply
from tfmemtop.ui.draw.scale import ScaleChoice
from tfmemtop.ui.panels.device_panel import DevicesPanel


def begun(gpus: int, *, total: int | None = 140 * GIB + 412 * MIB) -> State:
    """Return the state of a session on a machine with *gpus* GPUs, before the first reading. *total* is bytes a GPU."""
    return s.fold([s.session(), *(replace(s.device(index), total=total) for index in range(gpus))])


def start_run(state: State, run: int, t: float, pid: int = 100) -> None:
    """Let the script start and import TensorFlow, with a pool of its own on every GPU."""
    devices = [s.effective(t, pid, f"GPU:{index}", f"GPU-{index}") for index in state.devices]
    for event in (s.run(t, run, pid), s.process(t, pid, run), s.hook(t, pid), *devices):
        apply(state, event)


def read(
    state: State,
    t: float,
    gpu: int,
    *,
    in_use: int | None,
    pool: int | None,
    others: int = GIB,
    limit: int | None = 4 * GIB,
    pid: int = 100,
) -> None:
    """Add one reading of one GPU and, unless *in_use* is ``None``, of the run's allocator there. Sizes are bytes."""
    if in_use is not None:
        apply(state, replace(s.allocator(t, pid, in_use, pool=pool, name=f"GPU:{gpu}"), limit=limit))
    mine = (pool or in_use or 0) + 608 * MIB if in_use is not None else 0
    reading = s.device_reading(t, {pid: mine} if mine else {}, gpu)
    free = None if state.devices[gpu].info.total is None else reading.free
    apply(state, replace(reading, used=mine + others, free=free, temperature_c=42 + gpu))


def trained(gpus: int = 1, seconds: int = 280) -> State:
    """Return the state after a session of *seconds*: a run, its end, and another run with more in use.

    The memory in use goes up and down while the pool grows: to 1 GiB at most, and in the second run to 1.6 GiB.
    """
    state = begun(gpus)
    start_run(state, 1, 8.0)
    for second in range(8, seconds):
        second_run = second > seconds * 2 // 3
        if second == seconds * 2 // 3:
            apply(state, events.HookEnd(t=float(second), pid=100, reason=events.HookEnding.EXIT))
            apply(state, events.RunEnd(t=float(second), run=1, exit_code=0, signal=None))
        if second == seconds * 2 // 3 + 6:
            start_run(state, 2, float(second), pid=200)
        ended = seconds * 2 // 3 <= second < seconds * 2 // 3 + 6
        grown = min(1.0, (second % (seconds * 2 // 3)) / 60) * (1.6 if second_run else 1.0)
        swing = 0.5 + 0.3 * math.sin(second / 9) + (0.2 if second % 37 == 0 else 0)
        pool = int(GIB * max(0.1, grown))
        pid, others = 200 if second_run else 100, GIB * (1 + second // 100)
        for gpu in range(gpus):
            read(
                state, second + gpu / 100, gpu, in_use=None if ended else int(pool * swing), pool=pool, pid=pid,
                others=others,
            )  # fmt: skip
    return state


def shown(state: State) -> DevicesPanel:
    panel = DevicesPanel()
    panel.show(state)
    return panel


def test_with_less_height_fewer_devices_have_graphs_then_one_legend_serves_all_then_each_device_is_a_line() -> None:
    panel = shown(trained(4, 100))
    graphs, few, bars, lines = (rows(panel.build(100, height)) for height in (28, 14, 9, 6))
    assert sum("scale:" in line for line in graphs) == 4
    assert sum("scale:" in line for line in few) == 1 and [line[:6] for line in few[-3:]] == [
        " GPU 1",
        " GPU 2",
        " GPU 3",
    ]
    assert sum("in use" in line for line in bars) == 1 and sum("▐" in line for line in bars) == 4
    assert [line[:6] for line in lines[1:5]] == [" GPU 0", " GPU 1", " GPU 2", " GPU 3"]
    assert "util 45%" in lines[1] and "42 °C" in lines[1] and "/140.4G" in lines[1] and "in use" in lines[5]


def test_on_a_wide_screen_devices_stand_beside_each_other_rather_than_lose_their_graphs() -> None:
    panel = shown(trained(5, 100))
    lines = rows(panel.build(160, 30))
    titles = [line for line in lines if "GPU" in line]
    assert [line.count("GPU") for line in titles] == [2, 2, 1] and "GPU 0" in titles[0] and "GPU 3" in titles[1]
    assert {len(line) for line in lines} == {160}
    assert sum(line.count("scale:") for line in lines) == 5
    assert sum(line.count("in use") for line in rows(panel.build(160, 9))) == 5
    assert all(line.count("GPU") < 2 for line in rows(panel.build(140, 30)))


def test_sixteen_gpus_in_little_height_scroll_and_say_what_is_hidden() -> None:
    panel = shown(trained(16, 30))
    lines = rows(panel.build(100, 13))
    assert len(lines) == 13 and "▾ 4 more" in lines[0] and "▲" not in lines[0]
    assert [line.split("H200")[0].strip() for line in lines[1:]] == [f"GPU {index}" for index in range(12)]
    assert len({line.index("▐") for line in lines[1:]}) == 1
    panel.scroll_lines(3)
    lines = rows(panel.build(100, 13))
    assert "▲ 3 more" in lines[0] and "▾ 1 more" in lines[0] and lines[1].startswith(" GPU 3 ")
    panel.scroll_lines(50)
    assert rows(panel.build(100, 13))[-1].startswith(" GPU 15 ")
    panel.scroll_lines(-1)
    assert rows(panel.build(100, 13))[-1].startswith(" GPU 14 ")


@pytest.mark.parametrize("gpus", [0, 1, 4, 16])
def test_the_height_wanted_is_never_more_than_there_is_and_is_put_to_use(gpus: int) -> None:
    state = trained(gpus, 30)
    panel = shown(state)
    for width in (120, 160, 230):
        for available in range(width % 3, 70, 3):  # the three widths together cover each height once
            wanted = panel.wanted_height(state, width, available)
            assert wanted <= available
            assert len(panel.build(width, wanted)) == wanted
        assert panel.wanted_height(state, width, 100) == (100 if gpus else 1), "graphs take what there is"


def test_the_graph_is_that_of_the_card_that_the_script_uses() -> None:
    state = trained(3, 0)
    start_run(state, 1, 1.0)
    for index, in_use in enumerate((MIB, GIB, MIB)):
        read(state, 2.0, index, in_use=in_use, pool=2 * GIB)
    lines = rows(shown(state).build(80, 12))
    assert "GPU 1" in lines[0] and any("scale:" in line for line in lines)
    assert [line[:6] for line in lines[-2:]] == [" GPU 0", " GPU 2"]
    apply(state, events.HookEnd(t=3.0, pid=100, reason=events.HookEnding.EXIT))
    apply(state, events.RunEnd(t=3.0, run=1, exit_code=0, signal=None))
    assert "GPU 1" in rows(shown(state).build(80, 12))[0]


def test_span_and_scale_are_the_users_to_choose() -> None:
    panel = shown(trained())
    panel.cycle_span(+1)
    assert "-15 min" in rows(panel.build(100, 20))[-1]
    for _ in range(10):
        panel.cycle_span(+1)
    assert "-3 d" in rows(panel.build(100, 20))[-1]
    for _ in range(10):
        panel.cycle_span(-1)
    assert "-1 min" in rows(panel.build(100, 20))[-1]
    said = [rows(panel.build(100, 20))[-1]]
    for _ in range(len(ScaleChoice)):
        panel.next_scale()
        said.append(rows(panel.build(100, 20))[-1])
    words = (
        "scale: log",
        "scale: all 140.4G",
        "scale: log",
        "scale: 1/16 of",
        "scale: log",
    )
    assert [word for word, line in zip(words, said, strict=True) if f"{word}" not in line] == []


def test_the_graph_of_a_young_session_is_filled_from_the_left_and_then_goes_on_with_the_newest() -> None:
    state = begun(1)
    start_run(state, 1, 0.5)
    panel = shown(state)
    for second in range(1, 400):
        read(state, float(second), 0, in_use=2 * GIB, pool=3 * GIB)
        *_, area, axis = rows(panel.build(100, 20))
        drawn = len(area[9:].rstrip())
        assert drawn >= (54 if second >= 10 else 5 * second), f"after {second} s"
        assert ("-5 min" in axis and "now" in axis) == (second > 300)


def test_the_whole_run_is_shown_at_a_key_and_once_it_has_ended_unless_the_user_goes_on() -> None:
    state = trained()
    panel = shown(state)
    assert "╵run 1" in rows(panel.build(100, 20))[-1]
    panel.toggle_whole()
    assert "run 2 ── whole run" in rows(panel.build(100, 20))[-1]
    panel.toggle_whole()
    apply(state, events.RunEnd(t=state.now, run=2, exit_code=0, signal=None))
    panel.show(state)
    ended = rows(panel.build(100, 20))
    assert "ended after 00:01:2" in ended[-1]
    apply(state, events.ProcessReadings(t=state.now + 7200.0, processes=[events.ProcessReading(200, 0.0, 0)]))
    panel.show(state)
    assert rows(panel.build(100, 20))[3:] == ended[3:], "two hours later as at the end"
    panel.cycle_span(+1)
    assert "-5 min" in rows(panel.build(100, 20))[-1] and "now" in rows(panel.build(100, 20))[-1]
    panel.toggle_whole()
    assert "ended after" in rows(panel.build(100, 20))[-1]


def test_what_is_not_known_is_said_not_guessed() -> None:
    assert rows(shown(State()).build(80, 5)) == [rows(shown(State()).build(80, 5))[0]]  # the driver has not answered
    unread = rows(shown(begun(1)).build(80, 20))
    assert "— of 140.4 GiB" in unread[1] and "no reading yet" in unread[2]
    state = begun(1, total=None)
    start_run(state, 1, 1.0)
    read(state, 2.0, 0, in_use=GIB, pool=None, limit=None)
    lines = rows(shown(state).build(100, 20))
    assert "2.6 GiB of —" in lines[1]
    assert "cached —" in lines[2] and "limit —" in lines[2]


# Real sessions: memory stays visible after the run has ended, and no fact depends on colour.

NEVER = 1e9
BLANK = " ⠀┊│┤└"


@pytest.mark.parametrize("away_s", [0.0, 86_400.0])
def test_who_comes_back_finds_the_run_from_its_start_to_its_end(away_s: float) -> None:
    state = fold(events_until("cpu-oom", NEVER))
    run = state.run
    assert run is not None and run.ended is not None
    apply(state, events.ProcessReadings(t=state.now + away_s, processes=[]))
    panel = shown(state)
    *_, foot, axis = rows(panel.build(100, 20))
    assert " ended after 00:00:1" in axis or "out of memory×" in axis
    area = foot[9:-1]
    assert area[-1] not in BLANK, "the last sample is at the right end"
    panel.toggle_whole()
    if away_s:
        assert rows(panel.build(100, 20))[-2][-3] in BLANK, "what has ended holds nothing now"
    assert area[0] in BLANK and area.strip(BLANK)[0] not in BLANK and area[len(area) // 2] not in BLANK


def test_it_is_marked_too_where_the_crash_left_only_tensorflows_words_in_the_output() -> None:
    stream = events_until("cpu-oom", NEVER)
    without = [event for event in stream if not isinstance(event, events.OutOfMemory)]
    left, known = (rows(shown(fold(told)).build(120, 20))[-1].index("×") for told in (stream, without))
    assert left == known
