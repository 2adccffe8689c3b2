"""``tfmemtop whatif`` on a recorded session: the table, JSON, and the message if nothing can be replayed."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests import streams
from tests.starting import ran, tfmemtop
from tests.streams import GIB
from tests.ui.shown import events_until
from tests.whatif.conftest import Traced
from tests.whatif.traced import session
from tfmemtop import events
from tfmemtop.events import Outcome, Replayed, SettingReplayed, SmallestLimits
from tfmemtop.probe.build import build
from tfmemtop.reports.whatif import page, to_json, views
from tfmemtop.state.predicted import Predicted, predicted
from tfmemtop.units import MIB

RECORDINGS = Path(__file__).parents[1] / "recordings"


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    program = [sys.executable, "-m", "tfmemtop", "whatif", *arguments]
    return ran(program)


@pytest.mark.tensorflow
def test_a_recording_is_replayed_on_this_machine(traced: Traced, tensorflow: tuple[Path, str], tmp_path: Path) -> None:
    parts, measured = traced
    path = streams.written(tmp_path / "run.jsonl", session(parts, measured, *tensorflow))
    done = command(str(path), "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert set(told) == {"device", "rows", "smallest", "seen"} and told["smallest"]["growth_off"] is None
    present, *others = told["rows"]
    assert set(present) == {"growth", "limit", "fits", "pool", "peak", "short_by"}
    assert (present["growth"], present["limit"], present["fits"]) == (True, 4096 * MIB, True)
    assert (present["peak"], present["pool"]) == (measured.peak, measured.peak_pool)
    assert told["seen"] == {"events": sum(part.events for part in parts), "share": 1.0, "outgrown": False, "before": 0}
    assert {row["fits"] for row in others} >= {True, False}
    assert all((row["fits"] is False) == (row["short_by"] is not None) for row in told["rows"])


GROWS = """
import time
import tensorflow as tf

weight = tf.Variable(tf.ones([512, 512]))

@tf.function(input_signature=[tf.TensorSpec([None, 512], tf.float32)])
def step(x):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.matmul(x, weight))
    weight.assign_sub(1e-3 * tape.gradient(loss, weight))

for rows in (500, 600, 700, 800, 900, 20_000, 700):
    step(tf.ones([rows, 512]))
    time.sleep(0.1)  # a step takes its time
