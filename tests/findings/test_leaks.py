"""Memory that rises until it runs out: what is called a leak, and what is not, in real runs and at each threshold."""

import signal
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests import windows as w
from tests.findings.situations import begin, effective, found, reading
from tests.findings.test_exhausted import error
from tests.findings.test_keepers import look
from tests.streams import GIB, MIB, fold
from tfmemtop import events
from tfmemtop.events import recording
from tfmemtop.findings.cause import Cause, Key
from tfmemtop.findings.judgement import findings
from tfmemtop.findings.names import tensor_text
from tfmemtop.findings.proposed_limit import suggested_limit
from tfmemtop.findings.remedy import Action
from tfmemtop.findings.review import RunReview, review, verdict, weighed
from tfmemtop.findings.rising import retained, rises
from tfmemtop.findings.rules.leaks import Leak, WindowWishes
from tfmemtop.findings.rules.out_of_memory import AllocationFailed, NoRoom
from tfmemtop.findings.scene import MANY

RECORDINGS = Path(__file__).parents[1] / "recordings" / "leaks"


@cache
def seen(name: str) -> RunReview:
    return review(recording.read(RECORDINGS / f"{name}.jsonl").events())


def said(name: str) -> dict[type[object], str]:
    return {type(held.finding): held.finding.said.text for held in seen(name).held}


def cause_of(name: str) -> Cause:
    found = verdict(seen(name))
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("name", "holder", "count", "each"),
    [
        ("leak", "losses", 1022, MIB),
        # On a GPU. The second operation began to wait when the first gave up, 10 s after the rise had ended.
        ("h100-leak", "trainer.history", 993, 2 * MIB),
        ("leak-that-crashes", "kept", 396, MIB),  # TensorFlow crashed in place of an error
    ],
)
def test_who_kept_what_filled_the_pool_is_named(name: str, holder: str, count: int, each: int) -> None:
    cause = cause_of(name)
    assert (cause.key, cause.holder, cause.count) == (Key.TENSORS_KEPT, holder, count)
    assert cause.bytes is not None and cause.bytes == pytest.approx(count * each, rel=0.01)
    assert cause.remedies == (Action.KEEP_ARRAYS,)
    assert suggested_limit(seen(name).state) is None, "no limit is enough"
    told = {type(held.finding): held.finding.said.text for held in weighed(seen(name))}
    assert Leak not in told and NoRoom not in told and holder in told[AllocationFailed], "told once"


def test_a_leak_is_told_though_somebody_ended_the_run() -> None:
    told = list(recording.read(RECORDINGS / "leak.jsonl").events())
    failed = next(at for at, one in enumerate(told) if isinstance(one, events.OutOfMemory))
    ended = events.RunEnd(t=told[failed - 1].t + 20, run=1, exit_code=None, signal=signal.SIGTERM)
    cause = verdict(review([*told[:failed], ended]))
    assert cause is not None and (cause.key, cause.holder) == (Key.TENSORS_KEPT, "losses")


def test_while_a_request_waits_for_room_the_verdict_is_that_the_run_waits() -> None:
    told = list(recording.read(RECORDINGS / "leak.jsonl").events())
    failed = next(at for at, one in enumerate(told) if isinstance(one, events.OutOfMemory))
    cause = verdict(review(told[:failed], alive=True))
    assert cause is not None and cause.text.startswith("The run waits for memory") and "`losses`" in cause.text


def test_a_request_that_has_just_found_no_room_is_told_without_advice_until_the_run_is_held_up() -> None:
    told = [one for one in recording.read(RECORDINGS / "batch-halved.jsonl").events() if one.t is not None]
    maps = [one for one in told if isinstance(one, events.MemoryMap)]
    short = next(one.t for one in maps if one.moment is events.MapMoment.OUT_OF_MEMORY)

    def after(seconds: float) -> Cause:
        cause = verdict(review((one for one in told if one.t <= short + seconds), alive=True))
        assert cause is not None
        return cause

    assert "found no room" in after(0.3).text and not after(0.3).remedies
    assert after(4.0).text.startswith("The run waits for memory") and after(4.0).remedies


