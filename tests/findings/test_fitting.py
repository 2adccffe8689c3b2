"""The suggested limit: it rests on what has worked, or is called a guess. Each logical device has its own."""

import math
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from tests import streams
from tests import streams as s
from tests.findings.situations import asked_limits, begin, effective, limited, reading, steady
from tests.streams import GIB, MIB
from tests.ui.shown import RECORDINGS
from tests.whatif.test_command import replayed_on_a_gpu
from tfmemtop import events
from tfmemtop.agent.settings import shares
from tfmemtop.events import recording
from tfmemtop.findings.proposed_limit import basis, code, command_line, sentences, suggested_limit, suggested_limits
from tfmemtop.limits import Basis, SuggestedLimit, with_margin
from tfmemtop.settings import Settings
from tfmemtop.state import State, apply

GOOD = events.RunEnd(t=30.0, run=1, exit_code=0, signal=None)
GROWING = [*begin(), effective(True), *steady(12.0, 908 * MIB, 908 * MIB, 1026 * MIB)]


def of(name: str, run: int | None = None) -> SuggestedLimit | None:
    """Return the suggestion after a recorded run, by default the last."""
    state = State()
    for event in recording.read(RECORDINGS / f"{name}.jsonl").events():
        apply(state, event)
    return suggested_limit(state, state.runs[run - 1] if run else None)


def after(*parts: events.Event | Sequence[events.Event]) -> SuggestedLimit | None:
    return suggested_limit(
        s.fold([event for part in parts for event in ([part] if isinstance(part, events.Event) else part)])
    )


def known(suggested: SuggestedLimit | None) -> SuggestedLimit:
    assert suggested is not None
    return suggested


@pytest.mark.parametrize(
    "name", ["seeds/growth-all", "seeds/batch-sizes", "seeds/deleted", "seeds/nvidia-smi", "seeds/warm-function"]
)
def test_after_a_growing_pool_no_less_than_the_pool_is_suggested(name: str) -> None:
    suggested = known(of(name))
    assert (suggested.basis, suggested.growth) == (Basis.POOL_REACHED, "on")
    assert suggested.figure < suggested.size <= suggested.figure * 1.5 + 17 * MIB and suggested.size % MIB == 0


def test_a_pool_that_was_hardly_larger_than_its_peak_had_luck() -> None:
    def size(peak: int, pool: int) -> int:
        used = steady(12.0, peak * MIB, peak * MIB, pool * MIB)
        return known(after(begin(), effective(True), used, GOOD)).size // MIB

    assert size(300, 1000) == 1050 and size(1, 100) == 116
    # If sizes are random, a limit of 544 MiB failed after such a run, and one of 690 MiB worked.
    assert size(516, 518) == 774


def test_a_limit_under_which_a_run_has_ended_well_is_not_raised() -> None:
    suggested = known(of("cpu-demo", 2))
    assert (suggested.size, suggested.basis, suggested.on_gpu) == (900 * MIB, Basis.POOL_REACHED, False)


@pytest.mark.parametrize("name", ["seeds/default", "seeds/full-but-idle", "seeds/limit-4g", "seeds/beyond-card"])
def test_of_a_pool_that_was_taken_at_once_only_the_peak_tells_something(name: str) -> None:
    suggested = known(of(name))
    assert suggested.is_guess and suggested.growth == "off" and suggested.size < 200 * MIB
    assert any("~" in sentence and "guess" in sentence for sentence in sentences(suggested))


def test_a_limit_without_growth_that_was_mostly_needed_is_suggested_again() -> None:
    used = steady(12.0, GIB, 1100 * MIB, 2 * GIB, limit=2 * GIB)
    suggested = known(after(begin(), limited(False, 2 * GIB), used, GOOD))
    assert (suggested.size, suggested.basis, suggested.growth) == (2 * GIB, Basis.POOL_REACHED, "off")


def test_how_sure_it_is_depends_on_how_the_run_ended() -> None:
    def how(*more: events.Event) -> Basis | None:
        suggested = after(GROWING, *more)
        return suggested.basis if suggested else None

    assert how() is Basis.POOL_SO_FAR
    assert how(GOOD) is Basis.POOL_REACHED
    assert how(events.RunEnd(t=30.0, run=1, exit_code=None, signal=15)) is Basis.POOL_SO_FAR
    assert how(events.RunEnd(t=30.0, run=1, exit_code=130, signal=None)) is Basis.POOL_SO_FAR
    # A process that ends at once, for example by os._exit, sends no last reading.
    assert how(events.HookEnd(t=29.9, pid=100, reason=events.HookEnding.LOST), GOOD) is Basis.POOL_SO_FAR
    assert how(events.HookEnd(t=29.9, pid=100, reason=events.HookEnding.EXIT), GOOD) is Basis.POOL_REACHED
    # The run failed, for whatever reason: how much it needs is not known.
    assert how(events.RunEnd(t=30.0, run=1, exit_code=1, signal=None)) is None
    assert how(events.RunEnd(t=30.0, run=1, exit_code=None, signal=11)) is None


