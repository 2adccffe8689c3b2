"""Figures that could mislead a rule: what is said where the obvious reading of them is the wrong one."""

import msgspec

from tests import streams as s
from tests.streams import GIB, MIB
from tests.verdicts.situations import (
    POOL_AT_ONCE,
    asked,
    begin,
    effective,
    found,
    initialised,
    limited,
    reading,
    steady,
    wrote,
)
from tfmemtop import events
from tfmemtop.verdicts import Finding
from tfmemtop.verdicts.limits import fitting_limit


def busy(
    percent: dict[int, int], held: dict[int, int | None], seconds: int = 50, missing: str | None = None
) -> list[events.AnyEvent]:
    """Each GPU of *percent* busy so much and held by *held*, once a second; the script keeps six cores busy."""
    stream: list[events.AnyEvent] = []
    for t in range(3, 3 + seconds):
        for index, share in percent.items():
            card = s.device_reading(float(t), held, index, missing)
            stream.append(msgspec.structs.replace(card, utilisation=share))
        workers = [events.ProcessReading(100, 620.0, GIB), events.ProcessReading(900, 0.0, GIB)]
        stream.append(events.ProcessReadings(t=float(t), processes=workers))
    return stream


def on_card(index: int, growth: bool = False) -> events.Effective:
    return effective(growth, name=f"GPU:{index}", uuid=f"GPU-{index}")


def test_a_gpu_that_is_reserved_and_never_used_does_not_wait_for_its_input() -> None:
    text = found(begin(gpus=2), on_card(0), on_card(1), busy({0: 90, 1: 0}, {100: 138 * GIB}))["full-but-idle"].text
    assert text.startswith("GPU 1: 138.0 GiB of 140.0 GiB are taken")
    assert "while GPU 0 was busy for 90%: the script seems to compute on that one alone." in text
    both = found(begin(gpus=2), on_card(0), on_card(1), busy({0: 3, 1: 0}, {100: 138 * GIB}))["full-but-idle"].text
    assert "likely waits for the host" in both


def test_a_card_that_others_fill_says_nothing_of_the_run() -> None:
    held: dict[int, int | None] = {100: 2 * GIB, 900: 136 * GIB}
    assert "full-but-idle" not in found(begin(others=136 * GIB), effective(True), busy({0: 0}, held))
    unnamed: dict[int, int | None] = {900: 138 * GIB}
    alone = busy({0: 0}, unnamed, missing="inside a container")
    assert "full-but-idle" not in found(begin(others=136 * GIB), effective(True), alone)


def test_the_time_told_is_the_time_looked_at() -> None:
    text = found(begin(), effective(False), busy({0: 4}, {100: 138 * GIB}, seconds=40))["full-but-idle"].text
    assert "4% of the last 25 s" in text


def test_a_peak_that_the_script_had_tensorflow_forget_is_still_the_peak() -> None:
    needed = steady(20.0, 3900 * MIB, 3900 * MIB, 4 * GIB)
    forgotten = steady(22.0, 3000 * MIB, 1000 * MIB, 4 * GIB, since=21.0)
    assert found(begin(), effective(True), needed, forgotten) == {}
    taken = reading(3.0, 100 * GIB, 120 * GIB, POOL_AT_ONCE), reading(4.0, GIB, GIB, POOL_AT_ONCE)
    whole = found(begin(), effective(False), taken)["whole-card"]
    assert whole.level == "info" and "120.0 GiB at the peak" in whole.text


def test_what_is_idle_now_and_was_needed_is_no_reason_for_a_lower_limit() -> None:
    stream = [*begin(), effective(True), *steady(12.0, 908 * MIB, 908 * MIB, 1026 * MIB)]
    stream += steady(20.0, 140 * MIB, 908 * MIB, 1026 * MIB, since=13.0)
    finding = found(stream)["cached-idle"]
    assert "[L]" not in finding.remedy and any("Process(target=" in line for line in finding.code)
    ended = found(stream, events.HookEnd(t=21.0, pid=100, reason="exit"))["cached-idle"].text
    assert "were cached but idle at the end" in ended and "kept them until the process ended" in ended


def twin(command: str) -> list[events.AnyEvent]:
    return [
        s.process(0.7, 200, run=None, command=command),
        s.alive(1.2, 100, 200, 900),
        s.device_reading(3.0, {100: 70 * GIB, 200: 68 * GIB}),
    ]


def test_two_scripts_of_one_name_are_not_one_script() -> None:
    mine = begin(command="python /home/ada/mnist/train.py")
    assert "two-reserve" not in found(mine, effective(False), twin("python /home/bob/resnet/train.py"))
    assert "two-reserve" in found(mine, effective(False), twin("python train.py"))


