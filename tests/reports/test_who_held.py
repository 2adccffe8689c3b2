"""Recordings of real scripts on TensorFlow's BFC allocator for the CPU: the reports name who held the memory.

They do so at a failure too. The first three scripts run for ten to twenty seconds in a pool of 128 MiB:

- ``leak`` appends a tensor of [200,500] float32 to ``history`` in each step;
- ``batch-too-large`` doubles its batch every 20 steps, until a step needs more than there is;
- ``first-step`` trains six layers on a batch for which there is no room in the first step;
- ``xla`` trains a small CNN with ``jit_compile=True`` under ``--xla-report``, and does not run out.
"""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from tfmemtop.events import Closed, Holders, Opened, recording
from tfmemtop.findings.memory import AllocationFailed, CrashedWhenFull
from tfmemtop.findings.run_review import review
from tfmemtop.reports.holders import table
from tfmemtop.reports.summary import summarise
from tfmemtop.reports.why import page
from tfmemtop.state import State, apply
from tfmemtop.state.growing import growing
from tfmemtop.state.holder_choice import chosen, recorded
from tfmemtop.state.holders import By, Kind, standing

FOLDER = Path(__file__).parents[1] / "recordings" / "windows"
MIB = 1 << 20


def folded(name: str) -> State:
    state = State()
    for event in recording.read(FOLDER / f"{name}.jsonl").events():
        apply(state, event)
    return state


def windows(name: str) -> list[Holders]:
    """Return the windows that the state keeps, the oldest first."""
    (one,) = chosen(folded(name))
    return list(recorded(one.hooked.windows["CPU:0"]))


def why(name: str) -> str:
    """Return what ``tfmemtop why`` prints, in one line."""
    seen = review(recording.read(FOLDER / f"{name}.jsonl").events())
    return " ".join(" ".join(page(seen, f"{name}.jsonl")).split())


def summary(name: str) -> str:
    """Return what ``tfmemtop record`` prints at the end."""
    return " ".join(summarise(recording.read(FOLDER / f"{name}.jsonl").events(), 1))


def test_a_leak_is_named_by_its_operation_shape_count_line_and_name() -> None:
    state = folded("leak")
    (one,) = chosen(state)
    grown = growing(one.hooked, "CPU:0")[0]
    assert (grown.shape, grown.dtype, grown.each) == ((200, 500), "float32", 400_000)
    assert grown.python_name == "history" and grown.line is not None and grown.line.line == 10
    assert grown.operation == "layer" and grown.count == 307 and grown.bytes >= 307 * 400_128
    for text in (why("leak"), summary("leak")):
        assert "317 tensors of 390.6 KiB in history hold 120.9 MiB of the limit of 128.0 MiB: a leak." in text
        assert (
            "operation layer (leak.py:10) made 307 tensors of 390.6 KiB, each [200,500] float32, and none was freed. "
            "Python holds them as history." in text
        )
        assert "While it waited, 8 s before the failure, most of 126.2 MiB was held by history 122.2 MiB" in text


def test_windows_follow_a_rising_peak_and_a_wait() -> None:
    opened = [event.opened for event in recording.read(FOLDER / "leak.jsonl").events() if isinstance(event, Holders)]
    assert opened[0] is Opened.START and opened[-1] is Opened.WAITING
    assert opened.count(Opened.PEAK) == len(opened) - 2 >= 10, "from a few to 126 MiB, a tenth at a time"


def test_a_step_that_is_longer_than_was_thought_gets_another_window() -> None:
    short, step, _ = windows("batch-too-large")[-3:]
    assert (short.opened, short.closed, short.steps) == (Opened.PEAK, Closed.TIME, None)
    assert (step.opened, step.closed, step.steps) == (Opened.PEAK, Closed.STEP, 1)


def test_of_a_failing_step_that_was_not_recorded_the_last_recorded_one_is_told() -> None:
    (one,) = chosen(folded("batch-too-large"))
    assert one.window.steps == 1
    rows = {row.name: row for row in standing(one.window, one.hooked, By.LAYER).holders}
    assert [rows[f"layer{number}"].bytes // MIB for number in range(5)] == [16, 16, 16, 16, 32]
    for text in (why("batch-too-large"), summary("batch-too-large")):
        assert (
            "While it waited, 98.0 MiB were in use. 64.0 MiB of it were allocated after the last recorded step and "
            "have no name. At the peak of the last step that was recorded, 15 s before the failure, most of" in text
        )


def test_the_first_step_is_told_from_the_window_of_its_wait() -> None:
    """The wait ends the window of the start. The allocations that this window recorded keep their names."""
    start, waiting = windows("first-step")
    assert (start.opened, start.closed, waiting.opened) == (Opened.START, Closed.TIME, Opened.WAITING)
    (one,) = chosen(folded("first-step"))
    found = standing(waiting, one.hooked, By.LAYER)
    assert one.window == waiting and found.without_name < 0.001 * found.total
    assert "While it waited, 8 s before the failure, most of 127.8 MiB was held by" in why("first-step")
    assert "While an allocation waited for room, 127.8 MiB were in use in the CPU pool" in why("first-step")


@pytest.mark.parametrize(("name", "finding"), [("leak", AllocationFailed), ("first-step", CrashedWhenFull)])
def test_that_it_ran_out_is_the_finding(name: str, finding: type) -> None:
    seen = review(recording.read(FOLDER / f"{name}.jsonl").events())
    assert finding in {type(held.finding) for held in seen.held}


def test_under_xla_nearly_all_bytes_have_a_name_and_what_is_no_buffer_is_told() -> None:
    (one,) = chosen(folded("xla"))
    found = standing(one.window, one.hooked, By.LAYER)
    rows = {row.name: row for row in found.holders if row.name}
    assert found.without_name == 0 and found.total == one.window.peak == 151_888_896
    assert {"c1", "c2", "d1"} <= rows.keys() and rows["c2"].bytes > 2 * 256 * 18432 * 4
    kinds = {row.kind: row.bytes for row in standing(one.window, one.hooked, By.KIND).holders}
    assert kinds[Kind.ROUNDING] == 134_217_728 - 84_384_388, "the chunk less the buffer"
    assert kinds[Kind.XLA] < 100


def test_what_was_allocated_before_the_window_has_no_name() -> None:
    (one,) = chosen(folded("batch-too-large"))
    waiting = windows("batch-too-large")[-1]
    lines = table(replace(one, window=waiting), By.LAYER, ())
    assert any(re.match(r"no name +before +64\.0 MiB", line) for line in lines)
    assert "No name: 64.0 MiB were allocated before the window" in " ".join(lines)
