"""The rule for a limit that was set, and that does not fit what the run needs."""

from collections.abc import Iterator

from tfmemtop.events.device_names import DeviceKind, is_gpu
from tfmemtop.findings.cause import Key
from tfmemtop.findings.finding import DeviceFinding, Said, Severity
from tfmemtop.findings.names import place_name
from tfmemtop.findings.remedy import Action, Remedy, raise_limit
from tfmemtop.findings.run_devices import RunDevice, run_devices
from tfmemtop.state import State
from tfmemtop.units import GIB, format_bytes

JUST_ABOVE = 0.95
"""Peak divided by limit. BFC rounds sizes and splits chunks, so a pool is rarely filled that far by chance."""

FAR_ABOVE = 3
FAR_AT_LEAST = GIB
LONG_ENOUGH_S = 60.0
"""Seconds. A shorter run has not shown its peak yet."""


class TightLimit(DeviceFinding, frozen=True):
    """The peak in use comes close to the limit; bytes."""

    severity = Severity.INFO
    limit: int
    peak: int

    @property
    def remedies(self) -> tuple[Remedy, ...]:
        return raise_limit(self.limit, on_cpu=self.place.on_cpu), Action.FIND_LIMIT

    @property
    def said(self) -> Said:
        return Said(
            f"{place_name(self.place)}: the peak in use is {self.peak / self.limit:.0%} of the limit.",
            "What fits depends on the order of allocations too: free memory in pieces does not add up. A try finds how "
            "much more is enough. Larger batches or another model need another limit.",
            figures=f"The peak was {format_bytes(self.peak)}, the limit is {format_bytes(self.limit)}.",
        )


class LooseLimit(DeviceFinding, frozen=True):
    """Without growth all of the limit is held, and it lies far above the peak in use; bytes."""

    key = Key.RESERVED

    severity = Severity.INFO
    remedies = Action.FIND_LIMIT, Action.GROWTH_ON, Action.SET_LIMIT

    limit: int
    peak: int

    @property
    def said(self) -> Said:
        return Said(
            f"{place_name(self.place)}: the limit is {self.limit / self.peak:.0f} times the peak in use so far, and "
            "without growth TensorFlow holds all of it.",
            "Without growth the pool takes its whole limit at the first allocation. The script may still need what "
            "it has not needed so far, as for a validation with larger batches: let it reach its heaviest part "
            "before you lower the limit.",
            figures=f"The limit is {format_bytes(self.limit)}, the peak {format_bytes(self.peak)}.",
        )


def limit_and_peak(state: State) -> Iterator[TightLimit | LooseLimit]:
    """Find devices where a limit that the user or the script set lies far above the peak, or hardly above it."""
    run = state.run
    for device in [*run_devices(state), *run_devices(state, DeviceKind.CPU)]:
        limit, peak = device.asked_limit, device.peak
        if run is None or limit is None or not peak or device.asynchronous or device.hooked.out_of_memory:
            continue
        if limit * JUST_ABOVE <= peak:
            yield TightLimit(device.place, limit=limit, peak=peak)
        elif _held_for_nothing(device, limit, peak, run.started):
            yield LooseLimit(device.place, limit=limit, peak=peak)


def _held_for_nothing(device: RunDevice, limit: int, peak: int, started: float) -> bool:
    reserved = is_gpu(device.name) and device.growth is False
    far_above = limit >= FAR_ABOVE * peak and limit - peak >= FAR_AT_LEAST
    return reserved and far_above and device.trend is not None and device.trend.end - started >= LONG_ENOUGH_S
