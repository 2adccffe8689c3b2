"""Figures that could mislead a rule: the findings where the obvious reading of the figures is wrong."""

import msgspec

from tests import streams as s
from tests.findings.situations import (
    CARD,
    POOL_AT_ONCE,
    Found,
    actions,
    asked_growth,
    asked_visible,
    begin,
    busy,
    effective,
    found,
    initialised,
    limited,
    reading,
    steady,
    wrote,
)
from tests.streams import GIB, MIB
from tfmemtop import events
from tfmemtop.findings.finding import Severity
from tfmemtop.findings.remedy import Action
from tfmemtop.findings.rules.busy import FullButIdle, ReservedUnused
from tfmemtop.findings.rules.devices import LimitsBeyondCard, NoGpuSeen
from tfmemtop.findings.rules.leaks import Leak
from tfmemtop.findings.rules.others import OthersHoldCard
from tfmemtop.findings.rules.outside import OutsidePool
from tfmemtop.findings.rules.pool import CachedButIdle, WholeCard
from tfmemtop.findings.rules.retracing import Retraced
from tfmemtop.findings.rules.settings import CallRefused, GrowthDropped, GrowthOverridden
from tfmemtop.placement import Placement


def on_card(index: int, growth: bool = False) -> events.Effective:
    return effective(growth, name=f"GPU:{index}", uuid=f"GPU-{index}")


def test_a_gpu_that_is_reserved_and_never_used_does_not_wait_for_its_input() -> None:
    unused = found(begin(gpus=2), on_card(0), on_card(1), busy({0: 90, 1: 0}, {100: 138 * GIB}))[ReservedUnused]
    assert (unused.place.gpu, unused.used, unused.whole) == (1, 138 * GIB, CARD)
    assert (unused.working, unused.working_percent) == (0, 90)
    both = found(begin(gpus=2), on_card(0), on_card(1), busy({0: 3, 1: 0}, {100: 138 * GIB}))
    assert [finding.waits_for_host for finding in both.findings if isinstance(finding, FullButIdle)] == [True, True]
    assert ReservedUnused not in both


def test_a_card_that_others_fill_says_nothing_of_the_run() -> None:
    held: dict[int, int | None] = {100: 2 * GIB, 900: 136 * GIB}
    assert FullButIdle not in found(begin(others=136 * GIB), effective(True), busy({0: 0}, held))
    unnamed: dict[int, int | None] = {900: 138 * GIB}
    alone = busy({0: 0}, unnamed, missing=events.SharesMissing.NOT_TOLD_IN_CONTAINER)
    assert FullButIdle not in found(begin(others=136 * GIB), effective(True), alone)


def test_a_peak_that_the_script_had_tensorflow_forget_is_still_the_peak() -> None:
    needed = steady(20.0, 3900 * MIB, 3900 * MIB, 4 * GIB)
    forgotten = steady(22.0, 3000 * MIB, 1000 * MIB, 4 * GIB, since=21.0)
    assert found(begin(), effective(True), needed, forgotten) == []
    taken = reading(3.0, 100 * GIB, 120 * GIB, POOL_AT_ONCE), reading(4.0, GIB, GIB, POOL_AT_ONCE)
    whole = found(begin(), effective(False), taken)[WholeCard]
    assert whole.severity is Severity.INFO and whole.peak == 120 * GIB


def test_what_is_idle_now_and_was_needed_is_no_reason_for_a_lower_limit() -> None:
    stream = [*begin(), effective(True), *steady(12.0, 908 * MIB, 908 * MIB, 1026 * MIB)]
    stream += steady(20.0, 140 * MIB, 908 * MIB, 1026 * MIB, since=13.0)
    assert actions(found(stream)[CachedButIdle]) == [Action.SEPARATE_PROCESS]
    assert found(stream, events.HookEnd(t=21.0, pid=100, reason=events.HookEnding.EXIT))[CachedButIdle].ended
    waits = events.Waiting(t=15.0, pid=100, operation="Relu", file="/a/t.py", line=9, code="model.fit(x)")
    assert CachedButIdle not in found(stream, waits), "a request waits: what is free is in pieces too small for it"


