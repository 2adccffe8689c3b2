"""The rule for a limit that was set, and that hardly fits what the run needs."""

from collections.abc import Iterator

from tfmemtop.events.device_names import DeviceKind
from tfmemtop.findings.finding import DeviceFinding, Said, Severity
from tfmemtop.findings.names import place_name
from tfmemtop.findings.remedy import Action, Remedy, raise_limit
from tfmemtop.findings.run_devices import run_devices
from tfmemtop.state import State
from tfmemtop.units import format_bytes

JUST_ABOVE = 0.95
"""Peak divided by limit. BFC rounds sizes and splits chunks, so a pool is rarely filled that far by chance."""


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


def tight_limit(state: State) -> Iterator[TightLimit]:
    """Find devices where the peak comes close to a limit that the user or the script set."""
    for device in [*run_devices(state), *run_devices(state, DeviceKind.CPU)]:
        limit, peak = device.asked_limit, device.peak
        if limit is None or not peak or device.asynchronous or device.hooked.out_of_memory:
            continue
        if limit * JUST_ABOVE <= peak:
            yield TightLimit(device.place, limit=limit, peak=peak)
