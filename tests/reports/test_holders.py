"""``tfmemtop holders``: a table that adds up, JSON for programs, and one line if there is nothing to show."""

import json
import re
from functools import cache
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests import streams as s
from tests import windows as w
from tests.commands import printed_by, refused_by
from tfmemtop import events
from tfmemtop.events import Closed, Holders, Opened, recording
from tfmemtop.findings.review import RunReview, review
from tfmemtop.reports.holders import table
from tfmemtop.reports.summary import summarise
from tfmemtop.reports.why import page
from tfmemtop.state import State, apply
from tfmemtop.state.growing import growing
from tfmemtop.state.holders import By, Kind, standing
from tfmemtop.state.windows import chosen, recorded


def write_run(folder: Path, *more: events.Event) -> str:
    """Write a recording of one run that also contains the events *more*. Return its path."""
    stream = [s.session(), s.run(), s.process(0.6, 100), s.hook(1.1, 100), s.allocator(2.0, 100, 1), w.census(), *more]
    return str(s.written(folder / "run.jsonl", stream))


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    return printed_by(capsys, "holders", *words)


def test_the_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_run(tmp_path, w.step().done())
    lines = printed(capsys, path).splitlines()
    head = lines.index(next(line for line in lines if line.startswith("LAYER")))
    assert " ".join(lines[: head - 1]) == (
        "Who held the 52.0 MiB that were in use in the pool of GPU:0 of process 100 at the peak of one step of "
        "train_step. The peak was at 9 s of the session. The window begins at 9 s; it was opened by schedule."
    )
    assert [line.split() for line in lines[head:]] == [
        ["LAYER", "KIND", "BYTES", "SHARE", "COUNT"],
        ["down", "optimizer,", "gradients,", "variables", "20.0", "MiB", "38.5%", "5"],
        ["up", "optimizer,", "variables,", "activations,", "gradients", "20.0", "MiB", "38.5%", "5"],
        ["optimizer", "optimizer", "8.0", "MiB", "15.4%", "2"],
        ["input", "input", "4.0", "MiB", "7.7%", "1"],
        ["compile_loss/mse", "loss", "256", "B", "0.0%", "1"],
        ["in", "use", "at", "the", "peak", "52.0", "MiB", "100.0%"],
    ]


