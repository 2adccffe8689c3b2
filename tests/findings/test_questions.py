"""The review of a run, and the five questions answered with its figures."""

import msgspec
import pytest

from tests import streams as s
from tests.findings.situations import (
    POOL_AT_ONCE,
    asked_growth,
    begin,
    busy,
    effective,
    initialised,
    limited,
    reading,
    steady,
)
from tests.streams import GIB, MIB
from tests.ui.shown import RECORDINGS
from tfmemtop import events
from tfmemtop.events import recording
from tfmemtop.findings.review import RunReview, review
from tfmemtop.findings.rules.pool import CachedButIdle, WholeCard
from tfmemtop.findings.rules.settings import AskedTooLate
from tfmemtop.reports.answers import CommonQuestion as Question
from tfmemtop.reports.answers import answers
from tfmemtop.reports.why import found_groups, heading, pasted

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


TWELVE_SECONDS = steady(12.0, 908 * MIB, 908 * MIB, 1026 * MIB)


def told(seen: RunReview) -> dict[Question, str]:
    """Return each answer as one text."""
    return {a.question: " ".join([a.line, *a.paragraphs, *pasted(a.command, 999), *a.code]) for a in answers(seen)}


def lacking(text: str, *parts: str) -> list[str]:
    """Return those of *parts* that the text lacks: figures, names, places, options."""
    return [part for part in parts if part not in text]


def test_every_question_is_answered_with_the_runs_own_figures() -> None:
    course = review(GROWING)
    assert not lacking(heading(course), "Run 1", "train.py", "30 s", "exit code 0", "GPU 0", "H200")
    page = told(course)
    assert list(page) == list(Question)
    calls = ("train.py:12", "set_memory_growth(GPU:0, True)", "train.py:14 (x = tf.ones(3))")
    assert not lacking(page[Question.ALL_TAKEN], *calls, "1.0 GiB", "140.0 GiB")
    assert "45%" in page[Question.FULL_NOT_USED]
    limit = ("1362M", "run 1", "1.0 GiB", "memory_limit=1362", "--growth on --memory-limit 1362M -- python train.py")
    assert not lacking(page[Question.EFFICIENTLY], *limit)
    assert "139.4 GiB" in page[Question.GROWTH]
    assert not lacking(page[Question.REPORTS_LESS], "1.6 GiB", "nvidia-smi")


def test_what_many_gpus_have_alike_is_told_once() -> None:
    course = review(recording.read(RECORDINGS / "h200-four-cards.jsonl").events())
    assert not lacking(heading(course), "GPUs 0 to 3", "140.4 GiB each")
    page = told(course)[Question.FULL_NOT_USED]
    assert "GPUs 0, 2: at most 1.9 GiB of 140.4 GiB" in page and page.count("even if unused") == 1
    alone = [effective(False), *(s.effective(1.2, 100, f"GPU:{n}", f"GPU-{n}") for n in (1, 2, 3))]
    growths = [msgspec.structs.replace(event, growth=False, t=1.2) for event in alone]
    eight = [*begin(), *(s.device(n) for n in (1, 2, 3)), *growths]
    whole = [s.allocator(t, 100, GIB, pool=139 * GIB, name=f"GPU:{n}") for t in (3.0, 9.0, 15.0) for n in range(4)]
    course = review([*eight, *sorted(whole, key=lambda event: event.t), s.alive(30.0, 100)])
    assert sum("GPUs 0 to 3 alike" in text for _, text in found_groups(course)) == 1


def test_a_gpu_that_the_script_may_not_use_is_none_that_tensorflow_had() -> None:
    readings = [s.device_reading(t, {100: GIB}, index) for t in (5.0, 6.0) for index in (0, 1)]
    course = review([*begin(), s.device(1), effective(True), *readings])
    page = told(course)[Question.FULL_NOT_USED]
    assert "GPU 0" in page and "GPU 1" not in page


def test_growth_is_judged_by_the_card_that_the_run_uses() -> None:
    stream = [*begin(others=130 * GIB, gpus=2), s.device_reading(0.6, {}, 1), effective(True)]
    assert "9.4 GiB" in told(review([*stream, *TWELVE_SECONDS]))[Question.GROWTH]


def test_a_finding_that_has_ceased_is_told_with_its_time() -> None:
    full: dict[int, int | None] = {100: 138 * GIB}
    later = [msgspec.structs.replace(event, t=event.t + 40) for event in busy({0: 90}, full)]
    text = " ".join(
        text for _, text in found_groups(review([*begin(), effective(False), *busy({0: 4}, full, 40), *later]))
    )
    assert text.startswith("From 35 s to 4") and " s: GPU 0 is full but idle" in text


def test_an_idle_cache_that_was_used_again_is_not_told() -> None:
    course = review(GROWING)
    (idle,) = [t for t in course.held if isinstance(t.finding, CachedButIdle)]
    assert 17 < idle.first < 20 and 24 < idle.last < 27
    assert not [*found_groups(course)]


