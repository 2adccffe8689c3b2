"""The memory that the pool holds, and its use: each rule where it applies, and where it just does not."""

import msgspec
import pytest

from tests import streams as s
from tests.findings.situations import (
    CARD,
    HEALTHY,
    POOL_AT_ONCE,
    actions,
    asked_visible,
    begin,
    busy,
    effective,
    found,
    limited,
    reading,
    steady,
    wrote,
)
from tests.streams import GIB, MIB
from tfmemtop import events
from tfmemtop.events.machine import Workload
from tfmemtop.findings.finding import Severity
from tfmemtop.findings.names import Place
from tfmemtop.findings.remedy import Action, raise_limit
from tfmemtop.findings.rules.busy import FullButIdle
from tfmemtop.findings.rules.devices import LimitsBeyondCard, NoGpuSeen
from tfmemtop.findings.rules.leaks import Leak
from tfmemtop.findings.rules.others import Holder, OthersHoldCard, TwoReserveCard
from tfmemtop.findings.rules.outside import HeldBeside, OutsidePool
from tfmemtop.findings.rules.pool import CachedButIdle, TightLimit, WholeCard
from tfmemtop.settings import Settings
from tfmemtop.tensorflow_text import NO_LIBRARIES


def test_the_whole_card_reserved_says_how_much_is_in_use() -> None:
    finding = found(begin(), effective(False), reading(3.0, 33 * MIB, 908 * MIB, POOL_AT_ONCE))[WholeCard]
    assert finding == WholeCard(
        Place(0, "GPU:0"), held=POOL_AT_ONCE, whole=CARD, in_use=33 * MIB, peak=908 * MIB, ended=False
    )
    assert finding.severity is Severity.WARNING and Action.GROWTH_ON in actions(finding)
    # A card that is needed is no warning.
    used = found(begin(), effective(False), reading(3.0, 100 * GIB, 120 * GIB, POOL_AT_ONCE))
    assert used[WholeCard].severity is Severity.INFO


def test_without_the_probe_the_process_total_tells_that_the_card_is_reserved() -> None:
    held = s.device_reading(3.5, {100: 141_350 * MIB})
    assert WholeCard in found(begin(), effective(False), reading(3.0, 33 * MIB), held)
    assert found(begin(), effective(False), reading(3.0, 33 * MIB), s.device_reading(3.5, {100: 9 * GIB})) == []


def test_what_is_in_use_of_a_card_that_is_reserved_may_not_be_known() -> None:
    bare = msgspec.structs.replace(reading(3.0, 0, pool=POOL_AT_ONCE), in_use=None, peak=None)
    assert found(begin(), effective(False), bare)[WholeCard].in_use is None


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
    # A short pause or a small rest is not idle. A spike between readings counts as use.
    assert found(peak_then(140 * MIB, 2)) == []
    assert found(peak_then(600 * MIB, 30)) == []
    spiky = [reading(13.0 + i, 140 * MIB, 908 * MIB, 1026 * MIB, high=900 * MIB) for i in range(20)]
    assert found(peak_then(140 * MIB, 0), spiky) == []


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


def test_steps_before_a_leak_began_do_not_count_for_it() -> None:
    """For a hundred seconds there are 20 steps a second and no leak, then one step a second keeps 1 MiB."""
    going = [
        event
        for i in range(400)
        for made in [min(i, 100) * 20 + max(0, i - 100)]
        for event in (
            reading(3.0 + i, 40 * GIB + MIB * max(0, i - 100), 41 * GIB, 64 * GIB, 64 * GIB),
            events.Functions(t=3.0 + i, pid=100, functions=[events.Traced("train", made, 1, "train.py", 12)]),
        )
    ]
    finding = found(begin(), effective(True), going)[Leak]
    assert finding.each is not None and abs(finding.each - MIB) < MIB / 10


