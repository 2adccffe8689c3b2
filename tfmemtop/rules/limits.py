"""The rule for a limit that was set, and that does not fit what the run needs."""

from collections.abc import Iterator
from dataclasses import dataclass

from tfmemtop.events.device_names import DeviceKind, is_gpu
from tfmemtop.rules.finding import DeviceFinding, Question, Severity
from tfmemtop.rules.remedy import Action, Remedy, raise_limit
from tfmemtop.rules.run_devices import RunDevice, run_devices
from tfmemtop.state import State
from tfmemtop.units import GIB

JUST_ABOVE = 0.95
"""Peak divided by limit. BFC rounds sizes and splits chunks, so a pool is rarely filled that far by chance."""

FAR_ABOVE = 3
FAR_AT_LEAST = GIB
LONG_ENOUGH_S = 60.0
"""Seconds. A shorter run has not shown its peak yet."""


@dataclass(frozen=True, slots=True)
class TightLimit(DeviceFinding):
    """The peak in use comes close to the limit; bytes."""

    answers = Question.EFFICIENTLY
    severity = Severity.INFO
    limit: int
    peak: int

    @property
    def remedies(self) -> tuple[Remedy, ...]:
        return raise_limit(on_cpu=self.place.on_cpu), Remedy(Action.FIND_LIMIT)


@dataclass(frozen=True, slots=True)
class LooseLimit(DeviceFinding):
    """Without growth all of the limit is held, and it lies far above the peak in use; bytes."""

    answers = Question.EFFICIENTLY
    severity = Severity.INFO
    remedies = Remedy(Action.FIND_LIMIT), Remedy(Action.GROWTH_ON), Remedy(Action.SET_LIMIT)

    limit: int
    peak: int


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
