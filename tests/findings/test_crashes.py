"""A CPU pool that ran full, and a run that crashed: what is told of it, and with which doubt."""

import signal

import msgspec

from tests import streams as s
from tests.findings.situations import actions, found
from tests.findings.test_exhausted import LARGER, error, told
from tests.streams import MIB
from tfmemtop import events
from tfmemtop.findings.cause import Key
from tfmemtop.findings.proposed_limit import suggested_limit
from tfmemtop.findings.rules.out_of_memory import AllocationFailed


def on_cpu(pool: int, peak: int, limit: int = 300 * MIB) -> list[events.Event]:
    last = s.allocator(5.0, 100, in_use=peak, peak=peak, pool=pool, name="CPU:0")
    return [
        s.session(),
        s.run(),
        s.process(0.3, 100),
        s.alive(1.0, 100),
        s.hook(1.1, 100),
        msgspec.structs.replace(last, limit=limit),
    ]


def test_the_cpu_pools_limit_comes_from_the_environment() -> None:
    failed = error(t=5.05, requested=100 * MIB, name="CPU:0")
    finding = told(on_cpu(300 * MIB, 250 * MIB), failed)
    assert "the environment's limit is 300.0 MiB" in finding.said.text
    assert "56.0 GiB free" in finding.said.text
    assert actions(finding)[0] == LARGER
    second = told(on_cpu(300 * MIB, 250 * MIB), error(t=5.05, requested=100 * MIB, name="CPU:1"))
    assert second.cause == finding.cause, "all logical CPUs share one pool"


def died(number: int | None, code: int | None = None) -> events.RunEnd:
    return events.RunEnd(t=6.0, run=1, exit_code=code, signal=number)


def test_a_crash_near_the_cpu_pools_limit_is_told_with_doubt() -> None:
    for end in (died(signal.SIGSEGV), died(None, 139)):
        finding = found(on_cpu(298 * MIB, 200 * MIB), end)[AllocationFailed]
        assert finding.crashed and finding.anatomy.limit == 300 * MIB
        assert "pool was full" in finding.said.text and actions(finding) == [LARGER]


def test_after_a_crash_with_a_full_pool_no_limit_is_suggested() -> None:
    """The run's limit was too small, even if a user asked the run to stop before it crashed, or after."""
    crash = died(signal.SIGSEGV)
    quit_by_user = [events.Stopping(t=t, run=1, phase=events.StoppingPhase.TERM) for t in (5.5, 6.5)]
    for end in ([crash], [quit_by_user[0], crash], [crash, quit_by_user[1]]):
        assert suggested_limit(s.fold([*on_cpu(300 * MIB, 299 * MIB), *end])) is None
    # A run that was stopped far from its limit shows what it needed so far.
    stopped = suggested_limit(s.fold([*on_cpu(200 * MIB, 150 * MIB), quit_by_user[0], died(signal.SIGTERM)]))
    assert stopped is not None and stopped.is_guess


def test_a_run_that_failed_by_itself_was_not_cut_short() -> None:
    """tfmemtop reports that memory is free again, even if it did not ask the run to end."""
    failed, released = died(None, 1), events.Stopping(t=6.5, run=1, phase=events.StoppingPhase.RELEASED)
    assert suggested_limit(s.fold([*on_cpu(200 * MIB, 150 * MIB), failed])) is None
    assert suggested_limit(s.fold([*on_cpu(200 * MIB, 150 * MIB), failed, released])) is None


def waiting(seconds: int, moves: int = 0) -> list[events.Event]:
    """Return the events of a pool of 260 MiB with a limit of 300 MiB.

    The bytes in use stay the same, or rise by *moves* at each reading.
    """
    still = [
        s.allocator(5.0 + i / 4, 100, 216 * MIB + moves * i, pool=260 * MIB, name="CPU:0") for i in range(4 * seconds)
    ]
    return [*on_cpu(260 * MIB, 216 * MIB), *(msgspec.structs.replace(one, limit=300 * MIB) for one in still)]


