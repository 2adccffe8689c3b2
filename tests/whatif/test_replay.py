"""The replay of a real training: it equals what its allocator measured. It is done in order, by thread, and under
every setting.
"""

from pathlib import Path

import pytest

from tests.whatif.traced import Measured
from tfmemtop.events import Replayed, SettingReplayed, SmallestLimits, Trace, recording
from tfmemtop.events.damage import Damaged
from tfmemtop.experiments.whatif.course import Course, course_of, runs_of
from tfmemtop.experiments.whatif.replayer import Follows, NotReplayed, Question, Runs, run
from tfmemtop.experiments.whatif.settings import at_least
from tfmemtop.experiments.whatif.worker import replayed
from tfmemtop.units import MIB

pytestmark = pytest.mark.tensorflow

RECORDINGS = Path(__file__).parents[1] / "recordings"
LIMIT = 4096 * MIB
PRESENT = Question(growth=True, collects=False, limit=LIMIT)


@pytest.fixture(scope="module")
def told(course: Course, program: Path) -> Replayed:
    return replayed(course, program, PRESENT)


def test_the_present_setting_replayed_is_what_was_measured_to_the_byte(told: Replayed, measured: Measured) -> None:
    assert told.present is not None and told.present.fits
    found = told.present.in_order
    replay = (found.in_use, found.peak, found.pool, found.peak_pool, found.allocations, found.largest_free)
    assert replay == (
        *(measured.in_use, measured.peak, measured.pool, measured.peak_pool),
        *(measured.allocations, measured.largest_free),
    )


def test_the_smallest_limits_are_where_the_replay_begins_to_pass(told: Replayed, course: Course, program: Path) -> None:
    least = told.least(growth=True)
    assert least is not None and told.least(growth=False) is None  # a pool of the CPU always grows
    assert course.requested // 2 < least.at_least <= least.surely < least.at_least * 2
    limits = [least.at_least - MIB, *range(least.at_least, least.surely + MIB, MIB)]
    asked = [Question(True, False, limit) for limit in limits]
    answers = run(program, course.events, course.steps, asked, runs=runs_of(course))
    below, *others = (answer for answer in answers if isinstance(answer, SettingReplayed))
    lowest = next(answer for answer in others if answer.fits is not False)
    between, surely = others[-2:]
    assert 3 <= others.index(lowest) <= 8, "real runs pass a little below it"
    # What does not fit in the recorded order passes where requests wait, or where threads take turns otherwise.
    assert below.fits is False and lowest.fits is None
    assert not between.in_order.fits and surely.in_order.fits


def test_threads_that_take_turns_otherwise_are_reckoned_with(program: Path) -> None:
    """One thread keeps a small tensor. In another run it lies behind the large tensor of the other thread.

    There it divides the memory that the large tensor frees.
    """
    kept, large, larger = (2, MIB), (0, 8 * MIB), (0, 16 * MIB)
    brief = [event for number in range(2, 30) for event in ((0, 256), (1, number))]
    events = [kept, large, *brief, (1, 1), larger]
    ends, row = run(program, events, [], [Question(False, True, smallest=True), Question(False, True, 20 * MIB)])
    assert isinstance(ends, SmallestLimits) and isinstance(row, SettingReplayed)
    assert ends.at_least == 17 * MIB and ends.surely > 20 * MIB
    assert row.fits is None
    assert row.in_order.failed == events.index(larger), "the event has its number in the recorded order"


def test_a_free_that_comes_before_its_allocation_is_no_lack_of_room(program: Path) -> None:
    """The allocation waits for the run of a function, longer than two of these short steps."""
    made = [(2, 0), (2, 0), (2, 0), (3, 1), *((2 * thread, 0) for thread in (0, 6, 0, 4, 0, 4))]
    events = [*made, (1, 7), (6, 0), (0, 0), (6, 0), (4, 0), (3, 11)]
    runs = Runs([0, 0, 0, -1, -1, -1, -1, -1, 1, 2, -1, -1, -1], [Follows(2, 10, 1, -1)])
    events = [(who, value if who & 1 else 1000) for who, value in events]
    (row,) = run(program, events, [0, 5, 6, 7, 8, 9, 11, 12, 13], [Question(True, False, 64 * MIB)], runs=runs)
    assert isinstance(row, SettingReplayed) and row.fits


def fits(program: Path, events: list[tuple[int, int]], limit: int, runs: Runs) -> bool:
    """Return whether *events* fit into *limit* MiB where allocations may wait."""
    (answer,) = run(program, events, [], [Question(False, False, limit * MIB)], runs=runs)
    assert isinstance(answer, SettingReplayed)
    return answer.fits is not False


def test_a_thread_that_has_called_a_function_frees_its_input_only_after_the_run(program: Path) -> None:
    """Thread 0 makes a batch of 8 MiB, and calls a function, which allocates 16 MiB in thread 1."""
    events = [(0, 8 * MIB), (2, 16 * MIB), (1, 0)]
    called = Runs(of=[-1, 0], order=[Follows(run=0, event=0, before=-1, after=2)])
    assert fits(program, events, 20, Runs()), "thread 0 frees the batch while thread 1 waits for room"
    assert not fits(program, events, 20, called)
    assert fits(program, events, 24, called)


def test_a_thread_of_its_own_still_makes_room_for_a_function(program: Path) -> None:
    """Thread 2, which prepares batches, frees 8 MiB meanwhile."""
    events = [(0, MIB), (4, 8 * MIB), (2, 16 * MIB), (5, 1), (1, 0)]
    assert fits(program, events, 20, Runs(of=[-1, -1, 0], order=[Follows(run=0, event=0, before=-1, after=4)]))


