"""The memory that the pool holds, and its use: each rule where it applies, and where it just does not."""

import pytest

from tests import streams as s
from tests.findings.situations import CARD, POOL_AT_ONCE, actions, begin, effective, found, limited, reading, steady
from tests.streams import GIB, MIB
from tfmemtop import events
from tfmemtop.findings.finding import Severity
from tfmemtop.findings.leaks import Leak
from tfmemtop.findings.limits import LooseLimit
from tfmemtop.findings.places import Place
from tfmemtop.findings.pool import CachedButIdle, FragmentedPool, GrownBeyondNeed, WholeCard
from tfmemtop.findings.remedy import Action, Remedy


def test_the_whole_card_reserved_says_how_much_is_in_use() -> None:
    finding = found(begin(), effective(False), reading(3.0, 33 * MIB, 908 * MIB, POOL_AT_ONCE))[WholeCard]
    assert finding == WholeCard(
        Place(0, "GPU:0"), held=POOL_AT_ONCE, whole=CARD, in_use=33 * MIB, peak=908 * MIB, ended=False
    )
    assert finding.severity is Severity.WARNING and Action.GROWTH_ON in actions(finding)


def test_without_the_probe_the_process_total_tells_that_the_card_is_reserved() -> None:
    held = s.device_reading(3.5, {100: 141_350 * MIB})
    assert WholeCard in found(begin(), effective(False), reading(3.0, 33 * MIB), held)
    assert found(begin(), effective(False), reading(3.0, 33 * MIB), s.device_reading(3.5, {100: 9 * GIB})) == []


def test_what_is_in_use_of_a_card_that_is_reserved_may_not_be_known() -> None:
    bare = events.Allocator(
        t=3.0, pid=100, device="GPU:0", allocator=None, in_use=None, peak=None, pool=POOL_AT_ONCE, limit=None
    )
    assert found(begin(), effective(False), bare)[WholeCard].in_use is None


def test_a_card_that_is_needed_is_no_warning() -> None:
    used = found(begin(), effective(False), reading(3.0, 100 * GIB, 120 * GIB, POOL_AT_ONCE))
    assert used[WholeCard].severity is Severity.INFO


@pytest.mark.parametrize(
    "settled",
    [[effective(True)], limited(False, 2 * GIB), [effective(False, allocator="cuda_malloc_async")]],
    ids=["growth", "limit", "async"],
)
def test_other_settings_reserve_no_whole_card(settled: list[events.Event]) -> None:
    assert WholeCard not in found(begin(), settled, reading(3.0, 120 * GIB, 120 * GIB, POOL_AT_ONCE))


def test_a_limit_that_tensorflow_chose_is_none() -> None:
    # For a TF1 session the hook reports the allocator's own limit, which no call requested.
    chosen = effective(False, POOL_AT_ONCE)
    assert WholeCard in found(begin(), chosen, reading(3.0, 33 * MIB, 908 * MIB, POOL_AT_ONCE))
    assert LooseLimit not in found(begin(), chosen, steady(80.0, GIB, 2 * GIB, POOL_AT_ONCE))


def peak_then(low: int, seconds: int, pool: int = 1026 * MIB) -> list[events.Event]:
    return [
        *begin(),
        effective(True),
        *steady(12.0, 908 * MIB, 908 * MIB, pool),
        *steady(12.0 + seconds, low, 908 * MIB, pool, since=13.0),
    ]


def test_a_pool_that_was_needed_and_is_idle_now() -> None:
    finding = found(peak_then(140 * MIB, 7))[CachedButIdle]
    assert (finding.idle, finding.pool, finding.peak) == (886 * MIB, 1026 * MIB, 908 * MIB)
    assert finding.severity is Severity.INFO and not finding.ended


def test_a_short_pause_or_a_small_rest_is_not_idle() -> None:
    assert found(peak_then(140 * MIB, 2)) == []
    assert found(peak_then(600 * MIB, 30)) == []


def test_a_spike_between_readings_counts_as_use() -> None:
    spiky = [reading(13.0 + i, 140 * MIB, 908 * MIB, 1026 * MIB, high=900 * MIB) for i in range(20)]
    assert found(peak_then(140 * MIB, 0), spiky) == []


def grown(t: float, before: int, after: int) -> events.PoolGrowth:
    return events.PoolGrowth(t=t, pid=100, device="GPU:0", at=t, before=before, after=after)


def test_a_pool_that_doubled_beyond_the_need() -> None:
    stream = [*begin(), effective(True), grown(3.0, 2 * GIB, 4 * GIB)]
    used = steady(20.0, 2200 * MIB, 2200 * MIB, 4 * GIB, since=4.0)
    finding = found(stream, used)[GrownBeyondNeed]
    assert (finding.pool, finding.surplus, finding.step) == (4 * GIB, 4 * GIB - 2200 * MIB, 2 * GIB)
    assert finding.remedies == (Remedy(Action.FIND_LIMIT),)
    # The region was taken only just now: the allocations for it may still follow.
    assert found(stream, used[:3]) == []
    # Without the pool's history of growth, doubling is only likely.
    assert found(begin(), effective(True), used)[GrownBeyondNeed].step is None


def test_a_pool_filled_to_two_thirds_is_none_of_it() -> None:
    assert found(begin(), effective(True), steady(20.0, 3 * GIB, 3 * GIB, 4 * GIB)) == []


