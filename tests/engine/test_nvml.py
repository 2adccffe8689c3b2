"""NVML's answers, good and bad, one call at a time. Whole machines are in ``test_nvml_tables.py``."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pynvml
import pytest

from tests.nvml_tables import GIB, MIB, NOT_SUPPORTED, TABLES, Table, card, memory, play, row, sample
from tfmemtop.engine.sources.nvml import Nvml
from tfmemtop.events import DeviceProcess, Traffic
from tfmemtop.findings.rules.notices import say


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


def test_the_coders_of_a_card_that_has_them() -> None:
    video = library(
        nvmlDeviceGetEncoderUtilization=lambda _: [12, 167000], nvmlDeviceGetDecoderUtilization=lambda _: [34, 167000]
    )
    coding, bare = Nvml(video).read().readings[0], Nvml(library()).read().readings[0]
    assert (coding.encoder, coding.decoder, bare.encoder, bare.decoder) == (12, 34, None, None)
    assert coding.further == ("encoder 12%", "decoder 34%") and bare.further == ()
    assert bare.lacking == coding.lacking


PCIE_OUT, PCIE_IN, NVLINK_IN, NVLINK_OUT = 20, 21, 60, 61  # NVML_GPM_METRIC_ in nvml.h


def monitored(*rates: dict[int, float], **changes: Any) -> Any:
    """Return a driver whose monitor has *rates*, in MiB a second, between successive samples, by metric."""
    turns = iter(rates)

    def get(asked: Any) -> Any:
        assert asked.version == pynvml.NVML_GPM_METRICS_GET_VERSION and asked.sample1 and asked.sample2
        found = next(turns)
        for metric in asked.metrics[: asked.numMetrics]:
            known = metric.metricId in found
            metric.nvmlReturn = 0 if known else pynvml.NVML_ERROR_NOT_SUPPORTED
            metric.value = found[metric.metricId] if known else 0
        return asked

    functions = {
        "c_nvmlGpmMetricsGet_t": pynvml.c_nvmlGpmMetricsGet_t,
        "NVML_GPM_METRICS_GET_VERSION": pynvml.NVML_GPM_METRICS_GET_VERSION,
        "nvmlGpmQueryDeviceSupport": lambda _: SimpleNamespace(isSupportedDevice=1),
        "nvmlGpmSampleAlloc": lambda: pynvml.c_nvmlGpmSample_t(pynvml.struct_c_nvmlGpmSample_t()),
        "nvmlGpmSampleGet": lambda _, sample: sample,
        "nvmlGpmSampleFree": lambda _: None,
        "nvmlGpmMetricsGet": get,
    }
    return library(**{**functions, **changes})


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Return a list whose first entry is what the reader of the traffic takes for the time."""
    now = [100.0]
    monkeypatch.setattr("tfmemtop.engine.sources.nvml_calls.time", SimpleNamespace(monotonic=lambda: now[0]))
    return now


def test_traffic_is_that_between_two_readings(clock: list[float]) -> None:
    nvml = Nvml(monitored({PCIE_IN: 2048, PCIE_OUT: 0.5, NVLINK_IN: 1, NVLINK_OUT: 0}, {PCIE_IN: 100, PCIE_OUT: 1}))
    assert nvml.traffic() == {}, "the library is not open yet"
    assert nvml.read().readings[0].traffic is None, "one sample says nothing"
    clock[0] += 1
    (reading,) = nvml.read().readings
    assert reading.traffic == Traffic(pcie_in=2 * GIB, pcie_out=MIB // 2, nvlink_in=MIB, nvlink_out=0)
    assert reading.further == ("PCIe 2.0G/s in, 512.0K/s out", "NVLink 1.0M/s in, 0B/s out")
    assert nvml.traffic() == {0: reading.traffic}, "samples may not be closer together than 0.1 s"
    clock[0] += 0.2
    assert nvml.traffic() == {0: Traffic(pcie_in=100 * MIB, pcie_out=MIB, nvlink_in=None, nvlink_out=None)}
    nvml.close()


REFUSED = failing(pynvml.NVML_ERROR_NO_PERMISSION)


@pytest.mark.parametrize(
    ("driver", "why"),
    [
        (monitored({}), "no figure is supported"),
        (monitored({PCIE_IN: float("nan"), NVLINK_IN: -1.0, PCIE_OUT: float("inf")}), "no figure is possible"),
        (monitored(nvmlGpmSampleGet=REFUSED), "this user may not"),
        (library(), "an old driver"),
    ],
    ids=lambda value: value.replace(" ", "-") if isinstance(value, str) else "",
)
def test_traffic_that_is_not_known_is_not_shown(driver: Any, why: str, clock: list[float]) -> None:
    nvml = Nvml(driver)
    nvml.read()
    clock[0] += 1
    (reading,) = nvml.read().readings
    assert reading.further == (), why
    assert reading.lacking == Nvml(library()).read().readings[0].lacking


def test_a_slice_of_a_card_has_no_traffic_of_its_own(clock: list[float]) -> None:
    driver = play(TABLES["MIG"])
    vars(driver).update(vars(monitored({PCIE_IN: 1}, {PCIE_IN: 1})) | vars(driver))
    nvml = Nvml(driver)
    nvml.read()
    clock[0] += 1
    assert [reading.traffic for reading in nvml.read().readings] == [None, None]


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
    said = say(trouble)
    assert words in said.text
    assert said.remedy
    assert nvml.read().troubles == []
