"""A card that other processes hold: what is told of an allocation that failed there, and of a run that ended there."""

import signal

import msgspec
import pytest

from tests import streams as s
from tests.findings.situations import actions, begin, effective, found, reading
from tests.findings.test_exhausted import cause, error, moment
from tests.streams import GIB, MIB
from tfmemtop import events
from tfmemtop.findings.cause import Cause, Key
from tfmemtop.findings.judgement import Judged
from tfmemtop.findings.remedy import Action
from tfmemtop.findings.rules.others import TwoReserveCard
from tfmemtop.findings.rules.out_of_memory import AllocationFailed, NoRoom
from tfmemtop.settings import Settings
from tfmemtop.tensorflow_text import parse_exhausted

NO_BLAS = "No blas support for stream [Op:MatMul]"


def crowded(others: int = 132 * GIB, own_limit: int | None = None) -> list[events.Event]:
    """Return a run whose pool of 10 MiB got what process 900 left of the card: 8.5 MiB are in use."""
    made = effective(own_limit is not None, own_limit)
    if own_limit:
        settled = [events.Settled(events.Setting.MEMORY_LIMIT, [], own_limit)]
        made = msgspec.structs.replace(made, settled=settled)
    held: dict[int, int | None] = {900: others, 100: 7561 * MIB if others > 100 * GIB else GIB}
    return [
        *begin(Settings(memory_limit=own_limit), others=others),
        made,
        s.device_reading(29.5, held),
        reading(29.9, 8704 * 1024, pool=10 * MIB, limit=own_limit or 10 * MIB),
    ]


def ended(*parts: events.Event | list[events.Event], number: int | None = None) -> Cause:
    end = events.RunEnd(t=31.0, run=1, exit_code=None if number else 1, signal=number)
    return found(*parts, events.HookEnd(t=30.1, pid=100, reason=events.HookEnding.LOST, dropped=0), end)[Judged].cause


def raised(message: str) -> events.ScriptError:
    return events.ScriptError(t=30.0, pid=100, kind="InternalError", message=message, file="/home/ada/a.py", line=3)


def test_a_small_pool_beside_a_large_process_is_not_called_fragmented() -> None:
    full = moment(8704 * 1024, 10 * MIB, 700 * 1024)
    told = cause(crowded(), full, error(requested=MIB))
    assert (told.key, told.bytes) == (Key.OTHERS, 132 * GIB)
    assert "Another process (pid 900, other.py) held" in told.text and "10.0 MiB" in told.text
    room = s.device_reading(29.6, {900: 80 * GIB})
    assert cause(crowded(), room, full, error(requested=MIB)).key is Key.FRAGMENTATION, "much of the card was free"
    assert cause(crowded(own_limit=10 * MIB), full, error(requested=MIB)).key is Key.LIMIT_TOO_SMALL
    assert cause(crowded(10 * GIB), full, error(requested=MIB)).key is Key.FRAGMENTATION


def test_a_worker_of_the_same_run_that_holds_the_card_is_no_reason_to_wait() -> None:
    full, asks = moment(8704 * 1024, 10 * MIB, 700 * 1024), error(requested=MIB)
    mine = [*crowded(), s.process(5.0, 900, run=1, command="python -c spawn")]
    told = found(mine, full, asks)[AllocationFailed]
    assert "process of this run (pid 900)" in told.whole_cause.text and actions(told) == [Action.FEWER_ON_CARD]
    growth_off = found(mine, effective(False), s.hook(6.0, 900), effective(False, pid=900), full, asks)
    assert actions(growth_off[AllocationFailed]) == [Action.GROWTH_ON]


def test_two_that_fill_one_card_do_not_explain_another_card() -> None:
    workers = [s.process(0.7, 200, run=1, command="python -c spawn"), s.hook(1.3, 200), effective(False, pid=200)]
    first = s.device_reading(29.5, {100: 70 * GIB, 200: 68 * GIB})
    second = s.device_reading(29.5, {900: 132 * GIB, 100: 7561 * MIB}, index=1)
    made = [effective(False), effective(False, name="GPU:1", uuid="GPU-1")]
    full = moment(8704 * 1024, 10 * MIB, 700 * 1024, name="GPU:1")
    pool = reading(29.9, 8704 * 1024, pool=10 * MIB, limit=10 * MIB, name="GPU:1")
    asks = error(requested=MIB, name="GPU:1")
    seen = found(begin(gpus=2), made, workers, first, second, pool, full, asks)
    assert TwoReserveCard in seen and "pid 900" in seen[AllocationFailed].whole_cause.text


