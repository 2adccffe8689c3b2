"""Calls of NVIDIA's management library, and why one of its figures is missing.

Every call can fail, return N/A or return an impossible value: in containers, under WSL, on slices of a divided card
(MIG), and on cards that have lost their bus.
"""

import time
from collections.abc import Callable, Sequence
from typing import Any

from tfmemtop.events import Lacking, Level, Notice, NoticeKind, SharesMissing, Traffic, WhyLacking
from tfmemtop.units import MIB

LARGEST_MEMORY = 1 << 50  # bytes; a PiB on one card
LARGEST_POWER_MW = 100_000_000
TEMPERATURES_C = (-100, 300)
LARGEST_PID = 1 << 22  # the kernel's own highest for pid_max

NOT_AVAILABLE = (1 << 64) - 1
"""The value by which NVML reports that it does not know a process's memory (NVML_VALUE_NOT_AVAILABLE)."""

_SHOWN = 24  # characters of an impossible figure
_TOLD = 64  # impossible figures of one reading


def trouble(
    key: str, kind: NoticeKind | None = None, level: Level = Level.INFO, detail: str = "", about: int | None = None
) -> Notice:
    """Return a problem that the user should know, or, with no *kind*, the end of it: a notice without its time."""
    return Notice(t=0.0, key=key, level=level, kind=kind, detail=detail, about=about)


NO_DRIVER = trouble("nvml", NoticeKind.NO_DRIVER)
NO_GPU = trouble("nvml", NoticeKind.NO_GPU)


def unopened(library: Any, error: Exception) -> Notice:
    """Return why the library could not be opened, from the *error* that it raised."""
    code = getattr(error, "value", None)
    if code in (library.NVML_ERROR_LIBRARY_NOT_FOUND, library.NVML_ERROR_DRIVER_NOT_LOADED):
        return NO_DRIVER
    if code == library.NVML_ERROR_LIB_RM_VERSION_MISMATCH:
        return trouble("nvml", NoticeKind.DRIVER_MISMATCH, Level.ERROR)
    if code == library.NVML_ERROR_NO_PERMISSION:
        return trouble("nvml", NoticeKind.DRIVER_FORBIDDEN, Level.ERROR)
    return trouble("nvml", NoticeKind.DRIVER_FAILED, Level.ERROR, str(error))


def lost(index: int) -> Notice:
    """Return the trouble of a card that was there and is there no longer."""
    return trouble(f"gpu{index}", NoticeKind.GPU_LOST, Level.ERROR, about=index)


def no_shares(library: Any, code: int | None, *, mig: bool, vgpu: bool, wsl: bool) -> SharesMissing:
    """Return why the memory of each process is not known.

    *code* is the error code of the call that lists the processes, or ``None`` if that call did not fail.
    """
    if mig:
        return SharesMissing.MIG
    if wsl:
        return SharesMissing.WSL
    if vgpu:
        return SharesMissing.VGPU
    if code == library.NVML_ERROR_FUNCTION_NOT_FOUND:
        return SharesMissing.DRIVER_TOO_OLD
    if code == library.NVML_ERROR_NO_PERMISSION:
        return SharesMissing.USER_FORBIDDEN
    return SharesMissing.NOT_TOLD


