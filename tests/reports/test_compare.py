"""Two runs side by side: the figures, the words, and the command."""

import json
from pathlib import Path

import msgspec
import pytest

from tests import streams as s
from tests.commands import printed_by, refused_by
from tests.findings.situations import POOL_AT_ONCE, begin, effective, reading
from tests.streams import GIB, MIB
from tests.ui.shown import RECORDINGS
from tfmemtop import events
from tfmemtop.cli.sessions import fold_recording
from tfmemtop.reports.comparison_text import rows, sentences
from tfmemtop.state.figures import RunFigures, figures
from tfmemtop.state.lookup import process_total
from tfmemtop.units import shown_difference

OFF: list[events.Event] = [
    *begin(),
    effective(False),
    reading(3.0, 140 * MIB, 908 * MIB, POOL_AT_ONCE),
    s.device_reading(3.5, {100: POOL_AT_ONCE + 621 * MIB}),
]
ON: list[events.Event] = [
    *begin(),
    effective(True),
    reading(3.0, 140 * MIB, 908 * MIB, 1026 * MIB),
    s.device_reading(3.5, {100: 1634 * MIB}),
]


def ended(t: float = 60.4, code: int = 0) -> events.RunEnd:
    return events.RunEnd(t=t, run=1, exit_code=code, signal=None)


def of(stream: list[events.Event], name: str = "") -> RunFigures:
    state = s.fold(stream)
    assert state.run is not None
    return figures(state.run, state.now, name)


def test_without_process_totals_the_pools_are_compared() -> None:
    pools = [of([*stream[:-1], ended()]) for stream in (OFF, ON)]
    (told,) = sentences(*pools)
    assert "136.5 GiB" in told and "pool" in told


def test_two_that_are_alike_say_so() -> None:
    assert sentences(of([*ON, ended()]), of([*ON, ended(61.0)])) == [
        "the same settings: no noteworthy difference in memory."
    ]
    assert "30 s longer" in sentences(of([*ON, ended()]), of([*ON, ended(90.4)]))[-1]
    # What was not read is not called alike.
    bare = of([s.session(), s.run(), ended()])
    assert sentences(of([*ON, ended()]), bare)[0] == "without growth on: memory was not read in both."


def test_a_process_that_the_driver_calls_otherwise_holds_an_unknown_total() -> None:
    # In a container the driver may list our process under its number on the host.
    strange = [*begin(), effective(True), reading(3.0, GIB, GIB, 2 * GIB), s.device_reading(9.0, {4711: 3 * GIB})]
    known = [*begin(), effective(True), reading(3.0, GIB, GIB, 2 * GIB), s.device_reading(9.0, {100: 3 * GIB})]
    state = s.fold(strange)
    assert process_total(state, state.devices[0]) is None
    assert of(strange).peak_process_total is None
    assert of(known).peak_process_total == 3 * GIB


def test_another_command_is_told_to_be_another() -> None:
    run = msgspec.structs.replace(s.run(0.4), argv=["python", "test.py"])
    other = [run if isinstance(event, events.Run) else event for event in ON]
    differ = "The commands differ: test.py; before: train.py."
    assert sentences(of([*ON, ended()]), of([*other, ended()], "other")) == [
        differ,
        "other: no noteworthy difference in memory.",
    ]
    # The difference may be the command's, so it is not put down to the setting.
    assert sentences(of([*OFF, ended()]), of([*other, ended()], "other")) == [
        differ,
        "The settings differ too: growth on; before: growth off.",
        "other: 136.5 GiB less held.",
    ]


def test_other_arguments_and_another_environment_are_named() -> None:
    def of_run(argv: list[str], **variables: str) -> RunFigures:
        run = msgspec.structs.replace(s.run(0.4), argv=argv, variables=variables)
        return of([run if isinstance(event, events.Run) else event for event in [*ON, ended()]], argv[-1])

    told = sentences(of_run(["python", "a.py", "float32"]), of_run(["python", "a.py", "mixed_float16"], BATCH="64"))
    assert told[:2] == [
        "The arguments differ: mixed_float16; before: float32.",
        "The environment differs: BATCH=64; before: without it.",
    ]