def test_a_growing_pool_that_others_stop_is_told_by_them() -> None:
    told = cause(crowded(own_limit=GIB), error(requested=64 * MIB))
    assert told.key is Key.OTHERS and "16.0 MiB were free" in told.text
    beyond = cause(crowded(own_limit=GIB), error(requested=2 * GIB))
    assert beyond.key is Key.LIMIT_TOO_SMALL, "it would not fit on an empty card either"


@pytest.mark.parametrize("message", [NO_BLAS, "No DNN in stream executor.", "CUDA error: : CUDA_ERROR_UNKNOWN: "])
def test_an_error_of_cuda_on_a_full_card(message: str) -> None:
    told = ended(crowded(), raised(message))
    assert told.key is Key.OTHERS and "pid 900" in told.text
    assert any(message.rstrip(".: ") in line for line in told.evidence)
    assert ended(crowded(10 * GIB), raised(message)).key is Key.NOT_MEMORY, "the card had room"


def test_a_card_that_was_full_only_when_a_wait_began() -> None:
    """TensorFlow looks again only after ten seconds, and CUDA's error is raised then."""
    full = moment(8704 * 1024, 10 * MIB, 700 * 1024)
    free = s.device_reading(29.95, {100: GIB})
    told = ended(crowded(own_limit=GIB), full, free, raised("CUDA_ERROR_INVALID_HANDLE"))
    assert told.key is Key.OTHERS and "pid 900" in told.text and "began to wait" in told.text
    assert ended(crowded(own_limit=GIB), free, raised("CUDA_ERROR_INVALID_HANDLE")).key is Key.NOT_MEMORY
    waiting = found(crowded(own_limit=GIB), full, free)[NoRoom]
    assert waiting.cause.key is Key.OTHERS and "more than 16.0 MiB" in waiting.said.text
    again = [moment(8704 * 1024, 10 * MIB, 700 * 1024, t) for t in (40.0, 50.0)]
    assert found(crowded(own_limit=GIB), full, free, again)[NoRoom].cause.key is not Key.OTHERS, "it has looked again"


def test_an_error_of_the_script_on_a_full_card_is_its_own() -> None:
    assert ended(crowded(), raised("required broadcastable shapes")).key is Key.NOT_MEMORY


def test_a_crash_on_a_full_card() -> None:
    told = ended(crowded(), number=signal.SIGABRT)
    assert told.key is Key.OTHERS and "SIGABRT" in told.evidence[0]
    assert ended(crowded(10 * GIB), number=signal.SIGABRT).key is Key.NOT_MEMORY
    assert ended(crowded(), number=signal.SIGTERM).key is not Key.OTHERS


def test_a_card_that_the_run_itself_has_filled() -> None:
    held = s.device_reading(29.6, {100: 139 * GIB})
    told = ended(crowded(), held, raised(NO_BLAS))
    assert (told.key, told.bytes) == (Key.LIMIT_TOO_SMALL, 139 * GIB + 615 * MIB)
    for other in (ended(crowded(), held, raised("CUDA_ERROR_UNKNOWN")), ended(crowded(), held, number=signal.SIGABRT)):
        assert other.key is Key.NOT_MEMORY, "with growth off, a card is always full"


def test_cuda_cannot_begin_on_a_card_that_another_process_holds() -> None:
    message = "cudaSetDevice() on GPU:0 failed. Status: out of memory"
    failed = events.OutOfMemory(t=30.0, pid=100, message=message, device=parse_exhausted(message).device)
    before = [*begin(gpus=2), s.device_reading(29.5, {7: 138 * GIB, 8: GIB})]
    text = "Another process (pid 7) held 138.0 GiB of the card"
    assert text in cause(before, s.device_reading(29.5, {9: GIB}, index=1), failed).text
    # Which of two full cards it was does not matter.
    assert "(pid 7)" in cause(before, s.device_reading(29.5, {9: 139 * GIB}, index=1), failed).text
    # What a process holds may be unknown.
    assert text in cause(before, s.device_reading(29.6, {7: 138 * GIB, 8: GIB, 12: None}), failed).text
    late = msgspec.structs.replace(before[-1], free=130 * GIB)
    assert cause(before, late, failed).key is not Key.OTHERS, "the figures do not show it"
    plain = events.ScriptError(
        t=30.0, pid=100, kind="RuntimeError", file="/home/ada/a.py", line=3,
        message="Bad StatusOr access: RESOURCE_EXHAUSTED: : CUDA_ERROR_OUT_OF_MEMORY: out of memory",
    )  # fmt: skip
    assert text in cause(before, plain).text