"""


@pytest.mark.tensorflow
def test_of_a_run_whose_steps_differ_all_are_replayed(tensorflow: tuple[Path, str], tmp_path: Path) -> None:
    """The sixth step needs twenty times as much as those before it: 39 MiB twice."""
    assert build(tensorflow[0]).state == "built"  # so that the probe is there when the first step begins
    path = str(tmp_path / "run.jsonl")
    options = ("--cpu-pool", "1G")
    done = tfmemtop("record", "-o", path, *options, "--", sys.executable, "-c", GROWS)
    assert done.returncode == 0, done.stderr
    replayed = command(path, "--json")
    assert replayed.returncode == 0, replayed.stderr
    found = json.loads(replayed.stdout)
    assert found["seen"]["share"] > 0.95 and not found["seen"]["outgrown"]  # on a busy machine the first may be missed
    smallest = found["smallest"]["growth_on"]
    assert 30 * MIB < smallest["at_least"] <= smallest["surely"]


@pytest.mark.programs
def test_without_a_trace_it_says_how_to_get_one_or_what_the_probe_could_not_do() -> None:
    done = command(str(RECORDINGS / "cpu-plain.jsonl"))
    assert done.returncode == 2 and "no pool" in done.stderr
    # On an H200, with a TensorFlow without the headers of its profiler.
    done = command(str(RECORDINGS / "windows" / "no-events.jsonl"))
    assert done.returncode == 2 and "cannot record" in done.stderr and "--no-probe" not in done.stderr


def outcome(**figures: Any) -> Outcome:
    usual = {"in_use": 8 * GIB, "peak": 10 * GIB, "pool": 12 * GIB, "peak_pool": 12 * GIB, "growths": 5}
    return Outcome(**({"fits": True, "largest_free": 3 * GIB, "allocations": 900} | usual | figures))


def replayed_on_a_gpu() -> Replayed:
    fails = outcome(fits=False, failed=41, operation="step/MatMul", asked=GIB, lacking=256 * MIB)
    return Replayed(
        t=9.0,
        pid=100,
        device="GPU:0",
        events=2000,
        allocations=1000,
        steps=20,
        requested=9 * GIB,
        present=SettingReplayed(True, True, 16 * GIB, outcome()),
        rows=[
            SettingReplayed(False, True, 20 * GIB, outcome(pool=20 * GIB, peak_pool=20 * GIB, growths=1)),
            SettingReplayed(True, True, 9 * GIB, fails, fails),
            SettingReplayed(True, False, 15 * GIB, outcome()),
            SettingReplayed(True, True, 12 * GIB, fails, outcome(waits=3)),
        ],
        smallest=[SmallestLimits(True, True, 15 * GIB, 12 * GIB), SmallestLimits(False, True, 20 * GIB, 19 * GIB)],
    )


def view_of(*later: events.Event, replayed: Replayed | None = None) -> Predicted:
    """Return what is predicted of a run with growth on, which had *later* events after what was replayed of it."""
    stream = [
        *streams.initialised(),
        *(streams.device_reading(1.3, {100: 13 * GIB}), streams.allocator(2.0, 100, 8 * GIB, 10 * GIB, 12 * GIB)),
        *(streams.device_reading(2.1, {100: 13 * GIB}), replayed or replayed_on_a_gpu(), *later),
    ]
    (view,) = predicted(streams.fold(stream))
    return view


def test_of_a_gpu_it_says_the_process_total_and_which_card_would_do() -> None:
    view = view_of()
    assert [row.fits for row in view.rows] == [True, False, None, True, True]
    assert view.beside == GIB and view.total(12 * GIB) == 13 * GIB
    text = "\n".join(page([view], [("16 GB T4", 15 * GIB, False), ("24 GB L4", 22 * GIB, True)]))
    for fact in (
        *("1.0 GiB, 256.0 MiB more than there is in one piece (event 42)", "on, limit ~16128M", "off, limit ~21504M"),
        *("replayed: 9.0 GiB", "the present setting; measured: peak 10.0G, pool 12.0G"),
        *("growth on    12288M  ~15360M        ~16128M", "growth off    19456M  ~20480M        ~21504M"),
    ):
        assert fact in text
    t4 = next(line for line in text.splitlines() if line.startswith("16 GB T4"))
    assert "perhaps" in t4 and t4.rstrip().endswith("no, needs at least 20.0 GiB")
    assert "fits, 5.2 GiB left" in text and "fits, 0 B left" in text
    assert to_json(view)["smallest"] == {
        "growth_on": {"surely": 15 * GIB, "same_algorithms": 15 * GIB, "at_least": 12 * GIB, "worked": None},
        "growth_off": {"surely": 20 * GIB, "same_algorithms": 20 * GIB, "at_least": 19 * GIB, "worked": None},
    }


def test_the_smallest_limit_with_the_same_algorithms_has_no_room_for_others() -> None:
    ends = SmallestLimits(True, True, 15 * GIB, 12 * GIB, 13 * GIB)
    told = msgspec.structs.replace(replayed_on_a_gpu(), scratch=3, smallest=[ends])
    view = view_of(replayed=told)
    text = "\n".join(page([view], []))
    assert "growth on    12288M          ~13312M        ~16128M" in text and "only tried" not in text
    assert to_json(view)["smallest"]["growth_on"]["same_algorithms"] == 13 * GIB


@pytest.mark.parametrize(("name", "rising"), [("leaks/h100-leak", True), ("h200-runs", False)])
def test_where_memory_kept_rising_no_limit_is_called_enough(name: str, rising: bool) -> None:
    stream = events_until(name, 60.0)
    run = streams.fold(stream).run
    assert run is not None
    replayed = msgspec.structs.replace(replayed_on_a_gpu(), pid=run.pid)
    of_another = msgspec.structs.replace(replayed, device="GPU:1")
    view, other = sorted(views(streams.fold([*stream, replayed, of_another])), key=lambda one: one.device)
    assert "kept rising" not in "\n".join(page([other], [])), "only one pool's memory rose"
    text = "\n".join(page([view], []))
    assert ("kept rising" in text) is rising
    assert all(end["surely"] is None for end in to_json(view)["smallest"].values()) is rising
    assert "  yes  " not in text or not rising
    assert any(row["fits"] for row in to_json(view)["rows"]) is not rising


def test_how_fast_the_runs_of_the_session_were_is_beside_their_settings() -> None:
    stream = events_until("h200-runs", 51.0)
    pid = streams.fold(stream).runs[-1].pid
    (view,) = predicted(streams.fold([*stream, msgspec.structs.replace(replayed_on_a_gpu(), pid=pid)]))
    assert [pace.run for pace in view.paces] == [1, 2] and all(pace.a_second > 0 for pace in view.paces)
    other = msgspec.structs.replace(view.paces[0], growth=True, effective=12 * GIB, a_second=6.0)
    text = page([msgspec.structs.replace(view, paces=(other, view.paces[1]))], [])
    assert any("12.0G  yes" in line and "6.0/s" in line for line in text)
    assert text[-1].startswith("Measured steps per second: 6.0 in run 1 (growth on")


@pytest.mark.programs
def test_a_run_of_several_is_named_by_its_number(tmp_path: Path) -> None:
    stream: list[events.Event] = [
        *streams.initialised(),
        *(streams.allocator(2.0, 100, 8 * GIB, 10 * GIB, 12 * GIB), replayed_on_a_gpu()),
        events.RunEnd(t=10.0, run=1, exit_code=0, signal=None),
        *(streams.run(11.0, 2, 200), streams.process(11.1, 200, 2), streams.hook(11.2, 200)),
    ]
    path = str(streams.written(tmp_path / "run.jsonl", stream))
    first = command(f"{path}:1", "--json")
    assert first.returncode == 0, first.stderr
    assert json.loads(first.stdout)["device"] == "GPU:0"
    for name in (path, f"{path}:2"):
        assert "no first steps" in command(name).stderr, "nothing was recorded of run 2"
    none = command(f"{path}:3")
    assert none.returncode == 2 and "holds no run 3" in none.stderr


def outgrown(*later: Any) -> "tuple[str, dict[str, Any]]":
    """Return the page and the JSON about a run with growth on, with a table of cards of 11 to 40 GiB.

    The events *later* come after the allocations that were recorded and replayed.
    """
    view = view_of(*later)
    sizes = [("11 GB", 11 * GIB, True), ("24 GB", 22 * GIB, True), ("40 GB", 40 * GIB, True)]
    return "\n".join(page([view], sizes)), to_json(view)


def test_of_a_run_that_needed_more_later_only_what_worked_and_what_is_too_small_is_told() -> None:
    later = [streams.allocator(9.5, 100, 8 * GIB, 14 * GIB, 24 * GIB), streams.device_reading(9.6, {100: 25 * GIB})]
    text, told = outgrown(*later)
    assert "tfmemtop fit" in text
    assert [(row["growth"], row["limit"], row["fits"], row["pool"]) for row in told["rows"]] == [
        (True, 16 * GIB, True, 24 * GIB),
        (True, 9 * GIB, False, 12 * GIB),
    ]
    assert told["seen"]["outgrown"] and told["smallest"] == {
        "growth_on": {"surely": None, "same_algorithms": None, "at_least": 12 * GIB, "worked": 24 * GIB},
        "growth_off": {"surely": None, "same_algorithms": None, "at_least": 19 * GIB, "worked": None},
    }
    small, middle, large = text.splitlines()[-3:]
    assert small.split("  ")[-1] == "no, needs at least 20.0 GiB" and "not known" in middle
    assert large.split()[2] == "fits," and large.endswith("not known"), "with another growth nothing is known to work"
    assert "By the replay alone" not in text and "perhaps" not in text


def test_a_peak_that_rises_a_little_later_raises_the_smallest_limit() -> None:
    text, told = outgrown(streams.allocator(9.5, 100, 8 * GIB, 10 * GIB + 100 * MIB, 12 * GIB))
    assert not told["seen"]["outgrown"] and told["smallest"]["growth_on"]["at_least"] == 12 * GIB
    assert told["smallest"]["growth_on"]["surely"] == 15 * GIB + 100 * MIB and "~15460M" in text


@pytest.mark.parametrize(
    "later",
    [
        [events.OutOfMemory(t=9.5, pid=100, message="OOM", device="GPU:0", requested=GIB)],
        [
            events.AllocatorLine(t=9.4, pid=100, at=9.3, allocator="bfc", size=GIB),
            events.RunEnd(t=9.5, run=1, exit_code=None, signal=11),
        ],
        [events.RunEnd(t=9.5, run=1, exit_code=1, signal=None)],
    ],
)
def test_of_a_run_that_failed_nothing_is_called_enough(later: list[events.Event]) -> None:
    text, told = outgrown(*later)
    assert not any(row["fits"] for row in told["rows"]) and "By the replay alone" not in text and "fits, " not in text
    assert told["smallest"]["growth_on"] == {
        **dict.fromkeys(("surely", "same_algorithms", "worked")),
        "at_least": 12 * GIB,
    }
    ran_out = not isinstance(later[0], events.RunEnd)
    assert ("With growth on 16384M was not enough." in text) == ran_out, "whether Python or a crash tells it"
    by_hand = events.RunEnd(t=9.5, run=1, exit_code=None, signal=2)
    assert outgrown(by_hand)[1]["smallest"]["growth_on"]["surely"] == 15 * GIB, "whoever ends a run may see what fits"


@pytest.mark.tensorflow
def test_a_recording_from_elsewhere_is_replayed_by_a_tensorflow_of_its_version(tensorflow: tuple[Path, str]) -> None:
    done = command(str(RECORDINGS / "cpu-holders.jsonl"))
    if tensorflow[1] != "2.21.0":
        assert done.returncode == 2 and "TensorFlow of that version is not on this machine" in done.stderr
        return
    assert done.returncode == 0, done.stderr
    assert "The run later had more" in done.stdout and "By the replay alone" not in done.stdout