def test_growth_that_was_not_had_is_the_answer() -> None:
    late = asked_growth(error="RuntimeError: Physical devices cannot be modified after being initialized")
    course = review([*begin(), effective(False), late, *steady(20.0, 33 * MIB, 908 * MIB, POOL_AT_ONCE)])
    page = told(course)
    assert "RuntimeError" in page[Question.ALL_TAKEN]
    assert [type(held.finding) for held in course.held] == [AskedTooLate, WholeCard]
    assert not lacking(page[Question.ALL_TAKEN], "growth was off", "137.5 GiB")
    assert "33.0 MiB" not in page[Question.EFFICIENTLY]


def test_what_is_not_known_is_said_to_be_so() -> None:
    page = told(review([s.session(), s.run(), s.process(0.3, 100), s.alive(1.0, 100)]))
    assert list(page) == [Question.ALL_TAKEN, Question.EFFICIENTLY], "the others are about GPUs"
    assert "used no GPU" in page[Question.ALL_TAKEN] and "Nothing was read" in page[Question.EFFICIENTLY]
    unread = told(review([s.session(), s.run(), s.process(0.3, 100), s.hook(0.4, 100), effective(True)]))
    assert list(unread) == list(Question)
    assert "Not known" in unread[Question.FULL_NOT_USED] and "No GPU memory" in unread[Question.REPORTS_LESS]
    assert answers(review([s.session()])) == []


def test_after_running_out_no_limit_is_said_to_have_fitted() -> None:
    made = [effective(True), *TWELVE_SECONDS]
    failed = events.OutOfMemory(t=12.5, pid=100, message="no", device="GPU:0", requested=500 * MIB, operation="Fill")
    end = events.RunEnd(t=14.0, run=1, exit_code=0, signal=None)
    page = told(review([*begin(), *made, failed, end]))[Question.EFFICIENTLY]
    assert "rests on" not in page and "memory_limit" not in page
    assert not lacking(page, "not known", "raised use to 1.4 GiB")
    assert "1362M" in told(review([*begin(), *made, end]))[Question.EFFICIENTLY]
    lower = reading(12.4, 100 * MIB, 908 * MIB, 1026 * MIB)
    page = told(review([*begin(), *made, lower, failed, end]))[Question.EFFICIENTLY]
    assert "600.0 MiB, no more" in page
    second = [effective(True, name="GPU:1"), reading(12.4, 100 * MIB, 200 * MIB, 1026 * MIB, name="GPU:1")]
    pages = told(review([*begin(), *made, *second, msgspec.structs.replace(failed, device="GPU:1"), end]))
    assert "raised use on GPU:1 to 600.0 MiB." in pages[Question.EFFICIENTLY], "more than that pool's peak"
    beside = [s.process(0.6, 101), s.hook(1.1, 101), effective(True, pid=101), reading(12.4, MIB, 2 * MIB, pid=101)]
    pages = told(review([*begin(), *made, lower, *beside, msgspec.structs.replace(failed, pid=101), end]))
    assert "raised use of process 101 to 501.0 MiB." in pages[Question.EFFICIENTLY], "the first one's peak is higher"


def test_growth_that_took_the_card_all_the_same() -> None:
    page = told(review([*begin(), effective(True), *steady(12.0, 120 * GIB, 120 * GIB, 130 * GIB)]))
    assert not lacking(page[Question.ALL_TAKEN], "Yes", "130.0 GiB")


def test_what_others_held_and_what_growth_off_reserves_are_not_mixed_up() -> None:
    page = told(review(recording.read(RECORDINGS / "h100-resnet.jsonl").events()))
    assert not lacking(page[Question.FULL_NOT_USED], "13.7 GiB of 79.6 GiB", "this run at most 8.6 GiB")
    assert not lacking(page[Question.GROWTH], "76.4 GiB", "free at the start, 79.2 GiB")


def test_beside_a_limit_growth_off_reserves_the_limit() -> None:
    growth = told(review([*begin(), *limited(True, 4 * GIB), *TWELVE_SECONDS]))[Question.GROWTH]
    assert "all of its 4.0 GiB" in growth and "free at the start" not in growth


def test_of_cudas_own_pool_no_growth_is_told() -> None:
    page = told(review([*begin(), effective(False, allocator="cuda_malloc_async"), reading(3.0, GIB)]))
    assert "Growth was off" not in page[Question.ALL_TAKEN] + page[Question.GROWTH]
    assert "cuda_malloc_async" in page[Question.ALL_TAKEN] and "changes nothing" in page[Question.GROWTH]
    assert "cut short" not in page[Question.EFFICIENTLY]


def test_growth_that_only_a_session_can_have_turned_on() -> None:
    def page(**variables: str) -> str:
        environment = events.Environment(t=1.3, pid=100, variables=variables)
        return told(review([*begin(), environment, effective(True), *TWELVE_SECONDS]))[Question.ALL_TAKEN]

    assert "ConfigProto of a session turned growth on" in page()
    assert "ConfigProto" not in page(TF_FORCE_GPU_ALLOW_GROWTH="true")


