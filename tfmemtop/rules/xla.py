"""The rules for memory of XLA that has no name, and for XLA reports that were requested and are missing."""

from collections.abc import Iterator
from dataclasses import dataclass

from tfmemtop.events import XlaMissing
from tfmemtop.events.device_names import DeviceKind
from tfmemtop.rules.finding import DeviceFinding, Finding, Severity
from tfmemtop.rules.remedy import Action, Remedy
from tfmemtop.rules.run_devices import hooked_of_run, run_devices
from tfmemtop.state import State
from tfmemtop.state.nameless import nameless_buffers


@dataclass(frozen=True, slots=True)
class Nameless(DeviceFinding):
    """One allocation of ``bytes``, more than half of the ``peak``, belongs to no operation that TensorFlow names."""

    remedies = (Remedy(Action.XLA_REPORT),)

    bytes: int
    peak: int

    @property
    def severity(self) -> Severity:
        return Severity.INFO


@dataclass(frozen=True, slots=True)
class ReportMissing(Finding):
    """There is no XLA report, though it was requested; where ``cluster`` is given, none of that cluster."""

    why: XlaMissing
    cluster: str
    detail: str

    @property
    def severity(self) -> Severity:
        return Severity.INFO


def nameless(state: State) -> Iterator[Nameless]:
    """Find devices where most of a peak is one allocation without a name."""
    places = {
        (one.pid, one.name): one.place for kind in (DeviceKind.GPU, DeviceKind.CPU) for one in run_devices(state, kind)
    }
    for buffer in nameless_buffers(state):
        if place := places.get((buffer.pid, buffer.device)):
            yield Nameless(place, buffer.bytes, buffer.peak)


def report_missing(state: State) -> Iterator[ReportMissing]:
    """Find the reasons for which XLA's reports were requested and are missing, at most three."""
    found = {
        ReportMissing(cluster.missing, cluster.name, cluster.detail): None
        for _, hooked in hooked_of_run(state)
        for cluster in hooked.clusters.values()
        if cluster.missing is not None
    }
    yield from list(found)[:3]  # more of them would add nothing new
