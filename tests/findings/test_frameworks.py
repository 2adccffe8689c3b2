"""JAX, PyTorch and CuPy in a run: what their out-of-memory errors mean, and what they take of a card."""

from tests import streams as s
from tests.findings.situations import Found, actions, begin, found, wrote
from tests.streams import GIB, MIB
from tfmemtop import events
from tfmemtop.findings.cause import Key
from tfmemtop.findings.framework_memory import FrameworkFailed
from tfmemtop.findings.judgement import Judged, judged
from tfmemtop.findings.remedy import Action
from tfmemtop.findings.rules import findings

FAILED = events.RunEnd(t=40.0, run=1, exit_code=1, signal=None)


def torch_says(
    requested: str = "4.00 GiB",
    free: str = "1.50 GiB",
    process: str = "78.00 GiB",
    allocated: str = "76.00 GiB",
    cached: str = "512.00 MiB",
    allowed: str = "",
) -> str:
    return (
        f"CUDA out of memory. Tried to allocate {requested}. GPU 0 has a total capacity of 80.00 GiB of which "
        f"{free} is free. Including non-PyTorch memory, this process has {process} memory in use. {allowed}"
        "Of the allocated memory "
        f"{allocated} is allocated by PyTorch, and {cached} is reserved by PyTorch but unallocated."
    )


def raised(message: str, kind: str = "OutOfMemoryError", line: int = 12) -> events.ScriptError:
    return events.ScriptError(t=39.0, pid=100, kind=kind, message=message, file="/home/ada/train.py", line=line)


def failed(message: str, kind: str = "OutOfMemoryError") -> FrameworkFailed:
    return found(begin(), raised(message, kind), FAILED)[FrameworkFailed]


def test_pytorch_is_out_of_memory_on_a_full_card_at_a_line() -> None:
    one = failed(torch_says())
    assert one.cause.key is Key.LIMIT_TOO_SMALL
    assert one.said.headline == (
        "Out of memory: PyTorch at train.py:12 asked for 4.0 GiB. The card is full: of 80.0 GiB, PyTorch had 76.0 GiB "
        "allocated."
    )
    assert actions(one) == [Action.REDUCE_BATCH]


def test_pytorch_had_enough_but_in_pieces() -> None:
    one = failed(torch_says(allocated="60.00 GiB", cached="16.00 GiB"))
    assert (one.cause.key, one.cause.bytes) == (Key.FRAGMENTATION, 16 * GIB)
    assert actions(one)[0] is Action.EXPAND_SEGMENTS


def test_pytorch_reached_the_limit_that_was_set_for_it() -> None:
    one = failed(
        torch_says(allocated="18.00 GiB", free="58.00 GiB", process="19.00 GiB", allowed="20.00 GiB allowed; ")
    )
    assert one.cause.key is Key.LIMIT_TOO_SMALL
    assert "Its limit is 20.0 GiB" in one.said.headline
    assert actions(one)[0] is Action.MORE_FOR_TORCH


def test_other_processes_or_other_libraries_hold_what_pytorch_lacked() -> None:
    others = failed(torch_says(process="40.00 GiB", allocated="38.00 GiB"))
    assert (others.cause.key, others.cause.bytes) == (Key.OTHERS, 38 * GIB + 512 * MIB)
    beside = failed(torch_says(process="78.00 GiB", allocated="2.00 GiB"))
    assert (beside.cause.key, beside.cause.bytes) == (Key.OTHER_FRAMEWORK, 75 * GIB + 512 * MIB)


def test_where_the_message_has_no_figures_no_cause_is_guessed() -> None:
    cupy = failed("Out of memory allocating 1,073,741,824 bytes (allocated so far: 2,147,483,648 bytes).")
    assert cupy.cause.key is Key.UNKNOWN
    assert "CuPy at train.py:12 asked for 1.0 GiB" in cupy.said.headline
    assert "2.0 GiB allocated" in cupy.said.headline


def test_it_is_the_verdict_of_the_run() -> None:
    state = s.fold([*begin(), raised(torch_says()), FAILED])
    cause, finding = judged(state, findings(state), going=False)
    assert isinstance(finding, FrameworkFailed)
    assert (cause.key, cause.text) == (Key.LIMIT_TOO_SMALL, finding.said.headline)


def test_without_the_hook_the_output_tells() -> None:
    traceback = f"Traceback (most recent call last):\r\ntorch.OutOfMemoryError: {torch_says()}\r\n"
    told: Found = found(begin(), wrote(traceback), FAILED)
    assert told[FrameworkFailed].said.headline.startswith("Out of memory: PyTorch asked for 4.0 GiB.")


def test_an_error_that_the_script_survived_or_another_one_is_no_verdict() -> None:
    printed = wrote(f"skipped a batch: {torch_says()}\r\n")
    assert FrameworkFailed not in found(begin(), printed, events.RunEnd(t=40.0, run=1, exit_code=0, signal=None))
    after = found(begin(), printed, raised("no such file", "ValueError"), FAILED)
    assert FrameworkFailed not in after
    assert after[Judged].cause.key is Key.NOT_MEMORY
