"""NVML's answers, good and bad. The library's double raises the errors of the real ``pynvml``."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pynvml
import pytest

from tfmemtop.engine.nvml import Nvml
from tfmemtop.events import DeviceProcess

GIB = 1024**3


def failing(code: int) -> Callable[..., Any]:
    def fail(*_: Any, **__: Any) -> Any:
        raise pynvml.NVMLError(code)

    return fail


def row(pid: int, used: int | None) -> SimpleNamespace:
    return SimpleNamespace(pid=pid, usedGpuMemory=used)


def library(**changes: Any) -> Any:
    """A driver with one card and two processes; *changes* replace its functions."""

    def memory(_: Any, version: Any = None) -> Any:
        info = SimpleNamespace(total=80 * GIB, used=3 * GIB, free=76 * GIB, reserved=GIB)
        if version is None:
            info.used += GIB  # version 1 counts the driver's own as used
        return info

    answers: dict[str, Any] = {
        "nvmlInit": lambda: None,
        "nvmlShutdown": lambda: None,
        "nvmlDeviceGetCount": lambda: 1,
        "nvmlDeviceGetHandleByIndex": lambda index: index,
        "nvmlDeviceGetUUID": lambda _: "GPU-1",
        "nvmlDeviceGetName": lambda _: "NVIDIA H200",
        "nvmlDeviceGetMigMode": failing(pynvml.NVML_ERROR_NOT_SUPPORTED),
        "nvmlDeviceGetMemoryInfo": memory,
        "nvmlDeviceGetUtilizationRates": lambda _: SimpleNamespace(gpu=45, memory=22),
        "nvmlDeviceGetPowerUsage": lambda _: 269_400,
        "nvmlDeviceGetTemperature": lambda *_: 42,
        "nvmlDeviceGetComputeRunningProcesses_v3": lambda _: [row(7, GIB), row(8, 2 * GIB)],
        "nvmlDeviceGetGraphicsRunningProcesses_v3": lambda _: [row(7, GIB)],
        "nvmlDeviceGetProcessUtilization": lambda *_: [
            SimpleNamespace(pid=8, timeStamp=1, smUtil=10, memUtil=5),
            SimpleNamespace(pid=8, timeStamp=2, smUtil=30, memUtil=9),
        ],
    }
    constants = {name: getattr(pynvml, name) for name in dir(pynvml) if name.startswith("NVML_")}
    return SimpleNamespace(
        **constants, nvmlMemory_v2=pynvml.nvmlMemory_v2, NVMLError=pynvml.NVMLError, **answers | changes
    )


def test_a_healthy_card() -> None:
    nvml = Nvml(library())
    first, second = nvml.read(), nvml.read()
    (device,) = first.devices
    (reading,) = first.readings
    assert second.devices == []
    assert (device.name, device.uuid, device.total, device.reserved) == ("NVIDIA H200", "GPU-1", 80 * GIB, GIB)
    assert (reading.used, reading.free, reading.utilisation, reading.bandwidth) == (3 * GIB, 76 * GIB, 45, 22)
    assert (reading.power_w, reading.temperature_c) == (269.4, 42)
    assert reading.processes == [
        DeviceProcess(pid=8, used=2 * GIB, sm=30, bandwidth=9),
        DeviceProcess(pid=7, used=GIB, sm=0, bandwidth=0),
    ]
    assert reading.processes_missing is None
    assert not any(trouble.text for trouble in first.troubles)


def test_an_old_driver_without_the_newer_calls() -> None:
    missing = failing(pynvml.NVML_ERROR_FUNCTION_NOT_FOUND)
    ordinary = library()

    def memory(handle: Any, version: Any = None) -> Any:
        return missing() if version else ordinary.nvmlDeviceGetMemoryInfo(handle)

    nvml = Nvml(
        library(
            nvmlDeviceGetMemoryInfo=memory,
            nvmlDeviceGetComputeRunningProcesses_v3=missing,
            nvmlDeviceGetComputeRunningProcesses_v2=lambda _: [row(7, GIB)],
        )
    )
    reading = nvml.read()
    assert reading.devices[0].reserved is None
    assert reading.readings[0].used == 4 * GIB
    assert [process.pid for process in reading.readings[0].processes] == [7]


@pytest.mark.parametrize(
    "name",
    [
        "nvmlDeviceGetUUID",
        "nvmlDeviceGetName",
        "nvmlDeviceGetMemoryInfo",
        "nvmlDeviceGetUtilizationRates",
        "nvmlDeviceGetPowerUsage",
        "nvmlDeviceGetTemperature",
        "nvmlDeviceGetGraphicsRunningProcesses_v3",
        "nvmlDeviceGetProcessUtilization",
    ],
)
@pytest.mark.parametrize("code", [pynvml.NVML_ERROR_NOT_SUPPORTED, pynvml.NVML_ERROR_NO_PERMISSION])
def test_any_call_may_fail_and_the_rest_is_still_told(name: str, code: int) -> None:
    reading = Nvml(library(**{name: failing(code)})).read()
    (one,) = reading.readings
    assert [process.pid for process in one.processes] == [8, 7]
    known = [one.used, one.utilisation, one.power_w, one.temperature_c]
    assert sum(value is None for value in known) <= 1


@pytest.mark.parametrize(
    "changes",
    [
        {"nvmlDeviceGetComputeRunningProcesses_v3": lambda _: [row(7, None), row(8, None)]},
        {
            "nvmlDeviceGetComputeRunningProcesses_v3": failing(pynvml.NVML_ERROR_NOT_SUPPORTED),
            "nvmlDeviceGetGraphicsRunningProcesses_v3": failing(pynvml.NVML_ERROR_NOT_SUPPORTED),
        },
        {
            "nvmlDeviceGetComputeRunningProcesses_v3": lambda _: [],
            "nvmlDeviceGetGraphicsRunningProcesses_v3": lambda _: [],
        },
    ],
)
def test_shares_that_are_not_to_be_had_come_with_the_reason(changes: dict[str, Any]) -> None:
    if "nvmlDeviceGetGraphicsRunningProcesses_v3" not in changes:
        changes["nvmlDeviceGetGraphicsRunningProcesses_v3"] = lambda _: []
    (reading,) = Nvml(library(**changes)).read().readings
    assert reading.processes_missing
    assert all(process.used is None for process in reading.processes)
    assert reading.used == 3 * GIB


def test_a_divided_card_says_so() -> None:
    hidden = {"nvmlDeviceGetComputeRunningProcesses_v3": lambda _: [row(7, None)]}
    hidden["nvmlDeviceGetGraphicsRunningProcesses_v3"] = lambda _: []
    reading = Nvml(library(nvmlDeviceGetMigMode=lambda _: [1, 1], **hidden)).read()
    assert reading.devices[0].mig
    assert "MIG" in (reading.readings[0].processes_missing or "")


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH, "does not fit"),
        (pynvml.NVML_ERROR_LIBRARY_NOT_FOUND, "no NVIDIA driver"),
        (pynvml.NVML_ERROR_DRIVER_NOT_LOADED, "no NVIDIA driver"),
        (pynvml.NVML_ERROR_UNKNOWN, "cannot be read"),
    ],
)
def test_a_driver_that_does_not_answer_is_told_once_with_a_remedy(code: int, words: str) -> None:
    nvml = Nvml(library(nvmlInit=failing(code)))
    (trouble,) = nvml.read().troubles
    assert words in trouble.text
    assert trouble.remedy
    assert nvml.read().troubles == []


def test_a_card_that_falls_off_the_bus_is_told_and_the_others_go_on() -> None:
    lost = failing(pynvml.NVML_ERROR_GPU_IS_LOST)
    ordinary = library()

    def unless_first(name: str) -> Callable[..., Any]:
        return lambda handle, *rest, **more: (lost if handle == 0 else getattr(ordinary, name))(handle, *rest, **more)

    names = [name for name in vars(ordinary) if name.startswith("nvmlDeviceGet")]
    changes: dict[str, Any] = {name: unless_first(name) for name in names}
    changes |= {"nvmlDeviceGetCount": lambda: 2, "nvmlDeviceGetHandleByIndex": lambda index: index}
    reading = Nvml(library(**changes)).read()
    assert [one.used for one in reading.readings] == [None, 3 * GIB]
    (told,) = [trouble for trouble in reading.troubles if trouble.text]
    assert "GPU 0 is lost" in told.text