def test_what_the_machine_had_free_at_a_crash_does_not_change_afterwards() -> None:
    line = events.AllocatorLine(t=5.9, pid=100, at=5.8, allocator="bfc", size=40 * MIB, operation="AddV2")
    lost = events.HookEnd(t=6.0, pid=100, reason=events.HookEnding.LOST)
    then = [*on_cpu(298 * MIB, 200 * MIB), line, lost, died(signal.SIGSEGV)]
    later = msgspec.structs.replace(s.alive(60.0, 100), host_used=40 * s.GIB)
    assert "56.0 GiB free" in told(then, later).said.text


def test_a_crash_after_tensorflow_waited_for_room_is_told_with_doubt() -> None:
    end = events.RunEnd(t=16.0, run=1, exit_code=None, signal=signal.SIGSEGV)
    finding = found(waiting(10), end)[AllocationFailed]
    assert finding.crashed and finding.anatomy.line is None
    stands = events.Waiting(t=6.0, pid=100, operation=None, file="/home/ada/train.py", line=12)
    stood = found(waiting(10), stands, end)[AllocationFailed]
    assert "train.py:12" in stood.said.headline
    assert AllocationFailed not in found(waiting(10, moves=256), end)
    assert AllocationFailed not in found(waiting(6), end)


def test_the_request_before_a_crash_is_known_by_tensorflows_line() -> None:
    line = events.AllocatorLine(t=5.9, pid=100, at=5.8, allocator="bfc", size=40 * MIB, operation="AddV2")
    scratch = msgspec.structs.replace(line, at=5.85, size=90 * MIB, operation=None, harmless=True)
    anatomy = told(on_cpu(298 * MIB, 200 * MIB), line, scratch, died(signal.SIGSEGV)).anatomy
    assert (anatomy.asked, anatomy.operation, anatomy.scratch) == (40 * MIB, "AddV2", False)
    quiet = told(on_cpu(298 * MIB, 200 * MIB), scratch, died(signal.SIGSEGV))
    assert quiet.anatomy.asked is None and quiet.cause.key is not Key.SCRATCH


def test_a_child_that_died_of_a_request_is_told_while_its_parent_waits_for_it() -> None:
    """A pool of processes waits for ever for what a worker computed that crashed."""
    line = events.AllocatorLine(t=5.9, pid=101, at=5.8, allocator="bfc", size=40 * MIB, operation="AddV2")
    last = msgspec.structs.replace(s.allocator(5.0, 101, 280 * MIB, pool=298 * MIB, name="CPU:0"), limit=300 * MIB)
    child = [s.process(1.2, 101, ppid=100), s.hook(1.3, 101), last, line]
    lost = events.HookEnd(t=6.0, pid=101, reason=events.HookEnding.LOST, dropped=0)
    for rest in ([], [events.RunEnd(t=600.0, run=1, exit_code=None, signal=signal.SIGINT)]):
        anatomy = told(on_cpu(10 * MIB, 5 * MIB), *child, lost, *rest).anatomy
        assert (anatomy.pid, anatomy.asked, anatomy.operation) == (101, 40 * MIB, "AddV2")
    ended = msgspec.structs.replace(lost, reason=events.HookEnding.EXIT)
    later = msgspec.structs.replace(lost, t=60.0)
    assert all(AllocationFailed not in found(on_cpu(10 * MIB, 5 * MIB), *child, end) for end in (ended, later))


def test_an_error_in_other_words_counts_though_the_process_ends_long_after_it() -> None:
    line = events.AllocatorLine(t=5.9, pid=100, at=5.8, allocator="bfc", size=40 * MIB, operation="value")
    words = "Cannot parse tensor from proto"
    ended = events.ScriptError(t=6.0, pid=100, kind="InvalidArgumentError", message=words, file="", line=0, code="")
    late = events.RunEnd(t=36.0, run=1, exit_code=1, signal=None)
    assert told(on_cpu(298 * MIB, 280 * MIB), line, ended, late).anatomy.asked == 40 * MIB
    assert AllocationFailed not in found(on_cpu(298 * MIB, 280 * MIB), ended, late)


def test_a_crash_far_from_the_limit_is_not() -> None:
    assert AllocationFailed not in found(on_cpu(260 * MIB, 200 * MIB), died(signal.SIGSEGV))
    assert AllocationFailed not in found(on_cpu(298 * MIB, 200 * MIB), died(signal.SIGTERM))
