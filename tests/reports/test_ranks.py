"""The ranks of a job side by side: which one differs and how, in recordings of real ranks and in small streams."""

import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests import streams as s
from tests.commands import printed_by, refused_by
from tests.findings.situations import begin, effective, reading
from tests.streams import GIB, MIB
from tests.ui.shown import RECORDINGS
from tfmemtop import events
from tfmemtop.cli.main import main
from tfmemtop.events.recording import read
from tfmemtop.placement import Placement

LOOP = [str(RECORDINGS / "ranks" / f"loop-{rank}.jsonl.gz") for rank in range(4)]
VERSIONS = [str(RECORDINGS / "ranks" / f"versions-{rank}.jsonl.gz") for rank in range(4)]


def compared(capsys: pytest.CaptureFixture[str], *names: str) -> list[str]:
    """Return the lines that ``tfmemtop compare`` prints about *names*."""
    return printed_by(capsys, "compare", *names).splitlines()


def step_in(line: str) -> int:
    """Return the step from which on, as *line* says, a rank differs."""
    (step,) = re.findall(r"from step ~(\d+) on", line)
    return int(step)


def test_four_real_ranks_of_which_two_are_not_as_the_others(capsys: pytest.CaptureFixture[str]) -> None:
    """Rank 2 keeps 96 MiB more from step 60 on; BFC takes 128 MiB for them. Rank 3 sleeps longer in each step."""
    lines = compared(capsys, *LOOP)
    assert lines[0].startswith("4 ranks of job 1, ")
    assert [line.split()[:2] for line in lines[3:7]] == [[str(rank), f"node{rank // 2}"] for rank in range(4)]
    held, pace = lines[8:]
    assert held.startswith("Rank 2 has 127.8 MiB more") and abs(step_in(held) - 60) <= 2, "it kept 96 MiB in step 60"
    assert pace.startswith("Rank 3 is 28% slower: 8.1 ")
    assert compared(capsys, *reversed(LOOP)) == lines


def test_real_ranks_of_three_versions_and_one_without_tensorflow(capsys: pytest.CaptureFixture[str]) -> None:
    """TensorFlow 2.12 has no probe, so its pool is not known. Its other figures are compared with the other ranks."""
    lines = compared(capsys, *VERSIONS)
    none, second, third = lines[8:]
    assert none.startswith("Rank 3: no TensorFlow")
    assert "Rank 1" in second and "2.21.0, rank 0 2.16.2" in second
    assert "Rank 2" in third and "2.12.1, rank 0 2.16.2" in third
    assert "2.12.1, rank 1 2.21.0" in compared(capsys, *VERSIONS[1:3])[-2]


def test_two_real_workers_with_a_gpu_each(capsys: pytest.CaptureFixture[str]) -> None:
    """The ranks used NCCL on two H200. Rank 1 keeps 1 GiB more from step 80 on.

    Each rank has another GPU; this is not reported as a difference.
    """
    lines = compared(capsys, *(str(RECORDINGS / "ranks" / f"h200-{rank}.jsonl.gz") for rank in range(2)))
    (told,) = lines[6:]
    assert told.startswith("Rank 1 has up to 1.4 GiB more") and "~75" in told


def test_json_has_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    said = compared(capsys, *LOOP)[8:]
    told = json.loads("\n".join(compared(capsys, "--json", *LOOP)))
    assert told["sentences"] == said
    assert [rank["placement"]["rank"] for rank in told["ranks"]] == [0, 1, 2, 3]
    held, pace = told["differences"]
    assert (held["kind"], held["number"], held["measure"], held["end"]) == ("held", 2, "in_use", None)
    assert held["size"] > 96 * MIB and 58 < held["begin"] < 64
    assert (pace["kind"], pace["number"]) == ("pace", 3) and pace["share"] == pytest.approx(0.28, abs=0.01)


STEPS = 60