def test_of_a_run_that_leaked_no_need_is_claimed() -> None:
    leaking = [reading(3.0 + i, 100 * MIB + i * MIB, pool=GIB) for i in range(400)]
    end = events.RunEnd(t=500.0, run=1, exit_code=0, signal=None)
    assert after(begin(), effective(True), leaking, end) is None
    assert after(begin(), effective(True), leaking[:20], end) is not None


@pytest.mark.parametrize("name", ["cpu-oom", "seeds/cut-up"])
def test_after_an_allocation_failed_no_limit_is_suggested_because_later_requests_are_not_known(name: str) -> None:
    assert of(name) is None


def test_nothing_is_suggested_for_cudas_own_pool() -> None:
    assert after(begin(), effective(False, allocator="cuda_malloc_async"), reading(3.0, GIB), GOOD) is None


def test_several_gpus_have_one_limit_each() -> None:
    suggested = known(of("h200-four-cards"))
    assert suggested.gpus == 4 and not suggested.divided
    # The GPU that needs most decides.
    assert suggested.size == max(limit.size for limit in suggested.each) == 700 * MIB  # for a peak of 466.2 MiB
    assert "700M for each of 4 GPUs" in next(sentences(suggested))


def divided(*pools: int, limits: tuple[int, ...]) -> SuggestedLimit:
    """Return the suggestion after a good run on one GPU with logical devices of these pools and limits, in MiB."""
    stream = [*begin(), asked_limits(*(limit * MIB for limit in limits))]
    for index, (pool, limit) in enumerate(zip(pools, limits, strict=True)):
        name = f"GPU:{index}"
        made = events.Effective(
            t=2.0, pid=100, device=name, physical=0, uuid="GPU-0", growth=True, limit=limit * MIB, allocator="bfc"
        )
        stream += [made, reading(3.0, pool * MIB // 2, pool=pool * MIB, limit=limit * MIB, name=name)]
    return known(suggested_limit(s.fold([*stream, GOOD])))


@pytest.mark.parametrize(
    ("pools", "limits"),
    [((66, 130), (1024, 2048)), ((130, 66), (1024, 2048)), ((14, 14, 514), (1000, 777, 1024)), ((2, 62), (600, 100))],
)
def test_logical_devices_of_one_gpu_have_a_limit_each(pools: tuple[int, ...], limits: tuple[int, ...]) -> None:
    suggested = divided(*pools, limits=limits)
    assert suggested.divided and suggested.gpus == 1
    each = [limit.size // MIB for limit in suggested.each]
    assert all(own >= pool for own, pool in zip(each, pools, strict=True))
    # The hook divides the whole limit. Every device gets at least its own.
    got = shares(suggested.size // MIB, [float(limit) for limit in limits])
    assert all(share >= own for share, own in zip(got, each, strict=True))
    lines = code(suggested)
    assert [line for line in lines if "LogicalDeviceConfiguration(memory_limit=" in line] == [
        f"    tf.config.LogicalDeviceConfiguration(memory_limit={own}),  # GPU:{index}, MiB"
        for index, own in enumerate(each)
    ]
    compile("\n".join(lines), "lines", "exec")
    assert f"GPU:0 {each[0]}M, GPU:1 {each[1]}M" in " ".join(sentences(suggested))


def test_two_logical_devices_without_growth_have_a_guess_each() -> None:
    suggested = known(of("seeds/two-logical"))
    assert suggested.divided and suggested.is_guess
    assert "GPU:0 ~129M, GPU:1 ~257M" in " ".join(sentences(suggested))


def test_small_use_has_no_floor_that_is_called_a_share() -> None:
    suggested = known(of("seeds/kernel-again"))  # 158.8 KiB at the peak, in a pool of 2 MiB
    assert suggested.size == 18 * MIB
    told = "A limit of 18M: the pool that run 1 reached with growth on, 2.0 MiB, plus a margin."
    assert next(sentences(suggested)) == told


def test_an_earlier_run_that_ended_well_is_better_than_a_guess() -> None:
    again = [s.run(40.0, number=2, pid=200), s.process(40.1, 200, run=2), s.hook(40.2, 200)]
    state = s.fold([*GROWING, GOOD, *again])
    argv = state.runs[0].argv
    (sure,) = suggested_limits(state, Settings(), argv)
    assert (sure.run, sure.basis, sure.size) == (1, Basis.POOL_REACHED, 1362 * MIB)
    assert suggested_limits(state, Settings(), ["other.py"]) == []
    assert command_line(sure, argv).startswith("tfmemtop --growth on --memory-limit 1362M -- python")


def test_with_another_growth_it_is_a_guess() -> None:
    state = s.fold([*GROWING, GOOD])
    argv = state.runs[0].argv
    (guess,) = suggested_limits(state, Settings(growth="off"), argv)
    assert guess.is_guess and "growth on only" in basis(guess)
    assert [limit.is_guess for limit in suggested_limits(state, Settings(growth="on"), argv)] == [False]


def test_a_limit_of_the_cpu_pool_is_not_suggested_for_gpus() -> None:
    on_cpu = [effective(None, name="CPU:0"), reading(3.0, 600 * MIB, pool=GIB, name="CPU:0")]
    state = s.fold([*begin(), *on_cpu, GOOD])
    assert known(suggested_limit(state)).size // MIB == math.ceil(1024 * 1.05)
    assert suggested_limits(state, Settings(), state.runs[0].argv) == []


# The limit that a replay gives: it is suggested first, for the growth that is set, if it covers the whole run.


SETTINGS = Settings()


def state(peak: int = 10 * GIB, *, over: bool = True, **changed: Any) -> State:
    """Return the state after a run with growth on, whose pool reached 12 GiB. *changed*: fields of its replay."""
    stream: list[events.Event] = [
        *(streams.session(), streams.run(), streams.process(0.2, 100), streams.device(), streams.hook(0.4, 100)),
        *(streams.effective(0.5, 100), streams.allocator(2.0, 100, 8 * GIB, peak, 12 * GIB)),
        msgspec.structs.replace(replayed_on_a_gpu(), **changed),
    ]
    if over:
        stream.append(events.RunEnd(t=20.0, run=1, exit_code=0, signal=None))
    return streams.fold(stream)


def suggested(state: State, settings: Settings = SETTINGS) -> list[tuple[int, Basis, str | None]]:
    found = suggested_limits(state, settings, ["python", "train.py"])
    return [(round(limit.size / GIB / 1.05), limit.basis, limit.growth) for limit in found]


def test_the_end_that_is_surely_enough_comes_first_for_the_growth_that_is_set() -> None:
    assert suggested(state()) == [(15, Basis.REPLAYED, "on")]
    assert suggested(state(), Settings(growth="off")) == [(20, Basis.REPLAYED, "off")]
    assert suggested(state(over=False)) == [(15, Basis.REPLAYED_SO_FAR, "on")]
    (limit,) = suggested_limits(state(), Settings(), ["python", "train.py"])
    assert "1,000 allocations of 20 steps" in basis(limit)
    assert list(sentences(limit)) == [
        "A limit of 16128M: what the replayed run needs, plus a margin.",
        "The limit rests on 1,000 allocations of 20 steps, replayed with TensorFlow's own allocator with growth on.",
        "Under less than 12.0 GiB the allocations do not fit, even if some wait until others have freed memory.",
    ]


@pytest.mark.parametrize(
    "changed", [{"lost": 3}, {"unreplayed": events.Unreplayed.UNBUILT}, {"whole": False}, {"peak": 11 * GIB}]
)
def test_a_replay_that_does_not_speak_for_the_run_suggests_nothing(changed: dict[str, Any]) -> None:
    assert all(found not in (Basis.REPLAYED, Basis.REPLAYED_SO_FAR) for _, found, _ in suggested(state(**changed)))


def test_a_peak_that_rose_a_little_since_is_added() -> None:
    later = 10 * GIB + 300 * MIB
    (limit,) = suggested_limits(state(later), Settings(), ["python", "train.py"])
    assert (limit.basis, limit.size) == (Basis.REPLAYED, with_margin(15 * GIB + 300 * MIB))


def failed_again(limit: int) -> State:
    """Return two runs of one command. The first ended well with a pool of 12 GiB, the second failed under *limit*."""
    return streams.fold(
        [
            *(streams.session(), streams.run(), streams.process(0.2, 100), streams.device(), streams.hook(0.4, 100)),
            *(streams.effective(0.5, 100), streams.allocator(2.0, 100, 8 * GIB, 10 * GIB, 12 * GIB)),
            *(events.RunEnd(t=20.0, run=1, exit_code=0, signal=None), streams.run(21.0, 2, 200)),
            *(streams.process(21.2, 200, run=2), streams.hook(21.4, 200)),
            msgspec.structs.replace(effective(True, limit, 21.5, 200), pid=200),
            reading(22.0, 7 * GIB, 8 * GIB, 9 * GIB, limit, pid=200),
            events.OutOfMemory(t=23.0, pid=200, message="OOM", device="GPU:0", requested=GIB, operation="MatMul"),
        ]
    )


@pytest.mark.parametrize("limit", [9 * GIB, 20 * GIB])
def test_no_limit_is_suggested_that_is_no_higher_than_one_that_failed(limit: int) -> None:
    found = suggested_limits(failed_again(limit), Settings(), ["python", "train.py"])
    assert all(one.size > limit for one in found)
    assert any(not one.is_guess for one in found) is (limit == 9 * GIB)
