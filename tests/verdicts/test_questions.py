"""A run looked back on, and the five questions answered with its figures."""

from pathlib import Path

import msgspec
import pytest

from tests import streams as s
from tests.streams import GIB, MIB
from tests.ui.recorded import RECORDINGS
from tests.verdicts.situations import POOL_AT_ONCE, asked, begin, effective, initialised, limited, reading, steady
from tfmemtop import events, recording
from tfmemtop.cli import main
from tfmemtop.verdicts.course import Course, follow
from tfmemtop.verdicts.questions import (
    ALL_TAKEN,
    EFFICIENTLY,
    FULL_NOT_USED,
    GROWTH,
    REPORTS_LESS,
    also_found,
    answers,
    heading,
)

GROWING: list[events.AnyEvent] = [
    *begin(),
    asked("set_memory_growth", "GPU:0, True"),
    initialised(14, t=1.9),
    effective(True),
    *steady(12.0, 908 * MIB, 908 * MIB, 1026 * MIB),
    s.device_reading(12.1, {100: 1634 * MIB}),
    *steady(25.0, 140 * MIB, 908 * MIB, 1026 * MIB, since=13.0),
    s.device_reading(25.1, {100: 1634 * MIB}),
    *steady(30.0, 800 * MIB, 908 * MIB, 1026 * MIB, since=26.0),
    events.RunEnd(t=30.4, run=1, exit_code=0, signal=None),
    s.device_reading(30.5, {}),
    s.alive(31.0, 900),
    s.alive(40.0, 900),
]


def told(course: Course) -> dict[str, str]:
    """Each answer as one text."""
    return {a.question: " ".join([*a.paragraphs, *a.found, *a.code]) for a in answers(course)}


def test_every_question_is_answered_with_the_runs_own_figures() -> None:
    course = follow(GROWING)
    assert heading(course).startswith("Run 1, python train.py: 00:00:30, ended with exit code 0; on GPU 0 NVIDIA H200")
    page = told(course)
    assert list(page) == [ALL_TAKEN, FULL_NOT_USED, EFFICIENTLY, GROWTH, REPORTS_LESS]
    assert "train.py:12 called set_memory_growth(GPU:0, True)." in page[ALL_TAKEN]
    assert "settled growth and limits with that, at train.py:14 (x = tf.ones(3))" in page[ALL_TAKEN]
    assert "the pool came to 1.0 GiB of its 140.0 GiB, with 908.0 MiB in use at the peak" in page[ALL_TAKEN]
    assert "its processors were busy 45% of the time" in page[FULL_NOT_USED]
    assert "A limit of 999.0 MiB" in page[EFFICIENTLY] and "memory_limit=999" in page[EFFICIENTLY]
    assert "nearly all that was free at the start, 139.4 GiB" in page[GROWTH]
    assert "process total 1.6 GiB" in page[REPORTS_LESS] and "nvidia-smi counts" in page[REPORTS_LESS]


def test_what_many_gpus_have_alike_is_told_once() -> None:
    course = follow(recording.read(RECORDINGS / "h200-four-cards.jsonl").events())
    assert heading(course).endswith("on GPU 0 to 3 NVIDIA H200 with 140.4 GiB each.")
    page = told(course)[FULL_NOT_USED]
    assert "GPU 0, 2: at most 1.9 GiB of 140.4 GiB were taken" in page
    assert page.count("The two are counted apart") == 1
    alone = [effective(False), *(s.effective(1.2, 100, f"GPU:{n}", f"GPU-{n}") for n in (1, 2, 3))]
    growths = [msgspec.structs.replace(event, growth=False, t=1.2) for event in alone]
    eight = [*begin(), *(s.device(n) for n in (1, 2, 3)), *growths]
    whole = [s.allocator(t, 100, GIB, pool=139 * GIB, name=f"GPU:{n}") for t in (3.0, 9.0, 15.0) for n in range(4)]
    course = follow([*eight, *sorted(whole, key=lambda event: event.t), s.alive(30.0, 100)])
    (found,) = [text for answer in answers(course) for text in answer.found if "growth is off" in text]
    assert ") GPU 0 to 3 alike. GPU 0: growth is off" in found


def test_a_gpu_that_the_script_may_not_use_is_none_that_tensorflow_had() -> None:
    readings = [s.device_reading(t, {100: GIB}, index) for t in (5.0, 6.0) for index in (0, 1)]
    course = follow([*begin(), s.device(1), effective(True), *readings])
    page = told(course)[FULL_NOT_USED]
    assert "GPU 0: at most 1.0 GiB" in page and "GPU 1" not in page


def test_a_finding_that_has_ceased_is_told_with_its_time() -> None:
    course = follow(GROWING)
    (idle,) = [t for t in course.told if t.finding.key == "cached-idle"]
    assert 17 < idle.first < 20 and 24 < idle.last < 27
    assert "(from 00:00:17 to 00:00:2" in told(course)[FULL_NOT_USED]
    assert also_found(course) == []


def test_growth_that_was_not_had_is_the_answer() -> None:
    late = asked(
        "set_memory_growth", "GPU:0, True", "RuntimeError: Physical devices cannot be modified after being initialized"
    )
    course = follow([*begin(), effective(False), late, *steady(20.0, 33 * MIB, 908 * MIB, POOL_AT_ONCE)])
    page = told(course)
    assert "which raised RuntimeError" in page[ALL_TAKEN] and "came too late" in page[ALL_TAKEN]
    assert "took 137.5 GiB of the card's 140.0 GiB at once" in page[ALL_TAKEN]
    assert "Growth was off: the pool took nearly all that was free at the first allocation, 137.5 GiB" in page[GROWTH]
    assert "not run to a good end" in page[EFFICIENTLY]


