"""The review of a run, and the five questions answered with its figures."""

import msgspec
import pytest

from tests import streams as s
from tests.findings.situations import (
    POOL_AT_ONCE,
    asked_growth,
    begin,
    effective,
    initialised,
    limited,
    reading,
    steady,
)
from tests.streams import GIB, MIB
from tests.ui.recorded import RECORDINGS
from tfmemtop import events
from tfmemtop.events import recording
from tfmemtop.findings.finding import Question
from tfmemtop.findings.pool import CachedButIdle, WholeCard
from tfmemtop.findings.run_review import RunReview, review
from tfmemtop.reports.answers import answers
from tfmemtop.reports.why_text import heading, pasted
from tfmemtop.reports.why_text import told as findings_told

GROWING: list[events.Event] = [
    *begin(),
    asked_growth(),
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


def told(seen: RunReview) -> dict[Question, str]:
    """Return each answer as one text."""
    return {a.question: " ".join([*a.paragraphs, *pasted(a.command, 999), *a.code]) for a in answers(seen)}


def test_every_question_is_answered_with_the_runs_own_figures() -> None:
    course = review(GROWING)
    assert heading(course).startswith("Run 1, train.py: 30 s, ended with exit code 0; on GPU 0 NVIDIA H200")
    page = told(course)
    assert list(page) == list(Question)
    assert "train.py:12 called set_memory_growth(GPU:0, True)." in page[Question.ALL_TAKEN]
    assert (
        "TensorFlow initialised its devices (fixing growth and limits) at train.py:14 (x = tf.ones(3))"
        in page[Question.ALL_TAKEN]
    )
    assert "the pool came to 1.0 GiB of its 140.0 GiB, with 908.0 MiB in use at the peak" in page[Question.ALL_TAKEN]
    assert "GPU utilisation averaged 45%" in page[Question.FULL_NOT_USED]
    efficiently = page[Question.EFFICIENTLY]
    assert (
        "A limit of 1362M rests on the pool that run 1 reached with growth on, 1.0 GiB, with a margin." in efficiently
    )
    assert "memory_limit=1362" in efficiently and "--growth on --memory-limit 1362M -- python train.py" in efficiently
    assert "nearly all that was free at the start, 139.4 GiB" in page[Question.GROWTH]
    assert "process total 1.6 GiB" in page[Question.REPORTS_LESS] and "nvidia-smi counts" in page[Question.REPORTS_LESS]


def test_what_many_gpus_have_alike_is_told_once() -> None:
    course = review(recording.read(RECORDINGS / "h200-four-cards.jsonl").events())
    assert heading(course).endswith("on GPU 0 to 3 NVIDIA H200 with 140.4 GiB each.")
    page = told(course)[Question.FULL_NOT_USED]
    assert "GPU 0, 2: at most 1.9 GiB of 140.4 GiB were taken" in page
    assert page.count("counts as taken, even if unused") == 1
    alone = [effective(False), *(s.effective(1.2, 100, f"GPU:{n}", f"GPU-{n}") for n in (1, 2, 3))]
    growths = [msgspec.structs.replace(event, growth=False, t=1.2) for event in alone]
    eight = [*begin(), *(s.device(n) for n in (1, 2, 3)), *growths]
    whole = [s.allocator(t, 100, GIB, pool=139 * GIB, name=f"GPU:{n}") for t in (3.0, 9.0, 15.0) for n in range(4)]
    course = review([*eight, *sorted(whole, key=lambda event: event.t), s.alive(30.0, 100)])
    (found,) = [told.text for told in findings_told(course) if "growth is off" in told.text]
    assert ": GPU 0 to 3 alike. GPU 0: growth is off" in found


def test_a_gpu_that_the_script_may_not_use_is_none_that_tensorflow_had() -> None:
    readings = [s.device_reading(t, {100: GIB}, index) for t in (5.0, 6.0) for index in (0, 1)]
    course = review([*begin(), s.device(1), effective(True), *readings])
    page = told(course)[Question.FULL_NOT_USED]
    assert "GPU 0: at most 1.0 GiB" in page and "GPU 1" not in page


def test_growth_is_judged_by_the_card_that_the_run_uses() -> None:
    stream = [*begin(others=130 * GIB, gpus=2), s.device_reading(0.6, {}, 1), effective(True)]
    page = told(review([*stream, *steady(12.0, 908 * MIB, 908 * MIB, 1026 * MIB)]))
    assert "nearly all that was free at the start, 9.4 GiB" in page[Question.GROWTH]


def test_a_finding_that_has_ceased_is_told_with_its_time() -> None:
    course = review(GROWING)
    (idle,) = [t for t in course.held if isinstance(t.finding, CachedButIdle)]
    assert 17 < idle.first < 20 and 24 < idle.last < 27
    (said,) = findings_told(course)
    assert said.when.startswith("From 17 s to 2") and said.text.startswith(f"{said.when}: GPU 0: 886.0 MiB of the")


def test_growth_that_was_not_had_is_the_answer() -> None:
    late = asked_growth(error="RuntimeError: Physical devices cannot be modified after being initialized")
    course = review([*begin(), effective(False), late, *steady(20.0, 33 * MIB, 908 * MIB, POOL_AT_ONCE)])
    page = told(course)
    assert "which raised RuntimeError" in page[Question.ALL_TAKEN]
    late_call, whole_card = (told.text for told in findings_told(course))
    assert "came too late" in late_call and "took 137.5 GiB of the card's 140.0 GiB at once" in whole_card
    assert (
        "Growth was off: the pool took nearly all that was free at the first allocation, 137.5 GiB"
        in page[Question.GROWTH]
    )
    assert "33.0 MiB" not in page[Question.EFFICIENTLY] and "peak so far" in page[Question.EFFICIENTLY]


def test_what_is_not_known_is_said_to_be_so() -> None:
    page = told(review([s.session(), s.run(), s.process(0.3, 100), s.alive(1.0, 100)]))
    assert "TensorFlow used no GPU in this run, as far as was seen" in page[Question.ALL_TAKEN]
    assert "Nothing was read" in page[Question.FULL_NOT_USED] and "no figure to go by" in page[Question.EFFICIENTLY]
    assert "No GPU memory of a TensorFlow process was read" in page[Question.REPORTS_LESS]
    assert answers(review([s.session()])) == []


def test_after_running_out_no_limit_is_said_to_have_fitted() -> None:
    made = [effective(True), *steady(12.0, 908 * MIB, 908 * MIB, 1026 * MIB)]
    failed = events.OutOfMemory(t=12.5, pid=100, message="no", device="GPU:0", requested=500 * MIB, operation="Fill")
    end = events.RunEnd(t=14.0, run=1, exit_code=0, signal=None)
    page = told(review([*begin(), *made, failed, end]))[Question.EFFICIENTLY]
    assert "rests on" not in page and "memory_limit" not in page
    assert "how much the run needs is not known" in page and "that failed needed 1.4 GiB in use" in page
    assert "A limit of 1362M rests on" in told(review([*begin(), *made, end]))[Question.EFFICIENTLY]
    small = told(review([*begin(), *made, reading(12.4, 100 * MIB, 908 * MIB, 1026 * MIB), failed, end]))[
        Question.EFFICIENTLY
    ]
    assert "600.0 MiB, no more than the peak" in small


def test_growth_that_took_the_card_all_the_same() -> None:
    page = told(review([*begin(), effective(True), *steady(12.0, 120 * GIB, 120 * GIB, 130 * GIB)]))
    assert "still took most of the whole card: the pool came to 130.0 GiB" in page[Question.ALL_TAKEN]


def test_what_others_held_and_what_growth_off_reserves_are_not_mixed_up() -> None:
    page = told(review(recording.read(RECORDINGS / "h100-resnet.jsonl").events()))
    assert (
        "13.7 GiB of 79.6 GiB were taken while TensorFlow had it (by this run at most 8.6 GiB)"
        in page[Question.FULL_NOT_USED]
    )
    assert "would have reserved 76.4 GiB: nearly all that was free at the start, 79.2 GiB" in page[Question.GROWTH]


def test_beside_a_limit_growth_off_reserves_the_limit() -> None:
    page = told(review([*begin(), *limited(True, 4 * GIB), *steady(12.0, 908 * MIB, 908 * MIB, 1026 * MIB)]))
    assert (
        "would have reserved all of its 4.0 GiB" in page[Question.GROWTH]
        and "nearly all that was free" not in page[Question.GROWTH]
    )


def test_of_cudas_own_pool_no_growth_is_told() -> None:
    page = told(review([*begin(), effective(False, allocator="cuda_malloc_async"), reading(3.0, GIB)]))
    assert "Growth was off" not in page[Question.ALL_TAKEN] + page[Question.GROWTH]
    assert "cuda_malloc_async" in page[Question.ALL_TAKEN] and "Growth changes nothing" in page[Question.GROWTH]


def test_a_pool_that_grew_is_not_mixed_with_pinned_memory() -> None:
    grown = [
        events.PoolGrowth(t=4.0, pid=100, device="GPU:0", at=4.0, before=2 * MIB, after=6 * MIB),
        events.PoolGrowth(t=4.1, pid=100, device="HOST:0", at=4.1, before=0, after=2 * MIB),
    ]
    page = told(review([*begin(), effective(True), *grown, *steady(12.0, 5 * MIB, 5 * MIB, 6 * MIB)]))[Question.GROWTH]
    assert "grew 1 time: 2.0 MiB to 6.0 MiB" in page


def test_the_command_to_try_can_be_pasted() -> None:
    started = [msgspec.structs.replace(e, argv=["python", "-c", "import a; b()"]) if isinstance(e, events.Run) else e
               for e in GROWING]  # fmt: skip
    assert "-- python -c 'import a; b()'" in told(review(started))[Question.EFFICIENTLY]


def test_a_recording_that_lost_its_devices_is_answered_all_the_same() -> None:
    assert list(told(review(event for event in GROWING if not isinstance(event, events.Device))))


def test_without_the_probe_the_pool_is_not_guessed() -> None:
    bare = [*begin(), effective(True), reading(3.0, GIB), s.device_reading(3.5, {100: 2 * GIB})]
    page = told(review(bare))
    assert "how large the pool was is not known" in page[Question.FULL_NOT_USED]
    assert "the whole process came to 2.0 GiB" in page[Question.ALL_TAKEN]


def test_one_of_several_runs_is_looked_at_alone() -> None:
    path = RECORDINGS / "h200-settings.jsonl"
    first, newest = review(recording.read(path).events(), 1), review(recording.read(path).events())
    assert "Growth was off" in told(first)[Question.ALL_TAKEN] and first.account is not None
    assert heading(newest).startswith("Run 5")
    assert not any(isinstance(held.finding, WholeCard) for held in newest.held)


@pytest.mark.long
def test_a_long_recording_is_looked_through_at_a_coarser_pace() -> None:
    long = [*begin(), effective(True), *steady(2600.0, 900 * MIB, 908 * MIB, 1026 * MIB)]
    assert review(long).held == []


def test_a_run_on_the_cpu_of_a_machine_with_gpus_has_a_limit_too() -> None:
    on_cpu = [effective(None, name="CPU:0"), reading(3.0, 600 * MIB, 1000 * MIB, name="CPU:0")]
    page = told(review([*begin(), *on_cpu]))[Question.EFFICIENTLY]
    assert "A limit of ~2000M is a guess, twice the peak: how large the pool was is not known" in page


def test_what_was_taken_at_once_is_told_beside_the_limit() -> None:
    def growth(name: str) -> str:
        return told(review(recording.read(RECORDINGS / "seeds" / f"{name}.jsonl").events()))[Question.GROWTH]

    assert "of its limit of 878.9 GiB TensorFlow got 131.9 GiB at the first allocation" in growth("beyond-card")
    # Both logical devices together.
    assert "TensorFlow took the whole limit, 3.0 GiB, at the first allocation" in growth("two-logical")


def test_logical_devices_of_one_gpu_are_told_one_by_one() -> None:
    seen = review(recording.read(RECORDINGS / "seeds" / "two-logical.jsonl").events())
    page = told(seen)[Question.EFFICIENTLY]
    assert "The run had 64.0 MiB on GPU:0 and 128.0 MiB on GPU:1 in use at its peak." in page
    assert "needs a limit of its own: GPU:0 ~129M, GPU:1 ~257M. These are guesses, twice the peaks." in page