def test_others_that_had_gone_before_tensorflow_counted() -> None:
    assert OthersHoldCard in found(begin(others=60 * GIB), effective(True), reading(3.0, MIB, limit=79 * GIB))
    assert OthersHoldCard not in found(begin(others=60 * GIB), effective(True), reading(3.0, MIB, limit=138 * GIB))


def test_others_are_told_of_on_every_card() -> None:
    second = s.device_reading(0.55, {900: 60 * GIB}, index=1)
    finding = found(begin(gpus=2), second, on_card(0, True), on_card(1, True))[OthersHoldCard]
    assert (finding.place.gpu, finding.used) == (1, 60 * GIB)


DRIVERLESS = "E0000 cuda_platform.cc:51] failed call to cuInit: INTERNAL: CUDA error: Failed call to cuInit"
DLOPEN = "W0000 gpu_device.cc:2343] Cannot dlopen some GPU libraries. Please make sure the missing libraries"


def test_a_worker_without_a_gpu_does_not_speak_for_the_script() -> None:
    worker: list[events.Event] = [s.process(0.7, 200), s.alive(1.2, 100, 200, 900), s.hook(1.3, 200)]
    assert NoGpuSeen in found(begin(), wrote(DRIVERLESS))
    assert NoGpuSeen not in found(begin(), worker, wrote(DRIVERLESS))


def test_devices_that_were_made_without_a_gpu_are_enough_to_tell() -> None:
    later = s.alive(8.0, 100, 900)
    assert found(begin(), initialised(t=5.0), later) == []
    assert found(begin(), initialised(t=2.0), later)[NoGpuSeen].severity is Severity.WARNING
    assert found(begin(), initialised(t=2.0, error="ValueError: no"), later) == []
    # A script that hides the CPU has not hidden the GPU.
    cpu = asked_visible(of="CPU")
    assert NoGpuSeen in found(begin(), cpu, initialised(t=2.0), later)


def test_a_gpu_that_the_environment_hides_may_be_meant_so() -> None:
    finding = found(begin(), initialised(t=2.0, CUDA_VISIBLE_DEVICES="-1"), s.alive(8.0, 100, 900))[NoGpuSeen]
    assert finding == NoGpuSeen(100, 1, "-1") and finding.severity is Severity.INFO


def test_a_number_of_no_gpu_hides_them_all() -> None:
    def told(visible: str) -> NoGpuSeen:
        return found(begin(), initialised(t=2.0, CUDA_VISIBLE_DEVICES=visible), s.alive(8.0, 100, 900))[NoGpuSeen]

    assert told("3,0") == NoGpuSeen(100, 1, "3,0") and told("3,0").severity is Severity.WARNING
    assert told("0,3").hidden is None and told("GPU-8932f937").hidden is None


def test_libraries_are_named_where_tensorflow_names_them() -> None:
    named = wrote("I0000 dso_loader.cc:144] Could not load dynamic library 'libcudnn.so.9'; dlerror: libcudnn\n")
    assert found(begin(), named, wrote(DLOPEN))[NoGpuSeen].libraries == ("libcudnn.so.9",)
    assert found(begin(), wrote(DLOPEN))[NoGpuSeen].libraries == ()


def test_one_limit_beyond_the_card_is_not_several() -> None:
    assert found(begin(), limited(False, 160 * GIB))[LimitsBeyondCard].limits == (160 * GIB,)


def test_what_was_refused_and_is_so_all_the_same_is_no_matter() -> None:
    refused = asked_growth(error="ValueError: Cannot set memory growth on device when virtual devices configured")
    assert CallRefused in found(begin(), refused, effective(False))
    assert found(begin(), refused, effective(True)) == []
    too_late = "RuntimeError: Physical devices cannot be modified after being initialized"
    late = asked_growth(on=False, error=too_late)
    assert found(begin(), late, effective(False)) == []