def test_the_same_memory_under_another_name_is_no_difference(capsys: pytest.CaptureFixture[str]) -> None:
    # The second run makes another model first: its layers are dense_1 and dense_2, in the first dense and dense_1.
    paths = [str(RECORDINGS / "compared" / f"batch-{batch}.jsonl") for batch in (4096, 8192)]
    told = printed_by(capsys, "compare", *paths).split("\n\n")[0].splitlines()
    assert told == [
        "The arguments differ: again; before: once.",
        "The environment differs: BATCH=8192; before: BATCH=4096.",
        "batch-8192.jsonl: 8.0 MiB more in the pool, 17.1 MiB more in use at the peak.",
        "It took 4 s longer.",
        "At the peak of a step 52.2 MiB are in use, before 35.1 MiB.",
        "Eager tensors: 8.0 MiB more (8.0 MiB before).",
        "Gradients: 7.0 MiB more (9.0 MiB before), mostly MatMul [8192,512] float32: 1, before 0.",
        "Activations: 2.0 MiB more (14.0 MiB before), mostly Relu [8192,512] float32: 1, before 0.",
    ]
    found = json.loads(printed_by(capsys, "compare", *paths, "--json"))["holders"]
    assert sum(one["difference"] for one in found) == sum(one["second"] - one["first"] for one in found)
    slots = [one for one in found if one["kind"] == "optimizer" and one["shape"] == [512, 512]]
    assert slots and all(one["first"] == one["second"] > 0 for one in slots)


def test_how_they_ended_and_that_one_went_less_far() -> None:
    out = events.OutOfMemory(t=4.0, pid=100, message="failed")
    told = sentences(of([*ON, ended()], "before"), of([*ON, out, ended(code=1)], "after"))
    assert told[1] == "Out-of-memory errors: 1, before 0."
    assert "after lasted 1 min (ended with exit code 1); before lasted 1 min (ended with exit code 0)" in told[2]