@pytest.mark.parametrize(("before", "is_start"), [(0, True), (4096, False)])
def test_only_the_first_part_of_what_is_recorded_from_the_start_on_is_called_the_start(
    before: int, is_start: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    window = replace(w.step().done(opened=Opened.START), before=before, steps=None)
    told = " ".join(printed(capsys, write_run(tmp_path, window)).split())
    assert ("since the run's start" in told, "with the run's start" in told) == (is_start, is_start)


@pytest.mark.parametrize("by", ["layer", "line"])
def test_json_adds_up(by: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    window = w.step().done(unknown=3000)
    path = write_run(tmp_path, window)
    told = json.loads(printed(capsys, path, "--by", by, "--json"))
    assert set(told) == {"device", "peak", "at", "rows", "unknown"}
    assert told["device"] == "GPU:0" and told["peak"] == window.peak and 9.7 < told["at"] < 9.9
    assert sum(row["bytes"] for row in told["rows"]) + told["unknown"] == told["peak"]
    assert told["unknown"] == 3000
    text = printed(capsys, path, "--by", by)
    assert "Unknown: 2.9 KiB" in text


def test_any_moment_that_was_recorded(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    window = w.step().done()
    path = write_run(tmp_path, window)
    end = json.loads(printed(capsys, path, "--at", "end", "--json"))
    assert end["in_use"] == sum(row["bytes"] for row in end["rows"]) + end["unknown"] < window.peak
    begin = json.loads(printed(capsys, path, "--at", str(window.began), "--json"))
    assert begin["in_use"] == window.before and begin["at"] == pytest.approx(window.began, abs=0.1)
    text = " ".join(printed(capsys, path, "--at", "end").split())
    assert f"at {end['at']:.3f} s, in one step of train_step" in text and f"in use at {end['at']:.3f} s" in text
    assert f"only from {window.began:.2f} to {window.ended:.2f} s" in refused_by(capsys, "holders", path, "--at", "500")
    assert "neither peak, end, nor a number" in refused_by(capsys, "holders", path, "--at", "noon")
    path = write_run(tmp_path, window, replace(window, t=window.t + 1, ended=window.ended + 1))
    told = refused_by(capsys, "holders", path, "--at", "500")
    assert told.count("from ") == 1 and f" to {window.ended + 1:.2f} s" in told, "windows that overlap are one span"


def test_the_fullest_recorded_moment_of_a_phase(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    window = w.step().done()  # 2.2 ms from 9.7 s on

    def phase(number: int, name: str, began: float, ended: float | None) -> events.ScriptPhase:
        peaks = {"GPU:0": 1 << 30}
        return events.ScriptPhase(
            t=12.0, pid=100, number=number, name=name, epoch=None, began=began, ended=ended, peaks=peaks
        )

    phases = phase(1, "early", 9.7, 9.7005), phase(2, "whole", 9.0, None), phase(3, "later", 11.0, 12.0)
    path = write_run(tmp_path, window, *phases)
    assert printed(capsys, path, "--phase", "whole").endswith("\nThe peak of whole was 1.0 GiB.\n")

    def found(name: str) -> dict[str, float]:
        told: dict[str, float] = json.loads(printed(capsys, path, "--phase", name, "--json"))
        return told

    assert found("whole")["in_use"] == window.peak
    assert 9.7 <= found("early")["at"] <= 9.7005 and found("early")["in_use"] < window.peak
    assert "no allocations are kept of later, whose peak was 1.0 GiB" in refused_by(
        capsys, "holders", path, "--phase", "later"
    )
    assert "the phases are: early, later, whole" in refused_by(capsys, "holders", path, "--phase", "never")
    assert [phase["name"] for phase in json.loads(printed_by(capsys, "why", path, "--json"))["phases"]] == [
        "early",
        "whole",
        "later",
    ]


def test_each_buffer_from_its_allocation_to_its_release(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    window = w.step().done()
    frames = ("<module> /home/ada/train.py:61", "block /home/ada/train.py:24")
    line = events.OperationLine("sequential_1/up_1/Relu", "/home/ada/train.py", 24, "", frames)
    path = write_run(tmp_path, window, events.OperationLines(t=10.5, pid=100, lines=[line]))
    lines = printed(capsys, path, "--lifetimes").splitlines()
    head = next(at for at, line in enumerate(lines) if line.startswith("BUFFER"))
    peak = lines[head].index("┊")
    rows = {line.split()[0]: line for line in lines[head + 1 :]}
    assert rows["up/Relu"][peak] == rows["IteratorGetNext"][peak] == rows["sequential/up/kernel"][peak] == "█"
    assert rows["down/mul"][peak] == "┊" and "█" in rows["down/mul"] and len(rows) == 17
    told = json.loads(printed(capsys, path, "--lifetimes", "--json"))
    assert told["peak"] == window.peak and len(told["buffers"]) == 17
    stacks = {one["name"]: one["stack"] for one in told["buffers"]}
    assert stacks["up/Relu"] == ["train.py:61 <module>", "train.py:24 block"] and stacks["down/mul"] == []
    alive = [one for one in told["buffers"] if (one["from"] or 0) <= told["at"] and (one["to"] or 1e9) > told["at"]]
    assert sum(one["bytes"] for one in alive) == window.peak
    assert [one["kind"] for one in told["buffers"] if one["from"] is one["to"] is None] == 2 * ["variables"] + 4 * [
        "optimizer"
    ]


def test_the_fullest_pool_unless_another_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_run(tmp_path, w.step(rows=4).done(), w.step(device="GPU:1").done(t=11.0))
    assert json.loads(printed(capsys, path, "--json"))["device"] == "GPU:1"
    assert json.loads(printed(capsys, path, "--json", "--device", "GPU:0"))["device"] == "GPU:0"
    assert "GPU:0 (--device)" in " ".join(printed(capsys, path).split())
    assert "GPU:7, only of GPU:0, GPU:1" in refused_by(capsys, "holders", path, "--device", "GPU:7")
    assert "cannot say who held the memory: the recording ended before the probe was ready" in refused_by(
        capsys, "holders", write_run(tmp_path)
    )


@pytest.mark.parametrize("command", ["holders", "whatif"])
def test_without_a_compiler_it_names_that_and_what_helps(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    unbuilt = events.Unbuilt(why=events.Unbuildable.NO_COMPILER, detail="apt-get install g++")
    probe = events.Probe(t=1.2, pid=100, state=events.ProbeState.UNAVAILABLE, unbuilt=unbuilt)
    direct = events.Probe(t=1.3, pid=100, state=events.ProbeState.DIRECT)
    assert "C++ compiler; apt-get install g++" in refused_by(capsys, command, write_run(tmp_path, probe, direct))


def test_why_tells_who_holds_most(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_run(tmp_path, w.step().done())
    text = printed_by(capsys, "why", "--long", path)
    part = next(part for part in text.split("\n\n") if part.startswith("Who holds it"))
    assert all(fact in " ".join(part.split()) for fact in ("train_step", "52.0 MiB", "GPU:0: optimizer 46%,"))
    assert [line.split()[0] for line in part.splitlines()[-3:]] == ["down", "up", "optimizer"]
    assert json.loads(printed_by(capsys, "why", path, "--json"))["holders"]["peak"] == 52 * 2**20 + 256


# Recordings of real scripts on TensorFlow's BFC allocator for the CPU: the reports name who held the memory.
#
# They do so at a failure too. The first three scripts run for ten to twenty seconds in a pool of 128 MiB:
#
# - ``leak`` appends a tensor of [200,500] float32 to ``history`` in each step;
# - ``batch-too-large`` doubles its batch every 20 steps, until a step needs more than there is;
# - ``first-step`` trains six layers on a batch for which there is no room in the first step;
# - ``xla`` trains a small CNN with ``jit_compile=True`` under ``--xla-report``, and does not run out.


FOLDER = Path(__file__).parents[1] / "recordings" / "windows"
MIB = 1 << 20


@cache
def folded(name: str) -> State:
    state = State()
    for event in recording.read(FOLDER / f"{name}.jsonl").events():
        apply(state, event)
    return state


def windows(name: str) -> list[Holders]:
    """Return the windows that the state keeps, the oldest first."""
    (one,) = chosen(folded(name))
    return list(recorded(one.hooked.windows["CPU:0"]))


@cache
def seen_in(name: str) -> RunReview:
    return review(recording.read(FOLDER / f"{name}.jsonl").events())


def why(name: str) -> str:
    """Return what ``tfmemtop why --long`` prints, in one line."""
    seen = seen_in(name)
    return " ".join(" ".join(page(seen, f"{name}.jsonl", whole=True)).split())


def summary(name: str) -> str:
    """Return what ``tfmemtop record`` prints at the end."""
    return " ".join(summarise(recording.read(FOLDER / f"{name}.jsonl").events(), 1))


def test_a_leak_is_named_by_its_operation_shape_count_line_and_name() -> None:
    state = folded("leak")
    (one,) = chosen(state)
    grown = growing(one.hooked, "CPU:0")[0]
    assert (grown.shape, grown.dtype, grown.each) == ((200, 500), "float32", 400_000)
    assert grown.python_name == "history" and grown.line is not None and grown.line.line == 14
    assert grown.operation == "layer" and grown.count == 316 and grown.bytes >= 316 * 400_128
    for text in (why("leak"), summary("leak")):
        parts = "history", "321 tensors", "[200,500] float32", "122.5 MiB of the 126.7 MiB"
        assert all(part in text for part in parts)


def test_the_pool_that_ran_out_of_memory_comes_before_a_fuller_one() -> None:
    windows = []
    for device, size in (("GPU:0", 600), ("GPU:1", 100), ("HOST:0", 900)):
        window = w.Window(device=device)
        window.allocate(size * MIB, "Relu")
        windows.append(window.done(t=3.0))
    failed = events.OutOfMemory(t=9.0, pid=100, message="no", device="GPU:1", requested=MIB, operation="Relu")
    begun = [s.session(), s.run(), s.process(0.3, 100), s.hook(0.4, 100), *windows]
    assert [one.device for one in chosen(s.fold(begun))] == ["GPU:0", "GPU:1", "HOST:0"]
    assert [one.device for one in chosen(s.fold([*begun, failed]))] == ["GPU:1", "GPU:0", "HOST:0"]
    only_host = [*begun[:4], windows[2]]
    assert chosen(s.fold(only_host)) == [], "cuda_malloc_async tells nothing of the card: the host's is no answer"


def test_of_a_failing_step_that_was_not_recorded_the_last_recorded_one_is_chosen() -> None:
    (one,) = chosen(folded("batch-too-large"))
    assert one.window.steps == 1
    rows = {row.name: row for row in standing(one.window, one.hooked, By.LAYER).holders}
    assert [rows[f"layer{number}"].bytes // MIB for number in range(5)] == [16, 16, 16, 16, 32]


def test_the_first_step_is_told_from_the_window_of_its_wait() -> None:
    """The wait ends the window of the start. The allocations that this window recorded keep their names."""
    start, waiting = windows("first-step")
    assert (start.opened, start.closed, waiting.opened) == (Opened.START, Closed.TIME, Opened.WAITING)
    (one,) = chosen(folded("first-step"))
    found = standing(waiting, one.hooked, By.LAYER)
    assert one.window == waiting and found.unknown + found.before < 0.001 * found.total
    assert "activations 103.1 MiB" in why("first-step") and "GatherV2 activations 63.8 MiB" in why("first-step")
    assert "127.8 MiB were in use in the CPU pool" in why("first-step")


def test_under_xla_nearly_all_bytes_have_a_name_and_what_is_no_buffer_is_told() -> None:
    (one,) = chosen(folded("xla"))
    found = standing(one.window, one.hooked, By.LAYER)
    rows = {row.name: row for row in found.holders if row.name}
    assert found.unknown + found.before == 0 and found.total == one.window.peak == 151_888_896
    assert {"c1", "c2", "d1"} <= rows.keys() and rows["c2"].bytes > 2 * 256 * 18432 * 4
    kinds = {row.kind: row.bytes for row in standing(one.window, one.hooked, By.KIND).holders}
    assert kinds[Kind.ROUNDING] == 134_217_728 - 84_384_388, "the chunk less the buffer"
    assert kinds[Kind.XLA] < 100


def test_what_was_allocated_before_the_window_has_no_name() -> None:
    (one,) = chosen(folded("batch-too-large"))
    waiting = windows("batch-too-large")[-1]
    lines = table(replace(one, window=waiting), By.LAYER, ())
    assert any(re.match(r"from before the window +before +96\.0 MiB", line) for line in lines)
    assert "Unknown: 96.0 MiB" in " ".join(lines)
