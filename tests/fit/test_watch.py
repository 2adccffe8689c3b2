"""One try, as its events show it: when it is over, and its outcome."""

import msgspec
import pytest

from tests import streams as s
from tfmemtop import events as ev
from tfmemtop.events import replayed
from tfmemtop.experiments.fit.largest import LargestSearch, Wanted
from tfmemtop.experiments.fit.search import LimitSearch, Result, Trial, Tried, TryOutcome
from tfmemtop.experiments.fit.text import conclusion
from tfmemtop.experiments.fit.watch import UNSEEN_S, Goal, TryWatch

MIB, GIB = s.MIB, 1024 * s.MIB
HALF_A_MINUTE = Goal(seconds=30.0)
COMPLAINT = ev.Output(t=5.0, run=1, text="(GPU_0_bfc) ran out of memory trying to allocate 64.00MiB\r\n")


def hook(pid: int = 100) -> ev.Hook:
    return ev.Hook(t=0.5, pid=pid, ppid=1, argv=["train.py"], python="3.12.0", executable="/bin/python")


def reading(
    t: float, in_use: int = 200, peak: int = 300, made: int | None = None, device: str = "GPU:0"
) -> ev.Allocator:
    read = s.allocator(t, 100, in_use * MIB, peak * MIB, 512 * MIB, name=device)
    return msgspec.structs.replace(read, allocations=made)


def watch(*stream: ev.Event, goal: Goal = HALF_A_MINUTE, first: Tried | None = None) -> TryWatch:
    watch = TryWatch("GPU", goal, first)
    for event in (s.run(t=0.0), hook(), *stream):
        watch.take(event)
    return watch