@pytest.mark.parametrize("name", ["cpu-attached", "cpu-kernel-3", "settings/pytorch-full", "leaks/h200-tape"])
def test_of_a_run_it_says_what_why_says_and_it_equals_itself(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(RECORDINGS / f"{name}.jsonl")
    said = json.loads(printed_by(capsys, "why", path, "--json"))["verdict"]["text"]
    told = printed_by(capsys, "compare", path, path)
    assert told.count(said) == 2 and "unequal" not in told


def test_the_command_prints_two_files_side_by_side(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs = {"off.jsonl": OFF, "on.jsonl": ON}
    names = [str(s.written(tmp_path / name, [*stream, ended()])) for name, stream in runs.items()]
    lines = printed_by(capsys, "compare", *names).splitlines()
    assert lines[0] == "growth on: 136.5 GiB less held." and lines[2].split() == ["off.jsonl", "on.jsonl"]
    told = json.loads(printed_by(capsys, "compare", *names, "--json"))
    assert told["differences"]["peak_process_total"] == (1634 - 621) * MIB - POOL_AT_ONCE
    assert [run["name"] for run in told["runs"]] == ["off.jsonl", "on.jsonl"]


def test_runs_of_one_recording_are_compared_by_number(capsys: pytest.CaptureFixture[str]) -> None:
    recording = str(RECORDINGS / "h200-settings.jsonl")
    told = printed_by(capsys, "compare", f"{recording}:1", f"{recording}:2")
    assert "growth on, over the first 10 s of each" in told and "137.0 GiB less held" in told
    assert "run 4" in printed_by(capsys, "compare", recording)
    assert "holds no run 7" in refused_by(capsys, "compare", f"{recording}:7", recording)


def test_what_cannot_be_compared_is_said_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one = str(s.written(tmp_path / "one.jsonl", ON))
    assert refused_by(capsys, "compare", one) == f"tfmemtop: {one} holds 1 run: name a second file to compare with\n"
    assert "none.jsonl: No such file" in refused_by(capsys, "compare", one, str(tmp_path / "none.jsonl"))


def test_sizes_are_over_the_whole_run_and_of_all_logical_devices() -> None:
    more = [reading(4.0, GIB, 2 * GIB, 3 * GIB), reading(5.0, MIB, 2 * GIB, 3 * GIB)]
    found = of([*ON, *more])
    assert (found.peak_in_use, found.peak_pool) == (2 * GIB, 3 * GIB)
    both = [reading(4.0, GIB, GIB, 2 * GIB), reading(4.1, GIB, GIB, 3 * GIB, name="GPU:1")]
    found = of([*ON, effective(True, name="GPU:1"), *both])
    assert (found.peak_in_use, found.peak_pool) == (2 * GIB, 5 * GIB)


def test_of_unequal_runs_as_many_steps_are_compared() -> None:
    state = fold_recording(str(RECORDINGS / "h200-runs.jsonl"))
    first, second = (figures(run, state.now) for run in state.runs[-2:])
    # The run that was ended later had reached another phase, with larger batches.
    assert second.peak_in_use is not None and second.peak_in_use > 3 * (first.peak_in_use or 0)
    told = sentences(first, second)
    assert all(fact in told[0] for fact in ("cuda_malloc_async", "1,833 steps", "3.2 GiB less", "4% slower"))
    assert "run 5 lasted 40 s and 2,937 steps (ended by SIGTERM)" in told[1]
    table = {row.label: (row.first, row.second, row.difference) for row in rows(first, second)}
    assert table["peak in use"] == ("1.1 GiB", "3.9 GiB", "") and table["steps per second"][2] == ""
    assert table["  peak in use"] == ("1.1 GiB", "1.1 GiB", "same")


def test_a_moment_is_not_compared_as_if_it_were_a_course() -> None:
    off, on = of([*OFF, ended(4.5, code=1)], "before"), of([*ON, ended()], "after")
    held, no_course = sentences(off, on)[:2]
    assert "whole runs: 136.5 GiB less" in held and "too short" in no_course
    table = {row.label: (row.first, row.second, row.difference) for row in rows(off, on)}
    assert table["peak process"] == ("138.1 GiB", "1.6 GiB", "-136.5 GiB")
    assert not any(label.startswith("in the first") for label in table)
    short = rows(of([*OFF, ended(6.5)]), of([*ON, ended(6.6, code=1)]))
    assert any(row.label.startswith("in the first 3 s") for row in short)


def test_a_crash_is_not_called_fast() -> None:
    def stepped(seconds: int, a_second: int) -> list[events.Event]:
        return [
            events.Functions(t=5.0 + i, pid=100, functions=[events.Traced("step", 1 + a_second * i, 1, "/a/t.py", 7)])
            for i in range(seconds)
        ]

    whole, crashed = of([*ON, *stepped(50, 10), ended()]), of([*ON, *stepped(3, 30), ended(9.0, code=1)])
    told = " ".join(sentences(whole, crashed))
    assert "faster" not in told and "over the first 61 steps of each" in told


def test_differences_are_those_of_the_figures_shown() -> None:
    assert shown_difference(int(31.04 * MIB), int(31.96 * MIB)) == "1.0 MiB"  # shown as 31.0 and 32.0 MiB
    assert shown_difference(1023, 1000) == "23 B"
    assert shown_difference(1026 * MIB, 300 * MIB) == "0.7 GiB"  # shown as 1.0 GiB and 300.0 MiB
    assert shown_difference(1024 * MIB, 1030 * MIB) == ""
    one, two = ([*ON[:-2], reading(3.0, size, size, GIB), ended(t)] for size, t in ((31 * MIB, 22.9), (32 * MIB, 25.4)))
    table = {row.label: row.difference for row in rows(of(one), of(two))}
    assert (table["peak in use"], table["duration"]) == ("+1.0 MiB", "+3 s")  # 00:00:22 and 00:00:25