def test_growth_that_the_environment_turned_off_was_not_dropped_by_a_limit() -> None:
    calls = [asked_growth(line=15), *limited(False, 4 * GIB)]
    assert GrowthDropped in found(begin(), initialised(), calls)
    told = found(begin(), initialised(TF_FORCE_GPU_ALLOW_GROWTH="false"), calls)
    assert GrowthDropped not in told
    assert told[GrowthOverridden].word == "false"


def rising(limit: int | None) -> list[events.Event]:
    """Return readings in which 1 MiB a second comes into use for five minutes, from 60 GiB on, in a pool of 61 GiB."""
    return [
        reading(3.0 + i, 60 * GIB + i * MIB, 60 * GIB + i * MIB, 61 * GIB if limit else None, limit) for i in range(300)
    ]


def test_a_leak_ends_where_the_card_does() -> None:
    full = s.device_reading(303.0, {100: 62 * GIB, 900: 77 * GIB})
    left = found(begin(), effective(True), rising(130 * GIB), full)[Leak].left_s
    assert left is not None and 10 * 60 <= left < 20 * 60
    # The limit that cuda_malloc_async reports may be exceeded.
    free = s.device_reading(303.0, {100: 62 * GIB})
    asynchronous = effective(True, allocator="cuda_malloc_async")
    beyond = [msgspec.structs.replace(one, limit=50 * GIB) for one in rising(None) if isinstance(one, events.Allocator)]
    left = found(begin(), asynchronous, beyond, free)[Leak].left_s
    assert left is not None and 22 * 3600 <= left < 23 * 3600


def test_between_several_gpus_nccl_has_its_buffers() -> None:
    def beside(size: int, *cards: int) -> Found:
        stream = [*begin(gpus=2), *(on_card(index, True) for index in cards)]
        stream += [reading(3.0, GIB, GIB, GIB, name=f"GPU:{index}") for index in cards]
        return found(stream, [s.device_reading(4.0 + i / 4, {100: GIB + size}) for i in range(3)])

    assert OutsidePool in beside(1600 * MIB, 0)
    assert OutsidePool not in beside(1600 * MIB, 0, 1)
    assert beside(3 * GIB, 0, 1)[OutsidePool].between_gpus


def test_between_the_ranks_of_a_job_nccl_has_its_buffers_too() -> None:
    stream = [*begin(), effective(True), reading(3.0, GIB, GIB, GIB)]
    stream += [s.device_reading(4.0 + i / 4, {100: GIB + 1500 * MIB}) for i in range(3)]
    assert OutsidePool in found(stream)
    assert isinstance(stream[0], events.Session)
    stream[0] = msgspec.structs.replace(stream[0], placement=Placement(rank=0, ranks=2, host="box"))
    assert OutsidePool not in found(stream)


def test_kernels_that_are_all_loaded_at_once_are_named() -> None:
    at_once = initialised(CUDA_MODULE_LOADING="EAGER")
    held = [s.device_reading(4.0 + i / 4, {100: 3 * GIB}) for i in range(3)]
    for environment, named in ((at_once, True), (initialised(), False)):
        finding = found(begin(), environment, effective(True), reading(3.0, GIB, GIB, GIB), held)[OutsidePool]
        assert finding.eager is named


def test_what_a_process_had_that_has_ended_is_told_no_more_while_others_go_on() -> None:
    trained = [*begin(), effective(False), reading(3.0, 33 * MIB, 908 * MIB, POOL_AT_ONCE)]
    trained += [events.Functions(t=4.0, pid=100, functions=[events.Traced("step", 9, 9, "train.py", 12)])]
    gone = events.HookEnd(t=5.0, pid=100, reason=events.HookEnding.EXIT)
    assert WholeCard in found(trained, gone) and Retraced in found(trained, gone)
    after: list[events.Event] = [
        s.process(6.0, 200),
        s.hook(6.1, 200),
        msgspec.structs.replace(initialised(t=6.5), pid=200),
    ]
    after += [s.alive(12.0, 200, 900)]
    # The process that is left is not expected to use a GPU either.
    assert found(trained, gone, after) == []