class NvmlCalls:
    """The calls for one reading of one card. It stores which figures were refused, and which are impossible."""

    def __init__(self, library: Any) -> None:
        self._library = library
        self._impossible: dict[str, str] = {}
        self.codes: dict[str, int | None] = {}

    def ask(self, name: str, function: str, *arguments: Any, **options: Any) -> Any:
        """Call *function* and return its result.

        The result is ``None`` if the call fails or the library does not have the function. The error code is then
        stored under *name*.
        """
        try:
            answer = getattr(self._library, function)(*arguments, **options)
        except self._library.NVMLError as error:
            self.codes[name] = getattr(error, "value", None)
            return None
        except (AttributeError, UnicodeDecodeError, MemoryError):  # the last if it counts billions of something
            self.codes[name] = self._library.NVML_ERROR_FUNCTION_NOT_FOUND
            return None
        self.codes.pop(name, None)
        return answer

    def first(self, name: str, functions: Sequence[str], *arguments: Any) -> Any:
        """Call the first of *functions* that this driver has, and return its result. The newest comes first."""
        for function in functions:
            answer = self.ask(name, function, *arguments)
            if self.codes.get(name) != self._library.NVML_ERROR_FUNCTION_NOT_FOUND:
                return answer
        return None

    def figure(self, name: str, value: Any, most: int, least: int = 0) -> int | None:
        """Return *value* if it is a whole number from *least* to *most*, else ``None``."""
        if value is None:
            return None
        if type(value) is int and least <= value <= most:
            return value
        self._impossible.setdefault(name, str(value)[:_SHOWN])
        return None

    def lacking(self, *, part: bool, unified: bool) -> list[Lacking]:
        """Return which figures are missing and why.

        *part* is true for a slice of a divided card (MIG), *unified* for a card that has no memory of its own.
        """
        library = self._library
        reasons = {
            library.NVML_ERROR_NOT_SUPPORTED: WhyLacking.NOT_OF_A_PART if part else WhyLacking.NOT_REPORTED,
            library.NVML_ERROR_NO_PERMISSION: WhyLacking.NOT_FOR_USER,
            library.NVML_ERROR_FUNCTION_NOT_FOUND: WhyLacking.OLD_DRIVER,
            library.NVML_ERROR_GPU_IS_LOST: WhyLacking.CARD_LOST,
        }
        names: dict[WhyLacking, list[str]] = {}
        for name, code in self.codes.items():
            if not (unified and name == "memory"):
                names.setdefault(reasons.get(code, WhyLacking.FAILED), []).append(name)
        if self._impossible:
            told = [f"{name} {value}" for name, value in self._impossible.items()]
            names[WhyLacking.IMPOSSIBLE] = told[:_TOLD]
        return [Lacking(why, figures) for why, figures in names.items()]


_TRAFFIC = (21, 20, 60, 61)
"""NVML_GPM_METRIC_: PCIE_RX_PER_SEC, PCIE_TX_PER_SEC, NVLINK_TOTAL_RX_PER_SEC, NVLINK_TOTAL_TX_PER_SEC, in MiB."""

_SAMPLES_APART_S = 0.1  # between two samples, as nvml.h asks


class TrafficMeter:
    """The traffic of one whole card, as the driver's performance monitor (GPM) has it: from Hopper on.

    The driver's other figures are of no use. Its counter of PCIe's bytes has 32 bits, and overflows in a tenth of a
    second. ``nvmlDeviceGetPcieThroughput`` blocks for 20 ms in each direction, and says what it saw in these.
    """

    def __init__(self, library: Any, ask: Callable[..., Any], card: Any) -> None:
        """*ask* calls a function of *library*, and returns ``None`` if it fails."""
        self._library, self._ask, self._card = library, ask, card
        self._samples: list[Any] = []  # the newest is the last
        self._sampled_at = 0.0
        self._traffic: Traffic | None = None
        support = ask("nvmlGpmQueryDeviceSupport", card)
        if support and support.isSupportedDevice:
            self._samples = [ask("nvmlGpmSampleAlloc"), ask("nvmlGpmSampleAlloc")]

    def read(self) -> Traffic | None:
        """Return the mean traffic since the previous reading; ``None`` if it is not known."""
        now = time.monotonic()
        if None in self._samples or not self._samples or now - self._sampled_at < _SAMPLES_APART_S:
            return self._traffic
        before, after = self._samples[::-1]
        if self._ask("nvmlGpmSampleGet", self._card, after) is None:
            return None
        self._traffic = self._between(before, after) if self._sampled_at else None
        self._samples, self._sampled_at = [before, after], now
        return self._traffic

    def _between(self, before: Any, after: Any) -> Traffic | None:
        asked = self._library.c_nvmlGpmMetricsGet_t()
        asked.version = self._library.NVML_GPM_METRICS_GET_VERSION
        asked.numMetrics, asked.sample1, asked.sample2 = len(_TRAFFIC), before, after
        for metric, number in zip(asked.metrics, _TRAFFIC, strict=False):
            metric.metricId = number
        if self._ask("nvmlGpmMetricsGet", asked) is None:
            return None
        rates = [_rate(metric) for metric, _ in zip(asked.metrics, _TRAFFIC, strict=False)]
        return Traffic(*rates) if any(rate is not None for rate in rates) else None

    def close(self) -> None:
        """Free the samples."""
        for sample in self._samples:
            if sample is not None:
                self._ask("nvmlGpmSampleFree", sample)
        self._samples = []


def _rate(metric: Any) -> int | None:
    # A card without NVLink has no figure there, or 0. The comparison excludes what is not a number.
    return round(metric.value * MIB) if metric.nvmlReturn == 0 and 0 <= metric.value < 1e9 else None