def steadily(since: float, until: float, a_second: int = 40) -> list[ev.Event]:
    return [reading(since + n / 4, made=n * a_second // 4) for n in range(int((until - since) * 4) + 1)]


def ended(t: float, exit_code: int | None = None, signal: int | None = None) -> ev.RunEnd:
    return ev.RunEnd(t=t, run=1, exit_code=exit_code, signal=signal)


def test_the_seconds_count_from_tensorflows_first_use_of_memory() -> None:
    going = watch(*steadily(20.0, 50.0))
    assert not going.over(49.9)
    assert going.over(50.6)
    going.take(ev.Stopping(t=50.2, run=1, phase=ev.StoppingPhase.TERM, deadline=55.0))
    going.take(ended(50.5, signal=15))
    told = going.outcome(Trial(512 * MIB), 51.0)
    assert (told.passed, told.how.text, told.duration_s) == (True, "passed", 50.2)
    assert (told.peak_in_use, told.pool) == (300 * MIB, 512 * MIB)


def test_memory_of_another_kind_does_not_count() -> None:
    going = watch(reading(1.0, device="CPU:0"), reading(1.0, device="HOST:0"))
    assert not going.over(UNSEEN_S - 1)
    assert going.over(UNSEEN_S + 1)
    told = going.outcome(Trial(None), UNSEEN_S + 1)
    assert (told.passed, told.peak_in_use) == (False, None)
    assert told.how.text == "no use of GPU memory by TensorFlow was seen"


def test_out_of_memory_ends_a_try_at_once() -> None:
    going = watch(*steadily(1.0, 5.0))
    assert not going.over(5.0)
    going.take(ev.OutOfMemory(t=5.1, pid=100, message="OOM", requested=100 * MIB))
    assert going.over(5.1)
    told = going.outcome(Trial(512 * MIB), 5.2)
    assert (told.passed, told.how.text) == (False, "out of memory, asking for 100.0 MiB")


def test_a_try_that_stands_still_is_given_the_time_tensorflow_takes_to_fail() -> None:
    first = Tried(limit=None, how=TryOutcome(Result.REACHED), duration_s=30.0)
    stuck = watch(*steadily(0.0, 25.0), first=first)
    assert not stuck.over(34.0)
    assert stuck.over(43.0)
    assert watch(*steadily(0.0, 29.9), first=first).over(30.6)


def test_a_try_is_not_over_while_an_allocation_may_be_waiting_whatever_else_goes_on() -> None:
    busy = watch(*steadily(0.0, 29.0))
    busy.take(ev.MemoryMap(t=29.1, pid=100, device="GPU:0", moment=ev.MapMoment.OUT_OF_MEMORY))
    for event in steadily(29.2, 41.0):
        busy.take(event)
    assert not busy.over(41.0)
    assert busy.over(41.2)
    for n in range(10):
        busy.take(ev.MemoryMap(t=41.0 + n * 2, pid=100, device="GPU:0", moment=ev.MapMoment.OUT_OF_MEMORY))
    assert busy.over(60.1)  # it does not wait for ever


@pytest.mark.parametrize(
    ("end", "complained", "said"),
    [
        (ended(9.0, exit_code=3), False, "ended with exit code 3"),
        (ended(9.0, exit_code=1), True, "ended with exit code 1, out of memory"),
        (ended(9.0, exit_code=139), False, "ended with exit code 139 (SIGSEGV)"),
        (ended(9.0, signal=11), True, "ended by SIGSEGV, out of memory"),
    ],
)
def test_how_a_try_failed_is_said(end: ev.RunEnd, complained: bool, said: str) -> None:
    going = watch(*steadily(1.0, 9.0), *[COMPLAINT] * complained, end)
    assert going.over(9.0)
    told = going.outcome(Trial(None), 9.5)
    assert (told.passed, told.how.text, told.duration_s) == (False, said, 9.0)


@pytest.mark.parametrize(
    ("limit", "said"),
    [
        (512, "passed: it ran to its end"),
        (None, "passed: it ran to its end"),  # an unknown limit is taken to be the requested one
        (4096, "the limit had no effect: TensorFlow's pool had a limit of 4.0 GiB"),
    ],
)
def test_a_try_proves_nothing_if_no_pool_had_its_limit(limit: int | None, said: str) -> None:
    bytes_ = None if limit is None else limit * MIB
    readings = [msgspec.structs.replace(one, limit=bytes_) for one in (reading(1.0), reading(1.0, device="GPU:1"))]
    told = watch(*readings, ended(9.0, exit_code=0)).outcome(Trial(512 * MIB), 9.5)
    assert told.how.text == said and told.how.proves is told.passed
    failed = watch(*readings, ended(9.0, exit_code=1)).outcome(Trial(512 * MIB), 9.5)
    assert failed.how.proves, "what fails under a larger limit fails"


def test_a_try_that_ran_out_of_memory_predicts_no_limit() -> None:
    """Only its allocations up to the failure were replayed. Those that would have followed need more."""
    present = ev.SettingReplayed(True, True, None, replayed.Outcome(True, 0, 300 * MIB, GIB, GIB, 5, 0, 10))
    least = [ev.SmallestLimits(True, True, 310 * MIB, 305 * MIB)]
    known = ev.Replayed(t=5.0, pid=100, device="GPU:0", present=present, smallest=least)
    told = watch(reading(1.0), known, ended(9.0, exit_code=0)).outcome(Trial(None), 9.5)
    assert told.surely == 310 * MIB
    ran_out = ev.OutOfMemory(t=5.1, pid=100, message="OOM", device="GPU:0", requested=60 * MIB)
    told = watch(reading(1.0), known, ran_out).outcome(Trial(None), 9.5)
    search = LimitSearch(tries=8)
    search.tell(told)
    assert len(conclusion(search, "", None)) == 1


def test_what_runs_out_of_a_smaller_pool_proves_nothing_of_the_limit() -> None:
    """The script sets a limit of its own, less than ``--to``."""
    readings = [msgspec.structs.replace(reading(1.0), limit=100 * MIB)]
    ran_out = ev.OutOfMemory(t=5.1, pid=100, message="OOM", device="GPU:0", requested=60 * MIB)
    for last in ran_out, ended(9.0, exit_code=1):
        told = watch(*readings, COMPLAINT, last).outcome(Trial(1024 * MIB), 9.5)
        search = LimitSearch(tries=8, largest=1024 * MIB)
        search.tell(told)
        assert (search.next(), search.unproved) == (None, told)
        first, second, _ = conclusion(search, "", None)
        assert "1.0 GiB proves nothing" in first and "100.0 MiB" in second
    asked = watch(*readings, ran_out).outcome(Trial(100 * MIB), 9.5)
    assert asked.how.result is Result.OUT_OF_MEMORY
    crashed = watch(*readings, ended(9.0, exit_code=1)).outcome(Trial(1024 * MIB), 9.5)
    assert crashed.how.result is Result.ENDED, "not for want of memory, as far as is known"


def test_a_script_that_used_the_cpu_proves_nothing_of_the_gpu() -> None:
    going = watch(reading(1.0, device="CPU:0"), ended(9.0, exit_code=0))
    told = going.outcome(Trial(512 * MIB, 64), 9.5)
    assert (told.passed, told.how.proves) == (False, False)
    search = LargestSearch(Wanted("batch", 1, 4096), 8, 512 * MIB)
    search.tell(told)
    assert (search.next(), search.found, search.fails, search.settled) == (None, None, None, False)
    first, second, third = conclusion(search, "", None)
    assert "batch=64 proves nothing" in first and "GPU memory" in second and "--gpus none" in third


def test_steps_are_those_of_the_busiest_function() -> None:
    def functions(t: float, calls: int) -> ev.Functions:
        busiest = ev.Traced("train", calls, 1, "train.py", 7, steps=10)
        return ev.Functions(t=t, pid=100, functions=[busiest, ev.Traced("evaluate", 3, 1, "train.py", 9)])

    going = watch(*steadily(0.0, 1.0), goal=Goal(steps=500))
    for second in range(1, 6):
        assert not going.over(float(second))
        going.take(functions(float(second), second * 10))
    assert not going.over(5.1)  # the last step may be waiting for memory
    assert going.over(5.6)
    told = going.outcome(Trial(None), 5.0)
    assert told.passed
    assert told.steps_per_s == 100.0


def test_a_try_much_slower_than_the_first_fails() -> None:
    first = Tried(limit=None, how=TryOutcome(Result.REACHED), duration_s=10.0)
    slow = watch(*steadily(0.0, 1.0), goal=Goal(steps=500), first=first)
    slow.take(ev.Functions(t=2.0, pid=100, functions=[ev.Traced("train", 37, 1, "train.py", 7)]))
    assert not slow.over(30.0)
    assert slow.over(60.0)
    told = slow.outcome(Trial(512 * MIB), 60.0)
    assert not told.passed
    assert told.how.text.startswith("too slow: 37 steps")


def test_a_script_that_the_hook_cannot_get_into_is_not_waited_for() -> None:
    absence = ev.HookAbsence(ev.Absence.ISOLATED)
    process = ev.Process(
        t=1.0, pid=100, ppid=1, user="ada", command=["python", "-I"], started=1.0, run=1, hook_absence=absence
    )
    going = TryWatch("GPU", HALF_A_MINUTE)
    going.take(process)
    assert going.hook_absence == absence
    assert going.over(1.0)