def rank(
    path: Path,
    number: int,
    *,
    of: int = 4,
    rate: float = 2.0,
    steps: int = STEPS,
    extra: dict[int, int] | None = None,
    counted: bool = True,
    code: int | None = 0,
    tensorflow: str = "2.21.0",
    started: float = 1.7e9,
    job: str = "812",
    read: bool = True,
    limit: int | None = None,
) -> str:
    """Write the recording of a rank with 2 GiB in use, and return its path.

    *extra* maps a step to the bytes that the rank has in use in addition from then on.
    """
    place = Placement(job=job, rank=number, ranks=of, host=f"node{number}", source="slurm")
    session = msgspec.structs.replace(s.session(), placement=place, started=started, host="box")
    stream: list[events.Event] = [session, *begin()[1:]]
    stream = [
        msgspec.structs.replace(event, tensorflow=tensorflow) if isinstance(event, events.Hook) else event
        for event in stream
        if tensorflow or not isinstance(event, events.Hook)
    ]
    stream += [effective(True, limit=limit)] if read else []
    size = 2 * GIB
    for step in range(steps + 1):
        t = 3.0 + step / rate
        size += (extra or {}).get(step, 0)
        if counted:
            done = events.Traced(name="train", calls=step, traces=1, file="train.py", line=3, steps=1)
            stream.append(events.Functions(t=t, pid=100, functions=[done]))
        if read:
            stream.append(reading(t, size, size, size + GIB))
    if code is not None:
        stream.append(events.RunEnd(t=3.1 + steps / rate, run=1, exit_code=code, signal=None))
    return str(s.written(path / f"run-{job}-{number}-{started:.0f}.jsonl", stream))