def test_of_the_other_process_nothing_is_said_that_is_not_known() -> None:
    text = found(begin(), effective(False), twin("python train.py"))["two-reserve"].text
    assert "growth is off in 100" in text and "whether it is on in 200 is not known here" in text
    worker = [s.process(0.7, 200, run=1), s.hook(1.3, 200), effective(True, pid=200), *twin("")[2:]]
    assert "two-reserve" not in found(begin(), effective(False), worker)
    both = [s.process(0.7, 200, run=1), s.hook(1.3, 200), effective(False, pid=200), *twin("")[2:]]
    assert "two processes of this run" in found(begin(), effective(False), both)["two-reserve"].text


def test_others_that_had_gone_before_tensorflow_counted() -> None:
    assert "others-hold" in found(begin(others=60 * GIB), effective(True), reading(3.0, MIB, limit=79 * GIB))
    assert "others-hold" not in found(begin(others=60 * GIB), effective(True), reading(3.0, MIB, limit=138 * GIB))


def test_others_are_told_of_on_every_card() -> None:
    second = s.device_reading(0.55, {900: 60 * GIB}, index=1)
    text = found(begin(gpus=2), second, on_card(0, True), on_card(1, True))["others-hold"].text
    assert text.startswith("GPU 1: other processes held 60.0 GiB")


DRIVERLESS = "E0000 cuda_platform.cc:51] failed call to cuInit: INTERNAL: CUDA error: Failed call to cuInit"
DLOPEN = "W0000 gpu_device.cc:2343] Cannot dlopen some GPU libraries. Please make sure the missing libraries"


def test_a_worker_without_a_gpu_does_not_speak_for_the_script() -> None:
    worker: list[events.AnyEvent] = [s.process(0.7, 200), s.alive(1.2, 100, 200, 900), s.hook(1.3, 200)]
    assert "no-gpu" in found(begin(), wrote(DRIVERLESS))
    assert "no-gpu" not in found(begin(), worker, wrote(DRIVERLESS))


def test_devices_that_were_made_without_a_gpu_are_enough_to_tell() -> None:
    later = s.alive(8.0, 100, 900)
    assert found(begin(), initialised(t=5.0), later) == {}
    assert found(begin(), initialised(t=2.0), later)["no-gpu"].level == "warning"
    assert found(begin(), initialised(t=2.0, error="ValueError: no"), later) == {}
    # Hiding the CPU is another matter.
    cpu = asked("set_visible_devices", "[], CPU")
    assert "no-gpu" in found(begin(), cpu, initialised(t=2.0), later)


def test_a_gpu_that_the_environment_hides_may_be_meant_so() -> None:
    finding = found(begin(), initialised(t=2.0, CUDA_VISIBLE_DEVICES="-1"), s.alive(8.0, 100, 900))["no-gpu"]
    assert finding.level == "info" and "CUDA_VISIBLE_DEVICES=-1 in the environment hides it." in finding.text
    assert not any("pip" in line for line in finding.code)


def test_libraries_are_named_where_tensorflow_names_them() -> None:
    named = wrote("I0000 dso_loader.cc:144] Could not load dynamic library 'libcudnn.so.9'; dlerror: libcudnn\n")
    assert "it could not load libcudnn.so.9." in found(begin(), named, wrote(DLOPEN))["no-gpu"].text
    assert "TF_CPP_MAX_VLOG_LEVEL=1 it names them" in found(begin(), wrote(DLOPEN))["no-gpu"].text


def test_one_limit_beyond_the_card_is_not_several() -> None:
    text = found(begin(), limited(False, 160 * GIB))["logical-beyond-card"].text
    assert "GPU 0 has a limit of 160.0 GiB, and the card has 140.0 GiB: it will run out" in text


def test_what_was_refused_and_is_so_all_the_same_is_no_matter() -> None:
    refused = asked("set_memory_growth", "GPU:0, True", "ValueError: Cannot set memory growth on device when virtual "
                    "devices configured")  # fmt: skip
    assert "growth-refused" in found(begin(), refused, effective(False))
    assert found(begin(), refused, effective(True)) == {}
    late = asked("set_memory_growth", "GPU:0, False", "RuntimeError: Physical devices cannot be modified after being "
                 "initialized")  # fmt: skip
    assert found(begin(), late, effective(False)) == {}


def test_growth_that_the_environment_turned_off_was_not_dropped_by_a_limit() -> None:
    calls = [asked("set_memory_growth", "GPU:0, True", line=15), *limited(False, 4 * GIB)]
    assert "growth-dropped" in found(begin(), initialised(), calls)
    told = found(begin(), initialised(TF_FORCE_GPU_ALLOW_GROWTH="false"), calls)
    assert "growth-dropped" not in told
    assert "TF_FORCE_GPU_ALLOW_GROWTH=false in the environment overrides it" in told["growth-overridden"].text