def chunk_map(pool: int, in_use: int, largest: int, biggest: int, fragmentation: float) -> events.MemoryMap:
    return events.MemoryMap(
        t=5.0,
        pid=100,
        device="GPU:0",
        pool=pool,
        in_use=in_use,
        chunks=2000,
        chunks_in_use=1000,
        largest_free=largest,
        fragmentation=fragmentation,
        biggest=[events.Chunk(0, biggest, biggest)],
    )


def test_a_full_pool_in_small_pieces() -> None:
    used = [*begin(), *limited(True, 4 * GIB), reading(3.0, 3 * GIB, 3 * GIB, 4 * GIB, 4 * GIB)]
    finding = found(used, chunk_map(4 * GIB, 3 * GIB, 100 * MIB, 512 * MIB, 0.9))[FragmentedPool]
    assert (finding.free, finding.largest_free, finding.biggest) == (GIB, 100 * MIB, 512 * MIB)
    assert Action.USE_CUDA_ALLOCATOR in actions(finding)
    # There is no finding if a free piece is large enough, or if the pool can grow.
    assert found(used, chunk_map(4 * GIB, 3 * GIB, 600 * MIB, 512 * MIB, 0.6)) == []
    assert found(used, chunk_map(2 * GIB, GIB, 100 * MIB, 512 * MIB, 0.9)) == []
    # There is none if the map is old.
    assert found(used, chunk_map(4 * GIB, 3 * GIB, 100 * MIB, 512 * MIB, 0.9), reading(30.0, 3 * GIB, 3 * GIB)) == []
    # There is none if all is in use: no free memory could be in pieces.
    assert found(used, chunk_map(4 * GIB, 4 * GIB - MIB, MIB // 4, 512 * MIB, 0.9)) == []


def rising(start: int, step: int, seconds: int, phase: int = 0, stop: int | None = None) -> list[events.Event]:
    """Return readings in which the bytes in use rise by *step* a second, with *phase* more at every second reading.

    With *stop*, the rise ends after so many seconds.
    """
    sizes = [start + step * min(i, stop or i) + phase * (i % 2) for i in range(seconds)]
    peaks = [max(sizes[: i + 1]) for i in range(seconds)]
    return [
        reading(3.0 + i, size, peak, 64 * GIB, 64 * GIB)
        for i, (size, peak) in enumerate(zip(sizes, peaks, strict=True))
    ]


def test_a_leak_has_a_slope_and_an_end() -> None:
    finding = found(begin(), effective(True), rising(60 * GIB, MIB, 300, phase=2 * GIB))[Leak]
    assert finding.rise == MIB and finding.each is None and not finding.ended
    assert finding.left_s is not None and 20 * 60 < finding.left_s < 30 * 60


def test_a_leak_of_a_run_that_has_ended_is_told_with_its_end_too() -> None:
    ended = events.HookEnd(t=310.0, pid=100, reason=events.HookEnding.EXIT)
    finding = found(begin(), effective(True), rising(60 * GIB, MIB, 300), ended)[Leak]
    assert finding.ended and 240 <= finding.span_s < 300
    assert finding.left_s is not None and 3600 <= finding.left_s < 4200


def test_a_leak_is_told_by_the_step_where_steps_are_counted() -> None:
    steps = [
        events.Functions(t=3.0 + i, pid=100, functions=[events.Traced("train", 4 * i, 1, "train.py", 12)])
        for i in range(300)
    ]
    rises = rising(60 * GIB, MIB, 300)
    going = sorted([*rises, *steps], key=lambda event: event.t)
    finding = found(begin(), effective(True), going)[Leak]
    assert (finding.rise, finding.each, finding.unit) == (MIB, MIB // 4, "steps")
    room = 4 * GIB - 299 * MIB  # about the room that the limit leaves above the highest reading
    assert finding.left_steps is not None and abs(finding.left_steps - room // (MIB // 4)) < 200


@pytest.mark.parametrize(("epoch_s", "epochs"), [(45, 20), (100, 18), (600, 24)])
def test_a_leak_that_grows_once_an_epoch(epoch_s: int, epochs: int) -> None:
    def seconds(*per_epoch: int) -> list[events.Event]:
        sizes = [60 * GIB + per_epoch[0] * (i // epoch_s) + 2 * GIB * (i % 2) for i in range(epoch_s * epochs)]
        peak = 62 * GIB + max(sizes)
        return [reading(3.0 + i, size, peak, 64 * GIB, 64 * GIB) for i, size in enumerate(sizes)]

    finding = found(begin(), effective(True), seconds(20 * MIB))[Leak]
    assert abs(finding.rise - 20 * MIB / epoch_s) < 0.2 * 20 * MIB / epoch_s
    assert Leak not in found(begin(), effective(True), seconds(0))


def test_warming_up_stages_and_short_runs_are_no_leaks() -> None:
    rest = [effective(True)]
    assert Leak not in found(begin(), rest, rising(60 * GIB, MIB, 120))
    assert Leak not in found(begin(), rest, rising(60 * GIB, MIB, 600, stop=100))
    assert Leak not in found(begin(), rest, rising(60 * GIB, 10_000, 300))
    stages = [reading(3.0 + i, (58 + i // 100) * GIB, 64 * GIB, 64 * GIB) for i in range(400)]
    assert Leak not in found(begin(), rest, stages)