def test_a_run_begins_when_the_run_before_has_ended(program: Path) -> None:
    """Of two runs, the first allocates 8 MiB in thread 0 and 12 MiB in thread 1. The second frees the 8 MiB."""
    events = [(0, 8 * MIB), (2, 12 * MIB), (0, MIB), (1, 2), (1, 0)]
    one_after_the_other = Runs([0, 0, 1], [Follows(run=1, event=-1, before=0, after=-1)])
    assert fits(program, events, 16, Runs([0, 0, 1])), "nothing is known of the order of the runs"
    assert not fits(program, events, 16, one_after_the_other)
    assert fits(program, events, 32, one_after_the_other)


@pytest.mark.parametrize(("growth", "passed"), [(True, 261 * MIB), (False, 225 * MIB)])
def test_what_really_passed_on_a_gpu_is_near_the_lower_end(program: Path, growth: bool, passed: int) -> None:
    """Batches of many sizes, on an H100: under a limit of *passed* the script passed, and 1 MiB less was too little."""
    recorded = recording.read(RECORDINGS / "callers" / "h100-shapes.jsonl").events()
    course = course_of([event for event in recorded if isinstance(event, Trace) and event.device == "GPU:0"])
    asked = [Question(growth, True, smallest=True)]
    (ends,) = run(program, course.events, course.steps, asked, course.scratch, runs_of(course))
    (without,) = run(program, course.events, course.steps, asked, course.scratch)
    assert isinstance(ends, SmallestLimits) and isinstance(without, SmallestLimits)
    assert at_least(ends) <= passed <= min(1.03 * at_least(ends), ends.surely)
    assert passed > 1.1 * at_least(without), "a step's input was freed while the step waited for room"


def test_scratch_memory_is_needed_surely_but_not_at_least(program: Path) -> None:
    """A convolution keeps 8 MiB, and tries to get 16 MiB of scratch memory while it runs."""
    output, scratch, later = (0, 8 * MIB), (0, 16 * MIB), (0, 8 * MIB)
    events = [output, scratch, (1, 1), later]
    smallest, row = Question(False, False, smallest=True), Question(False, False, 18 * MIB)
    strict, _ = run(program, events, [], [smallest, row])
    ends, fits = run(program, events, [], [smallest, row], scratch=[1])
    (untaken,) = run(program, events, [], [smallest], scratch=[1], untaken=[1])
    sizes = (24, 24, 24), (24, 16, 24), (24, 16, 16)
    wanted = [SmallestLimits(False, False, *(size * MIB for size in each)) for each in sizes]
    assert [strict, ends, untaken] == wanted
    assert isinstance(fits, SettingReplayed) and fits.fits is None and fits.waiting is not None
    assert (fits.in_order.failed, fits.in_order.asked, fits.waiting.waits) == (1, 16 * MIB, 0)


def test_no_scratch_memory_at_all_may_be_better_than_some(program: Path) -> None:
    """Scratch memory that is kept for a while takes the room of the next allocation."""
    events = [(0, 8 * MIB), (0, 6 * MIB), (0, 8 * MIB), (1, 1), (1, 2)]
    (ends,) = run(program, events, [], [Question(False, False, smallest=True)], scratch=[1])
    assert ends == SmallestLimits(False, False, 22 * MIB, 16 * MIB, 22 * MIB)


def test_a_limit_that_is_too_small_names_the_operation_and_what_it_lacked(told: Replayed) -> None:
    failing = [row for row in told.rows if row.fits is False]
    assert failing and all(row.limit is not None and row.outcome.pool <= row.limit for row in failing)
    outcome = failing[0].outcome
    assert outcome.operation.startswith("StatefulPartitionedCall/") and outcome.asked > outcome.lacking > 0


def test_with_growth_off_the_pool_is_the_limit_however_large_it_is(
    course: Course, program: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The bookkeeping for the largest pool would take 4 GiB.
    monkeypatch.setattr("tfmemtop.experiments.whatif.replayer._memory", lambda: 512 * MIB)
    sizes = (400 * MIB, 4096 * MIB, 140_829 * MIB)
    answers = run(program, course.events, course.steps, [Question(False, True, size) for size in sizes])
    pools = [answer.in_order for answer in answers if isinstance(answer, SettingReplayed)]
    assert [pool.pool for pool in pools] == list(sizes) and all(pool.growths == 1 for pool in pools)
    # The largest pool is not laid out completely. Its bytes in use are the same as in the others, and its free memory
    # differs only by the size of the pool.
    assert len({pool.in_use for pool in pools}) == 1
    assert pools[2].largest_free - pools[1].largest_free == pools[2].pool - pools[1].pool


def test_what_is_no_trace_is_refused(program: Path) -> None:
    with pytest.raises(NotReplayed, match="ended"):
        run(program, [(1, 5)], [], [Question(True, False)])
    missing = [Follows(1, -1, -1, -1), Follows(0, 9, -1, -1), Follows(0, -1, 7, -1), Follows(0, -1, -1, -2)]
    impossible = [Follows(0, 0, -1, -1), Follows(0, -1, 0, -1), Follows(0, -1, -1, 0)]
    for order in (*missing, *impossible):
        with pytest.raises(NotReplayed, match="ended"):
            run(program, [(0, 5)], [], [Question(True, False)], runs=Runs([0], [order]))
    with pytest.raises(NotReplayed, match="not_started"):
        run(program.with_name("gone"), [], [], [])
    with pytest.raises(Damaged, match="incomplete"):
        course_of([])
