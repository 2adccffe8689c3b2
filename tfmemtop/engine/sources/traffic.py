"""The traffic of a GPU over PCIe and NVLink, as the driver's performance monitor (GPM) has it: from Hopper on.

The driver's other figures are of no use. Its counter of PCIe's bytes has 32 bits, and overflows in a tenth of a second.
``nvmlDeviceGetPcieThroughput`` blocks for 20 ms in each direction, and says what it saw in these.
"""

import time
from collections.abc import Callable
from typing import Any

from tfmemtop.events import Traffic
from tfmemtop.units import MIB

_METRICS = (21, 20, 60, 61)
"""NVML_GPM_METRIC_: PCIE_RX_PER_SEC, PCIE_TX_PER_SEC, NVLINK_TOTAL_RX_PER_SEC, NVLINK_TOTAL_TX_PER_SEC, in MiB."""

_LEAST_S = 0.1  # between two samples, as nvml.h asks


class TrafficMeter:
    """The traffic of one whole card."""

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
        if None in self._samples or not self._samples or now - self._sampled_at < _LEAST_S:
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
        asked.numMetrics, asked.sample1, asked.sample2 = len(_METRICS), before, after
        for metric, number in zip(asked.metrics, _METRICS, strict=False):
            metric.metricId = number
        if self._ask("nvmlGpmMetricsGet", asked) is None:
            return None
        rates = [_bytes(metric) for metric, _ in zip(asked.metrics, _METRICS, strict=False)]
        return Traffic(*rates) if any(rate is not None for rate in rates) else None

    def close(self) -> None:
        """Free the samples."""
        for sample in self._samples:
            if sample is not None:
                self._ask("nvmlGpmSampleFree", sample)
        self._samples = []


def _bytes(metric: Any) -> int | None:
    # A card without NVLink has no figure there, or 0. The comparison excludes what is not a number.
    return round(metric.value * MIB) if metric.nvmlReturn == 0 and 0 <= metric.value < 1e9 else None