def test_what_is_not_known_is_said_to_be_so() -> None:
    page = told(follow([s.session(), s.run(), s.process(0.3, 100), s.alive(1.0, 100)]))
    assert "TensorFlow used no GPU in this run, as far as was seen" in page[ALL_TAKEN]
    assert "Nothing was read" in page[FULL_NOT_USED] and "no figure to go by" in page[EFFICIENTLY]
    assert "No GPU memory of a TensorFlow process was read" in page[REPORTS_LESS]
    assert answers(follow([s.session()])) == []


def test_after_running_out_no_limit_is_said_to_have_fitted() -> None:
    made = [effective(True), *steady(12.0, 908 * MIB, 908 * MIB, 1026 * MIB)]
    failed = events.OutOfMemory(t=12.5, pid=100, message="no", device="GPU:0", requested=500 * MIB, operation="Fill")
    end = events.RunEnd(t=14.0, run=1, exit_code=0, signal=None)
    page = told(follow([*begin(), *made, failed, end]))[EFFICIENTLY]
    assert "would have fitted" not in page and "memory_limit" not in page
    assert "how much it needs is not known" in page and "would have taken 1.4 GiB in use" in page
    assert "would have fitted" in told(follow([*begin(), *made, end]))[EFFICIENTLY]
    small = told(follow([*begin(), *made, reading(12.4, 100 * MIB, 908 * MIB, 1026 * MIB), failed, end]))[EFFICIENTLY]
    assert "600.0 MiB would have been in use, no more than at the peak" in small


def test_growth_that_took_the_card_all_the_same() -> None:
    page = told(follow([*begin(), effective(True), *steady(12.0, 120 * GIB, 120 * GIB, 130 * GIB)]))
    assert "still took most of the whole card: the pool came to 130.0 GiB" in page[ALL_TAKEN]


def test_beside_a_limit_growth_off_reserves_the_limit() -> None:
    page = told(follow([*begin(), *limited(True, 4 * GIB), *steady(12.0, 908 * MIB, 908 * MIB, 1026 * MIB)]))
    assert "would have reserved all of its 4.0 GiB" in page[GROWTH] and "nearly all that was free" not in page[GROWTH]


def test_of_cudas_own_pool_no_growth_is_told() -> None:
    page = told(follow([*begin(), effective(False, allocator="cuda_malloc_async"), reading(3.0, GIB)]))
    assert "Growth was off" not in page[ALL_TAKEN] + page[GROWTH]
    assert "cuda_malloc_async" in page[ALL_TAKEN] and "Growth changes nothing" in page[GROWTH]


def test_a_pool_that_grew_is_not_mixed_with_pinned_memory() -> None:
    grown = [
        events.PoolGrowth(t=4.0, pid=100, device="GPU:0", at=4.0, before=2 * MIB, after=6 * MIB),
        events.PoolGrowth(t=4.1, pid=100, device="HOST:0", at=4.1, before=0, after=2 * MIB),
    ]
    page = told(follow([*begin(), effective(True), *grown, *steady(12.0, 5 * MIB, 5 * MIB, 6 * MIB)]))[GROWTH]
    assert "grow 1 time: 2.0 MiB to 6.0 MiB" in page


def test_the_command_to_try_can_be_pasted() -> None:
    started = [msgspec.structs.replace(e, argv=["python", "-c", "import a; b()"]) if isinstance(e, events.Run) else e
               for e in GROWING]  # fmt: skip
    assert "-- python -c 'import a; b()'" in told(follow(started))[EFFICIENTLY]


def test_a_recording_that_lost_its_devices_is_answered_all_the_same() -> None:
    assert list(told(follow(event for event in GROWING if not isinstance(event, events.Device))))


def test_without_the_probe_the_pool_is_not_guessed() -> None:
    bare = [*begin(), effective(True), reading(3.0, GIB), s.device_reading(3.5, {100: 2 * GIB})]
    page = told(follow(bare))
    assert "how large the pool was is not known" in page[FULL_NOT_USED]
    assert "the whole process came to 2.0 GiB" in page[ALL_TAKEN]


def test_one_of_several_runs_is_looked_at_alone() -> None:
    path = RECORDINGS / "h200-settings.jsonl"
    first, newest = follow(recording.read(path).events(), 1), follow(recording.read(path).events())
    assert "Growth was off" in told(first)[ALL_TAKEN] and first.account is not None
    assert heading(newest).startswith("Run 5")
    assert [t.finding.key for t in newest.told if t.finding.key == "whole-card"] == []


def test_a_long_recording_is_looked_through_at_a_coarser_pace() -> None:
    long = [*begin(), effective(True), *steady(9000.0, 900 * MIB, 908 * MIB, 1026 * MIB)]
    assert follow(long).told == []


def test_the_command_prints_text_to_paste(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    writer = recording.Writer(tmp_path / "run.jsonl")
    for event in GROWING:
        writer.write(event)
    writer.close()
    assert main(["why", str(tmp_path / "run.jsonl")]) == 0
    printed = capsys.readouterr().out
    for question in (ALL_TAKEN, FULL_NOT_USED, EFFICIENTLY, GROWTH, REPORTS_LESS):
        assert question in printed
    assert max(map(len, printed.splitlines())) <= 120
    assert main(["why", str(tmp_path / "run.jsonl") + ":2"]) == 2
    assert "holds no run 2" in capsys.readouterr().err