def test_what_was_in_use_at_an_earlier_look_is_told_as_of_then() -> None:
    told = [one for one in recording.read(RECORDINGS / "h100-leak.jsonl").events() if one.t is not None]

    def text(seconds: float) -> str:
        """Return the verdict so many seconds after the pool had become full and Python was searched."""
        looked = next(one.t for one in told if isinstance(one, events.Census) and one.alike)
        cause = verdict(review((one for one in told if one.t <= looked + seconds), alive=True))
        return cause.text if cause else ""

    assert "`trainer.history`" in text(0.5) and " in use. " in text(0.5)
    assert "`trainer.history`" in text(4.5) and " in use 4 s earlier. " in text(4.5)


def test_a_store_that_has_filled_up_is_no_leak() -> None:
    """It holds the last 500 observations, and was full after a third of the run."""
    cause = cause_of("h100-filled")
    assert cause.key is Key.NONE and suggested_limit(seen("h100-filled").state) is not None


def test_a_leak_beside_a_model_is_found_though_no_global_holds_it() -> None:
    cause = cause_of("leak-beside-model")
    assert cause.key is Key.GROWTH and cause.keeps_growing and "KiB a step" in cause.text and not cause.holder


@pytest.mark.parametrize("name", ["one-large-request", "growing-batch", "growing-batch-eager", "too-large-a-model"])
def test_what_runs_out_otherwise_is_no_leak(name: str) -> None:
    assert AllocationFailed in said(name) and Leak not in said(name) and not cause_of(name).keeps_growing