@pytest.mark.parametrize(("epoch_s", "epochs"), [(45, 20), (100, 18)])
def test_a_leak_that_grows_once_an_epoch(epoch_s: int, epochs: int) -> None:
    def course(each: int) -> list[events.Event]:
        """Return readings of *epochs* epochs, after each of which *each* bytes more are in use."""
        pace_s = epoch_s // 45
        times = range(0, epoch_s * epochs, pace_s)
        sizes = [60 * GIB + each * (t // epoch_s) + 2 * GIB * (i % 2) for i, t in enumerate(times)]
        peak = 62 * GIB + max(sizes)
        return [reading(3.0 + t, size, peak, 64 * GIB, 64 * GIB) for t, size in zip(times, sizes, strict=True)]

    finding = found(begin(), effective(True), course(20 * MIB))[Leak]
    assert abs(finding.rise - 20 * MIB / epoch_s) < 0.2 * 20 * MIB / epoch_s
    assert Leak not in found(begin(), effective(True), course(0))


def test_warming_up_stages_and_short_runs_are_no_leaks() -> None:
    rest = [effective(True)]
    assert Leak not in found(begin(), rest, rising(60 * GIB, MIB, 120))
    assert Leak not in found(begin(), rest, rising(60 * GIB, MIB, 600, stop=100))
    assert Leak not in found(begin(), rest, rising(60 * GIB, 10_000, 300))
    stages = [reading(3.0 + i, (58 + i // 100) * GIB, 64 * GIB, 64 * GIB) for i in range(400)]
    assert Leak not in found(begin(), rest, stages)


# The card and the processes on it: each rule where it applies, and where it just does not.


UNTOLD = events.SharesMissing.NOT_TOLD_IN_CONTAINER


def test_memory_outside_the_pool() -> None:
    pools = [reading(91.0 + i, 700 * MIB, 800 * MIB, 1026 * MIB) for i in range(3)]
    more = [s.device_reading(91.0 + i, {100: 1634 * MIB + 2 * GIB}) for i in range(3)]
    finding = found(HEALTHY, *zip(pools, more, strict=True))[OutsidePool]
    assert (finding.pid, finding.outside, finding.total) == (100, 608 * MIB + 2 * GIB, 1634 * MIB + 2 * GIB)
    assert not finding.between_gpus and not finding.eager
    assert found(HEALTHY, [s.device_reading(91.0 + i, {100: 1634 * MIB + 400 * MIB}) for i in range(3)]) == []
    # The hook may have been held up since its last reading of the pool.
    assert found(HEALTHY, [msgspec.structs.replace(one, t=one.t + 5) for one in more]) == []
    # NVML reports a region that is not yet in the allocator's reading. This lasts for one reading only.
    assert found(HEALTHY, more[:1]) == []


def test_a_process_of_the_run_that_holds_memory_without_tensorflow_is_named() -> None:
    beside = s.process(2.0, 200, command="python jax_worker.py")
    held = s.device_reading(30.0, {100: 1634 * MIB, 200: 522 * MIB})
    alive = s.alive(31.0, 100, 200, 900)
    finding = found(HEALTHY[:-2], beside, held, alive)[HeldBeside]
    assert (finding.pid, finding.script, finding.used) == (200, "jax_worker.py", 522 * MIB)
    # A young process may still import TensorFlow. One that uses TensorFlow without the hook has another finding.
    young = msgspec.structs.replace(beside, t=89.0)
    assert HeldBeside not in found(HEALTHY, young, msgspec.structs.replace(held, t=90.0), s.alive(90.5, 100, 200))
    hidden = msgspec.structs.replace(beside, hook_absence=events.HookAbsence(events.Absence.ISOLATED))
    assert HeldBeside not in found(HEALTHY[:-2], hidden, held, alive)
    # A program that is not part of the run is not reported.
    assert HeldBeside not in found(HEALTHY[:-2], msgspec.structs.replace(beside, run=None), held, alive)


def test_a_gpu_that_tensorflow_does_not_see() -> None:
    on_cpu = reading(3.0, MIB, name="CPU:0")
    made = effective(None, name="CPU:0")
    assert found(begin(), made, on_cpu) == []
    finding = found(begin(), made, on_cpu, reading(8.0, MIB, name="CPU:0"))[NoGpuSeen]
    assert finding == NoGpuSeen(100, 1) and finding.severity is Severity.WARNING
    told = found(begin(), wrote("W0000 gpu_device.cc:2343] Cannot dlopen some GPU libraries. Please make sure"))
    assert told[NoGpuSeen].complaint == NO_LIBRARIES


def test_no_gpu_is_no_matter_where_it_is_wished_so_or_not_known() -> None:
    on_cpu = reading(3.0, MIB, name="CPU:0")
    later: list[events.Event] = [effective(None, name="CPU:0"), on_cpu, reading(9.0, MIB, name="CPU:0")]
    assert found(begin(Settings(gpus=())), later) == []
    assert found(begin()) == []
    assert found(begin(gpus=0), later) == []
    assert found(begin(), later, effective(True), reading(9.1, MIB)) == []
    hidden = asked_visible()
    assert found(begin(), hidden, later) == []


def test_logical_devices_beyond_the_card() -> None:
    pair = [*limited(False, 80 * GIB), *limited(False, 80 * GIB, name="GPU:1")]
    assert found(begin(), pair)[LimitsBeyondCard] == LimitsBeyondCard(Place(0), (80 * GIB, 80 * GIB), CARD)
    assert found(begin(), limited(False, 60 * GIB), limited(False, 60 * GIB, name="GPU:1")) == []


def test_others_held_the_card_when_the_run_started() -> None:
    finding = found(begin(others=60 * GIB), effective(True), s.device_reading(3.0, {100: GIB, 900: 58 * GIB}))
    held = finding[OthersHoldCard]
    assert (held.used, held.whole, held.limit) == (60 * GIB, CARD, None) and held.free > 79 * GIB
    assert held.largest == Holder(900, 58 * GIB, "other.py")
    with_limit = found(begin(others=60 * GIB), effective(True), reading(3.0, MIB, limit=78 * GIB))[OthersHoldCard]
    assert with_limit.limit == 78 * GIB and with_limit.severity is Severity.INFO, "little of it was needed"
    needed = found(begin(others=60 * GIB), effective(True), reading(3.0, 60 * GIB, limit=78 * GIB))[OthersHoldCard]
    assert needed.severity is Severity.WARNING
    # Where the driver names no processes, our own memory is not the others'.
    unnamed = [s.device_reading(3.0 + i, {100: None, 901: 60 * GIB}, missing=UNTOLD) for i in range(5)]
    assert OthersHoldCard not in found(begin(), effective(True), unnamed)


def test_a_process_of_another_container_that_holds_the_card_is_named_by_its_container() -> None:
    contained = msgspec.structs.replace(
        s.process(0.3, 900, run=None, command="python other.py"), workload=Workload(pod="serve-0", job="812")
    )
    card = s.device_reading(3.0, {100: GIB, 900: 58 * GIB})
    held = found(begin(others=60 * GIB), contained, effective(True), card)[OthersHoldCard]
    assert "process 900 (other.py in serve-0/job 812) held 60.0 GiB" in held.said.text


def test_others_that_hold_little_or_came_later_or_a_limit_that_was_set() -> None:
    assert found(begin(others=GIB), effective(True)) == []
    assert found(begin(), effective(True), s.device_reading(3.0, {100: GIB, 900: 60 * GIB})) == []
    assert found(begin(others=60 * GIB), limited(True, 4 * GIB)) == []


def twin(run: int | None = None, command: str = "python train.py", held: int = 70 * GIB) -> list[events.Event]:
    """Return the events of process 200, which holds about as much of the card as the script does."""
    both = s.device_reading(3.0, {100: held, 200: held - 2 * GIB})
    return [s.process(0.7, 200, run=run, command=command), s.alive(1.2, 100, 200, 900), both]


def worker(growth: bool) -> list[events.Event]:
    return [*twin(1, "python -c spawn"), s.hook(1.3, 200), effective(growth, pid=200)]


def test_two_of_one_script_reserve_everything() -> None:
    mine = [*begin(), effective(False)]
    finding = found(mine, twin())[TwoReserveCard]
    assert (finding.first, finding.second) == (Holder(100, 70 * GIB), Holder(200, 68 * GIB))
    assert finding.script == "train.py" and finding.growth is None, "of the other process the settings are not known"
    assert TwoReserveCard in found(mine, twin(command="/opt/python -u train.py --lr 3"))
    known = found(mine, worker(growth=False))[TwoReserveCard]
    assert known.script is None and known.growth is False
    # These share the card, or have nothing in common.
    assert TwoReserveCard not in found(begin(), twin(), effective(True))
    assert TwoReserveCard not in found(mine, worker(growth=True))
    assert TwoReserveCard not in found(mine, twin(command="python serve.py"))
    assert TwoReserveCard not in found(mine, twin(held=5 * GIB))


def test_two_scripts_of_one_name_are_not_one_script() -> None:
    mine = [*begin(command="python /home/ada/mnist/train.py"), effective(False)]
    assert TwoReserveCard not in found(mine, twin(command="python /home/bob/resnet/train.py"))
    assert TwoReserveCard in found(mine, twin())


def test_full_but_idle_and_waiting_for_its_input() -> None:
    stream = [*begin(), effective(False), reading(3.0, 100 * GIB, 120 * GIB, POOL_AT_ONCE)]
    whole: dict[int, int | None] = {100: 138 * GIB}
    finding = found(stream, busy({0: 4}, whole))[FullButIdle]
    assert finding.severity is Severity.WARNING and finding.waits_for_host
    assert (finding.percent, finding.span_s, finding.cores) == (4, 30, 6.2)
    assert found(stream, busy({0: 4}, whole, seconds=40))[FullButIdle].span_s == 25, "the time that was looked at"
    idle = found(stream, busy({0: 4}, whole, cpu=3.0))[FullButIdle]
    assert idle.severity is Severity.INFO and actions(idle) == [Action.GROWTH_ON]
    # A busy GPU, a free card and a run that has just begun are not idle.
    stream = [*begin(), effective(True)]
    assert found(stream, busy({0: 40}, whole)) == []
    assert found(stream, busy({0: 4}, {100: 60 * GIB})) == []
    assert found(stream, busy({0: 4}, whole, seconds=30)) == []


def test_a_limit_just_above_the_peak() -> None:
    used = steady(10.0, GIB, 1960 * MIB, 2 * GIB, limit=2 * GIB)
    finding = found(begin(), limited(True, 2 * GIB), used)[TightLimit]
    assert (finding.limit, finding.peak) == (2 * GIB, 1960 * MIB)
    assert actions(finding) == [raise_limit(2 * GIB, on_cpu=False), Action.FIND_LIMIT]
    assert found(begin(), limited(True, 2 * GIB), steady(10.0, 1700 * MIB, 1900 * MIB, 2 * GIB)) == []
