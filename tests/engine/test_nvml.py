"""NVML's answers, good and bad, one call at a time. Whole machines are in ``test_nvml_tables.py``."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pynvml
import pytest

from tests.nvml_tables import GIB, NOT_SUPPORTED, Table, card, memory, play, row, sample
from tfmemtop.engine.sources.nvml import Nvml
from tfmemtop.events import DeviceProcess
from tfmemtop.findings.notices import say_kind


def failing(code: int) -> Callable[..., Any]:
    def fail(*_: Any, **__: Any) -> Any:
        raise pynvml.NVMLError(code)

    return fail


def library(**changes: Any) -> Any:
    """Return a driver with one card and two processes; *changes* replace its functions."""
    one = card(
        UUID="GPU-1",
        Name="NVIDIA H200",
        MigMode=NOT_SUPPORTED,
        MemoryInfo=memory(80 * GIB, 0, 4 * GIB),
        MemoryInfo_v2=memory(80 * GIB, GIB, 3 * GIB),
        UtilizationRates=SimpleNamespace(gpu=45, memory=22),
        PowerUsage=269_400,
        ComputeRunningProcesses_v3=[row(7, GIB), row(8, 2 * GIB)],
        GraphicsRunningProcesses_v3=[row(7, GIB)],
        ProcessUtilization=[sample(8, 10, 5, at=1), sample(8, 30, 9, at=2)],
    )
    built = play(Table([one]))
    vars(built).update(changes)
    return built


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
    assert not any(trouble.kind for trouble in first.troubles)


def test_the_fan_of_a_card_that_has_one() -> None:
    cooled = Nvml(library(nvmlDeviceGetFanSpeed=lambda _: 37)).read().readings[0]
    (bare,) = Nvml(library(nvmlDeviceGetFanSpeed=failing(pynvml.NVML_ERROR_NOT_SUPPORTED))).read().readings
    assert (cooled.fan, bare.fan) == (37, None)
    assert bare.lacking == cooled.lacking


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
        "nvmlDeviceGetName",
        "nvmlDeviceGetMemoryInfo",
        "nvmlDeviceGetUtilizationRates",
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
    ("code", "words"),
    [
        (pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH, "does not fit"),
        (pynvml.NVML_ERROR_LIBRARY_NOT_FOUND, "no NVIDIA driver"),
        (pynvml.NVML_ERROR_UNKNOWN, "cannot be read"),
    ],
)
def test_a_driver_that_does_not_answer_is_told_once_with_a_remedy(code: int, words: str) -> None:
    nvml = Nvml(library(nvmlInit=failing(code)))
    (trouble,) = nvml.read().troubles
    said = say_kind(trouble.kind, trouble.detail)
    assert words in said.text
    assert said.remedy
    assert nvml.read().troubles == []