def steps(count: int = 300, a_second: int = 4) -> list[events.Event]:
    return [
        events.Functions(t=3.0 + i / 10, pid=100, functions=[events.Traced("train", a_second * i // 10, 1, "t.py", 12)])
        for i in range(count)
    ]


def until_full(step: int, base: int = GIB, seconds: int = 30) -> list[events.Event]:
    """Return readings up to the failure: the bytes in use rise by *step* a second.

    Every other reading is from the peak of a training step.
    """
    sizes = [base + step * i // 10 for i in range(seconds * 10)]
    return [
        reading(3.0 + i / 10, size + 200 * MIB * (i % 2), pool=2 * GIB, limit=2 * GIB) for i, size in enumerate(sizes)
    ]


def failure(requested: int = 250 * MIB) -> events.OutOfMemory:
    return error(t=43.0, requested=requested)


def full_map(size: int, count: int) -> events.MemoryMap:
    sizes = [0] * (size.bit_length() - 1) + [count]
    return events.MemoryMap(
        t=33.5,
        pid=100,
        device="GPU:0",
        moment=events.MapMoment.OUT_OF_MEMORY,
        pool=2 * GIB,
        in_use=1990 * MIB,
        sizes=sizes,
    )


def cause(*parts: Iterable[events.Event] | events.Event) -> Cause:
    return found(*parts)[AllocationFailed].cause


def is_leak(*parts: Iterable[events.Event] | events.Event) -> bool:
    return cause(*parts).key is Key.GROWTH


RAN_OUT = [*begin(), effective(True, 2 * GIB), *steps(), *until_full(25 * MIB)]


def test_a_leak_is_what_rose_over_many_steps() -> None:
    assert is_leak(RAN_OUT, failure()) and "6.3 MiB a step" in cause(RAN_OUT, failure()).text
    assert is_leak(RAN_OUT, full_map(MIB, 900), failure())
    # Without steps, that may be a model that is being loaded, unless much of it is alike and has no operation.
    unstepped = [event for event in RAN_OUT if not isinstance(event, events.Functions)]
    assert not is_leak(unstepped, failure())
    alike = w.Window(number=1)
    for _ in range(200):
        alike.allocate(4 * MIB, "")
    unseen = cause(unstepped, alike.done(t=32.0), failure())
    assert unseen.key is Key.GROWTH and "not searched in time" in unseen.evidence[0]
    # Or it is known who kept most of what was in use long before.
    kept = events.Alike("answers", 1000, [512, 512], "float32", "GPU:0", 1000 * MIB, "tensors", 1000)
    earlier = replace(look(kept), t=12.0)
    known = cause(sorted([*RAN_OUT, earlier], key=lambda event: event.t or 0.0), failure())
    assert known.holder == "answers" and "1,000 tensors" in known.text and " earlier" in known.text
    assert "filled the pool" in known.evidence[-1]
    # By this map, the rise would be a few tensors that are replaced by ever larger ones.
    assert not is_leak(RAN_OUT, full_map(512 * MIB, 3), failure())
    # Nor would the rise be of who is not known, where most of what is in use are an optimizer's slots.
    slots = w.Window(number=1)
    slots.allocate(1400 * MIB, "adam/dense_kernel_momentum/Initializer/zeros")
    assert not is_leak(RAN_OUT, slots.done(t=32.0), failure())
    # A wait long before, at the same line of the loop, does not date the failure.
    waited = events.Waiting(t=8.0, pid=100, operation=None, file="/a/train.py", line=12)
    ended = events.ScriptError(t=43.1, pid=100, kind="OOM", message="OOM", file="/a/train.py", line=12)
    assert is_leak(RAN_OUT, waited, failure(), ended)
    # Without the rise, there would have been no room either.
    assert not is_leak(RAN_OUT, failure(requested=2 * GIB))
    # A rise that ended long before is not what filled the pool.
    flat = [reading(33.0 + i / 10, 1750 * MIB, pool=2 * GIB, limit=2 * GIB) for i in range(300)]
    assert not is_leak(RAN_OUT, flat, error(t=73.0, requested=300 * MIB))
    # Unless others have waited in between, each for ten seconds.
    lines = [events.AllocatorLine(t=t, pid=100, at=t, allocator="bfc", size=300 * MIB) for t in (43.1, 53.1, 63.1)]
    assert is_leak(RAN_OUT, flat, *lines, error(t=73.0, requested=300 * MIB))


def test_a_leak_of_few_tensors_without_a_path_is_told_with_them() -> None:
    def found_with(count: int, tapes: int = 0) -> Cause:
        held = events.Alike("", count, [32, 64], "float32", "GPU:0", 500 * MIB)
        return cause(RAN_OUT, replace(look(held, tapes=tapes), t=34.0), failure())

    few = found_with(MANY)
    assert few.key is Key.TENSORS_KEPT and "8 tensors of [32,64]" in few.text and "6.3 MiB a step" in few.text
    assert found_with(MANY - 1).key is Key.GROWTH and found_with(MANY, tapes=1).key is Key.GROWTH


def test_what_a_step_gives_back_is_not_retained() -> None:
    assert retained([1, 5, 2, 6, 3]) == [1, 2, 2, 3, 3]
    saw = [10 * (i % 5) for i in range(50)]
    assert not rises(retained(saw)) and rises(retained([size + 10 * i for i, size in enumerate(saw)]))


def leaking_windows(
    count: int, gap_s: float = 60.0, rise: int = 15, operation: str = "sequential_1/up_1/Relu"
) -> list[events.Holders]:
    """Return windows in which each step keeps a result of *operation*. Between two, *rise* steps are not recorded."""
    made = []
    for number in range(count):
        window = w.Window(number=number + 1)
        for _ in range(6):
            window.has(w.SIZE)
        for _ in range(rise * number):
            window.has(2 * MIB + 512)
        x = window.allocate(MIB, f"{w.CALL}IteratorGetNext")
        made_by = f"{w.CALL}{operation}" if operation else ""
        window.allocate(2 * MIB + 512, made_by, shape=[1024, 512], dtype="float32")
        window.free(x)
        made.append(window.done(t=10.0 + gap_s * number))
    return made


def packed(addresses: Iterable[int]) -> bytes:
    """Return *addresses* as a census has them."""
    return b"".join(address.to_bytes(8, "little") for address in addresses)


def test_windows_name_what_a_leak_consists_of() -> None:
    rising = [reading(3.0 + i, 700 * MIB + i * MIB // 2, pool=8 * GIB) for i in range(240)]
    line = events.OperationLine("sequential_1/up_1/Relu", "/home/ada/train.py", 31, "h = up(x)")
    lines = events.OperationLines(t=9.0, pid=100, lines=[line])
    size, count = 2 * MIB + 512, 45
    addresses = range(w.BASE + 6 * w.SIZE, w.BASE + 6 * w.SIZE + count * size, size)
    kept = events.Alike("kept", count, [1024, 512], "float32", "GPU:0", count * size, packed=packed(addresses))
    look = events.Census(t=191.0, pid=100, kinds={}, largest=[], tensors=count, alike=[kept])
    stream = sorted([*rising, *leaking_windows(4), lines, look], key=lambda event: event.t)
    leak = found(begin(), effective(True), stream)[Leak]
    assert leak.grown is not None and (leak.grown.count, leak.grown.windows) == (45, 4)
    named = ("sequential_1/up_1/Relu", "layer up (train.py:31)", "45 tensors of 2.0 MiB", "as `kept`")
    assert all(part in leak.said.text for part in (*named, tensor_text([1024, 512], "float32")))
    one = events.Alike("x", 1, [1024, 512], "float32", "GPU:0", size, packed=packed(addresses[:1]))
    other = sorted([*rising, *leaking_windows(4), lines, replace(look, alike=[one])], key=lambda event: event.t)
    leak = found(begin(), effective(True), other)[Leak]
    assert leak.grown is not None and not leak.grown.python_name, "that holds one of them"
    # What the graph has once is not what rises, though it has the same size and was seen while it was made.
    constant = leaking_windows(1, operation="step/truediv/_0__cf__0") + leaking_windows(4, operation="")[1:]
    leak = found(begin(), effective(True), sorted([*rising, *constant], key=lambda event: event.t))[Leak]
    assert leak.grown is not None and leak.grown.count == 45 and not leak.grown.operation
    # Windows that are as far apart and hold the same show no leak.
    steady = sorted([*rising, *leaking_windows(4, rise=0)], key=lambda event: event.t)
    assert found(begin(), effective(True), steady)[Leak].grown is None


def test_a_leak_that_is_small_beside_the_model_is_found_after_four_minutes() -> None:
    """The model is made in the first seconds, in one jump. After it, the use rises by a leak, or stays the same."""
    start = [reading(3.0 + i, i * 256 * MIB, pool=2 * GIB) for i in range(5)]
    rising = [reading(8.0 + i, GIB + i * MIB // 3, pool=2 * GIB) for i in range(240)]
    leak = found(begin(), effective(True), [*start, *rising])[Leak]
    assert leak.span_s >= 170 and 60 * leak.rise == pytest.approx(20 * MIB, rel=0.1)
    steady = [reading(8.0 + i, GIB + i % 7 * MIB, pool=2 * GIB) for i in range(240)]
    assert Leak not in found(begin(), effective(True), [*start, *steady])


def test_a_leak_that_no_windows_explain_asks_for_some() -> None:
    """Windows are requested until two of them show what grows.

    No window is requested of a process that has none of its start, because it cannot record any.
    """
    rise = [reading(3.0 + i, GIB + i * MIB, pool=2 * GIB) for i in range(240)]
    looked = events.Census(t=241.0, pid=100, kinds={}, largest=[], tensors=0)
    base = [*begin(), effective(True), *rise, looked]
    start = [w.step(1).done(t=4.0, opened=events.Opened.START)]

    def asked(*windows: events.Holders) -> list[int]:
        stream = sorted([*base, *windows], key=lambda event: event.t)
        assert any(isinstance(finding, Leak) for finding in findings(fold(stream)))
        wishes = WindowWishes()
        first = wishes.due(stream)
        assert wishes.due([]) == [], "not twice at once"
        return first

    assert asked(*start) == [100]
    assert asked() == []
    base.remove(looked)
    assert asked(*leaking_windows(4)) == [100], "who holds what grows is not known"
    base.append(looked)
    assert asked(*leaking_windows(4)) == []
    assert asked(*start, w.step(2).done(t=240.0)) == [], "one was only just recorded"