def pieces(name: str) -> list[events.AnyEvent]:
    cut = events.MemoryMap(
        t=5.0,
        pid=100,
        device=name,
        pool=4 * GIB,
        in_use=3 * GIB,
        chunks=2000,
        chunks_in_use=1000,
        largest_free=100 * MIB,
        fragmentation=0.9,
        biggest=[events.Chunk(0, 512 * MIB, 512 * MIB)],
    )
    return [reading(3.0, 3 * GIB, 3 * GIB, 4 * GIB, 4 * GIB, name=name), cut]


def test_a_pool_in_pieces_is_a_warning_only_once_something_has_failed() -> None:
    stream = [*begin(), effective(True), *pieces("GPU:0")]
    finding = found(stream)["fragmented"]
    assert finding.level == "info" and "whether one is asked for is not known." in finding.text
    failed = events.OutOfMemory(t=5.5, pid=100, message="failed")
    assert found(stream, failed)["fragmented"].level == "warning"


def test_the_cpu_has_no_other_allocator_to_offer() -> None:
    finding = found(begin(gpus=0), effective(True, name="CPU:0"), pieces("CPU:0"))["fragmented"]
    assert "cuda_malloc_async" not in finding.remedy + finding.explanation and not finding.code


def rising(limit: int | None) -> list[events.AnyEvent]:
    """A MiB a second for five minutes, from 60 GiB on, in a pool of 61 GiB."""
    return [
        reading(3.0 + i, 60 * GIB + i * MIB, 60 * GIB + i * MIB, 61 * GIB if limit else None, limit) for i in range(300)
    ]


def test_a_leak_ends_where_the_card_does() -> None:
    full = s.device_reading(303.0, {100: 62 * GIB, 900: 77 * GIB})
    assert "used up in 00:1" in found(begin(), effective(True), rising(130 * GIB), full)["leak"].text
    # What cuda_malloc_async calls its limit may be exceeded.
    free = s.device_reading(303.0, {100: 62 * GIB})
    asynchronous = effective(True, allocator="cuda_malloc_async")
    beyond = [msgspec.structs.replace(one, limit=50 * GIB) for one in rising(None) if isinstance(one, events.Allocator)]
    assert "used up in 22:" in found(begin(), asynchronous, beyond, free)["leak"].text


def test_between_several_gpus_nccl_has_its_buffers() -> None:
    def beside(size: int, *cards: int) -> dict[str, Finding]:
        stream = [*begin(gpus=2), *(on_card(index, True) for index in cards)]
        stream += [reading(3.0, GIB, GIB, GIB, name=f"GPU:{index}") for index in cards]
        return found(stream, [s.device_reading(4.0 + i, {100: GIB + size}) for i in range(3)])

    assert "outside-the-pool" in beside(1600 * MIB, 0)
    assert "outside-the-pool" not in beside(1600 * MIB, 0, 1)
    assert "NCCL's buffers" in beside(3 * GIB, 0, 1)["outside-the-pool"].text


def test_kernels_that_are_all_loaded_at_once_are_named() -> None:
    at_once = initialised(CUDA_MODULE_LOADING="EAGER")
    held = [s.device_reading(4.0 + i, {100: 3 * GIB}) for i in range(3)]
    for environment, named in ((at_once, True), (initialised(), False)):
        text = found(begin(), environment, effective(True), reading(3.0, GIB, GIB, GIB), held)["outside-the-pool"].text
        assert ("CUDA_MODULE_LOADING=EAGER" in text) is named


def test_what_a_process_had_that_has_ended_is_told_no_more_while_others_go_on() -> None:
    trained = [*begin(), effective(False), reading(3.0, 33 * MIB, 908 * MIB, POOL_AT_ONCE)]
    trained += [events.Functions(t=4.0, pid=100, functions=[events.Traced("step", 9, 9, "train.py", 12)])]
    gone = events.HookEnd(t=5.0, pid=100, reason="exit")
    assert {"whole-card", "retracing"} <= found(trained, gone).keys()
    after: list[events.AnyEvent] = [
        s.process(6.0, 200),
        s.hook(6.1, 200),
        msgspec.structs.replace(initialised(t=6.5), pid=200),
    ]
    after += [s.alive(12.0, 200, 900)]
    # Nor does the one that is left want a GPU of its own.
    assert found(trained, gone, after) == {}


def test_the_smallest_limit_that_is_proposed() -> None:
    assert fitting_limit(400_000) == 64 * MIB
    assert fitting_limit(1000 * MIB) == 1100 * MIB