def test_ranks_with_the_same_other_settings_have_a_line_together(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = [rank(tmp_path, number, of=5, limit=8 * GIB if number > 2 else None) for number in range(5)]
    assert compared(capsys, *names)[9:] == [
        "Ranks 3 and 4 have other settings: growth on, limit 8.0 GiB, bfc; others growth on, bfc."
    ]


def test_ranks_that_are_alike_say_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = [rank(tmp_path, number, extra={0: number * MIB}, rate=2 + number / 50) for number in range(4)]
    assert compared(capsys, *names)[8:] == ["No rank differs from the others in a noteworthy way."]


CASES: dict[str, tuple[Any, ...]] = {
    "more from a step on": (
        {"extra": {40: 3 * GIB}},
        "Rank 2 has 3.0 GiB more in use than the median from step ~40 on.",
    ),
    "more all the time": ({"extra": {0: 3 * GIB}}, "Rank 2 has 3.0 GiB more in use than the median, all the time."),
    "more for a while": (
        {"extra": {20: 3 * GIB, 40: -3 * GIB}},
        "Rank 2 has 3.0 GiB more in use than the median from step ~20 to step ~40.",
    ),
    "ever more": (
        {"extra": dict.fromkeys(range(30, 60), 100 * MIB)},
        "Rank 2 has up to 2.9 GiB more in use than the median from step ~31 on.",
    ),
    "slower": ({"rate": 1.0}, "Rank 2 is 50% slower: 1.0 steps a second where the median is 2.0."),
    "ends early": ({"steps": 20, "code": 1}, "Rank 2 ended with exit code 1 after 20 of 60 steps."),
    "breaks off": ({"steps": 20, "code": None}, "Rank 2: the recording stops after 20 of 60 steps."),
    "breaks off before there is anything to read": (
        {"steps": 0, "code": None, "read": False, "counted": False},
        "Rank 2: the recording stops at its start.",
    ),
    "another TensorFlow": ({"tensorflow": "2.16.1"}, "Rank 2 has TensorFlow 2.16.1, others 2.21.0."),
    "no steps, and more": (
        {"counted": False, "extra": {0: 3 * GIB}},
        "Rank 2 has a peak (in use) 3.0 GiB above the median.",
        "Rank 2 does not count the steps of the others, so only peaks can be compared.",
    ),
    "no TensorFlow": ({"read": False, "counted": False, "tensorflow": ""}, "Rank 2: no TensorFlow was seen there."),
    "a clock that is apart": (
        {"started": 1.7e9 + 7200},
        "Rank 2 started 2 h later than the median, or the clocks of the hosts are apart.",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_how_one_of_four_differs(case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    how, *said = CASES[case]
    others = [rank(tmp_path, number) for number in (0, 1, 3)]
    assert compared(capsys, *others, rank(tmp_path, 2, **how))[8:] == said


def as_rank(path: Path, recording: str, number: int) -> str:
    """Write a copy of a real recording as that of rank *number* of 3. Return its path."""
    session, *others = read(RECORDINGS / recording).events()
    place = Placement(job="812", rank=number, ranks=3, host=f"node{number}", source="slurm")
    placed = msgspec.structs.replace(session, placement=place, started=1.7e9)
    return str(s.written(path / f"run-812-{number}.jsonl", [placed, *others]))


def test_a_rank_that_ran_out_of_memory_with_its_settings_asked_for_in_another_way(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The limit of 512 MiB is the same for all ranks. The scripts of the others set it themselves."""
    names = [as_rank(tmp_path, f"ranks/loop-{number}.jsonl.gz", number) for number in range(2)]
    lines = compared(capsys, *names, as_rank(tmp_path, "cpu-oom.jsonl", 2))
    out, end, peak = lines[7:10]
    assert all(line.startswith("Rank 2 ") for line in (out, end, peak))
    assert "out of memory" in out and "exit code 1 after 17 s" in end and "498.0 MiB" in peak
    assert not [line for line in lines if "settings" in line]


def test_ranks_without_steps_are_compared_over_time(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = [rank(tmp_path, number, counted=False) for number in (0, 1, 3)]
    lines = compared(capsys, *names, rank(tmp_path, 2, counted=False, extra={40: 3 * GIB}))
    (told,) = lines[8:]
    assert "seconds" in lines[0] and told.startswith("Rank 2 has 3.0 GiB more") and "~19 s" in told


def test_ranks_that_differ_alike_have_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = [rank(tmp_path, number, of=64, code=0 if number < 9 else 1) for number in range(16)]
    assert compared(capsys, *names)[20:] == [
        "Ranks 9, 10, 11, 12, 13 and 2 more ended with exit code 1 after 60 steps.",
        "Not among these recordings: ranks 16, 17, 18, 19, 20 and 43 more.",
    ]


def test_a_rank_that_cannot_be_read_costs_the_others_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = [rank(tmp_path, number) for number in range(3)]
    broken = tmp_path / "run-812-3.jsonl"
    broken.touch()
    assert main(["compare", *names, str(broken)]) == 0
    told = capsys.readouterr()
    assert told.out.splitlines()[-1] == "Not among these recordings: rank 3."
    assert "run-812-3.jsonl" in told.err and "it is left out" in told.err
    assert "fewer than two" in refused_by(capsys, "compare", names[0], str(broken), str(tmp_path / "none"))


def test_of_a_job_that_was_started_again_the_newest_start_counts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = [rank(tmp_path, number, of=2, steps=20, code=1) for number in range(2)]
    again = [rank(tmp_path, number, of=2, started=1.7e9 + 600) for number in range(2)]
    lines = compared(capsys, *first, *again)
    assert lines[0].startswith("2 ranks of job 812") and lines[-1].startswith("No rank differs")


def test_two_runs_of_different_jobs_are_compared_as_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = compared(capsys, rank(tmp_path, 0, job="812"), rank(tmp_path, 0, job="813"))
    assert any(line.startswith("peak in use") for line in lines)


def test_where_nothing_was_read_nothing_is_called_alike(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = [rank(tmp_path, number, read=False, counted=False) for number in range(4)]
    assert compared(capsys, *names)[8:] == ["TensorFlow's memory was not read in any of them."]