def test_how_busy_a_gpu_is_counts_only_while_tensorflow_has_it() -> None:
    end = s.alive(50.0, 900)
    idle = [msgspec.structs.replace(s.device_reading(60.0 + t, {}), utilisation=0) for t in range(200)]
    page = told(review([*begin(), effective(False), *busy({0: 90}, {100: 130 * GIB}, 40), end, *idle]))
    assert "~90 % busy" in page[Question.FULL_NOT_USED]


def test_a_share_that_a_session_takes_is_told_as_its_own() -> None:
    page = told(review(recording.read(RECORDINGS / "settings" / "fraction.jsonl").events()))
    assert not lacking(page[Question.ALL_TAKEN], "14.0 GiB of 140.4 GiB at once", "per_process_gpu_memory_fraction")
    assert "ConfigProto" in page[Question.EFFICIENTLY] and "memory_limit" not in page[Question.EFFICIENTLY]


def test_a_card_that_others_fill_is_told_to_be_full() -> None:
    page = told(review(recording.read(RECORDINGS / "seeds" / "twins.jsonl").events()))
    assert not lacking(page[Question.ALL_TAKEN], "Yes", "not by TensorFlow alone", "980.6 MiB")


def test_a_pool_that_grew_is_not_mixed_with_pinned_memory() -> None:
    grown = [
        events.PoolGrowth(t=4.0, pid=100, device="GPU:0", at=4.0, before=2 * MIB, after=6 * MIB),
        events.PoolGrowth(t=4.1, pid=100, device="HOST:0", at=4.1, before=0, after=2 * MIB),
    ]
    page = told(review([*begin(), effective(True), *grown, *steady(12.0, 5 * MIB, 5 * MIB, 6 * MIB)]))[Question.GROWTH]
    assert "1 time, to 6.0 MiB" in page and "2.0 MiB to 6.0 MiB" in page


def test_the_command_to_try_can_be_pasted() -> None:
    run = msgspec.structs.replace(s.run(), argv=["python", "-c", "import a; b()"])
    started = [run if isinstance(event, events.Run) else event for event in GROWING]
    assert "-- python -c 'import a; b()'" in told(review(started))[Question.EFFICIENTLY]


def test_a_recording_that_lost_its_devices_is_answered_all_the_same() -> None:
    assert list(told(review(event for event in GROWING if not isinstance(event, events.Device))))


def test_without_the_probe_the_pool_is_not_guessed() -> None:
    bare = [*begin(), effective(True), reading(3.0, GIB), s.device_reading(3.5, {100: 2 * GIB})]
    page = told(review(bare))
    assert "2.0 GiB of 140.0 GiB taken, 1.0 GiB in use" in page[Question.FULL_NOT_USED]
    assert "process came to 2.0 GiB" in page[Question.ALL_TAKEN]


def test_one_of_several_runs_is_looked_at_alone() -> None:
    path = RECORDINGS / "h200-settings.jsonl"
    first, newest = review(recording.read(path).events(), 1), review(recording.read(path).events())
    assert "growth was off" in told(first)[Question.ALL_TAKEN] and first.account is not None
    assert heading(newest).startswith("Run 5")
    assert not any(isinstance(held.finding, WholeCard) for held in newest.held)


@pytest.mark.long
def test_a_long_recording_is_looked_through_at_a_coarser_pace() -> None:
    long = [*begin(), effective(True), *steady(2600.0, 900 * MIB, 908 * MIB, 1026 * MIB)]
    assert review(long).held == []


def test_a_run_on_the_cpu_of_a_machine_with_gpus_has_a_limit_too() -> None:
    on_cpu = [effective(None, name="CPU:0"), reading(3.0, 600 * MIB, 1000 * MIB, name="CPU:0")]
    page = told(review([*begin(), *on_cpu]))[Question.EFFICIENTLY]
    assert not lacking(page, "~2000M", "a guess", "twice the peak")


def test_what_was_taken_at_once_is_told_beside_the_limit() -> None:
    def taken(name: str) -> str:
        return told(review(recording.read(RECORDINGS / "seeds" / f"{name}.jsonl").events()))[Question.ALL_TAKEN]

    assert not lacking(taken("beyond-card"), "131.9 GiB of 140.4 GiB at once", "limit of 878.9 GiB")
    assert "a limit of 1.0 GiB and 2.0 GiB" in taken("two-logical"), "both logical devices"


def test_logical_devices_of_one_gpu_are_told_one_by_one() -> None:
    seen = review(recording.read(RECORDINGS / "seeds" / "two-logical.jsonl").events())
    peaks = ("64.0 MiB on GPU:0", "128.0 MiB on GPU:1", "GPU:0 ~129M, GPU:1 ~257M")
    assert not lacking(told(seen)[Question.EFFICIENTLY], *peaks, "guesses")
