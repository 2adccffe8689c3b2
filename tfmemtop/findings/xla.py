"""The rules for memory of XLA that has no name, and for XLA reports that were requested and are missing."""

from collections.abc import Iterator

from tfmemtop.events import XlaMissing
from tfmemtop.events.device_names import DeviceKind
from tfmemtop.findings.finding import DeviceFinding, Finding, Said, Severity
from tfmemtop.findings.names import place_name
from tfmemtop.findings.remedy import Action, Remedy
from tfmemtop.findings.run_devices import hooked_of_run, run_devices
from tfmemtop.state import State
from tfmemtop.state.unnamed_buffers import unnamed_buffers
from tfmemtop.units import format_bytes


class Nameless(DeviceFinding, frozen=True):
    """One allocation of ``bytes``, more than half of the ``peak``, belongs to no operation that TensorFlow names."""

    remedies = (Remedy(Action.XLA_REPORT),)

    bytes: int
    peak: int

    @property
    def severity(self) -> Severity:
        return Severity.INFO

    @property
    def said(self) -> Said:
        where = place_name(self.place)
        return Said(
            f"{where}: {format_bytes(self.bytes)} of the {format_bytes(self.peak)} at a step's peak are one allocation "
            "without a name.",
            "TensorFlow names no operation for it. If the function was compiled with XLA, as Keras does on a GPU by "
            "default, it is XLA's temporary buffer, and XLA can write down what lies in it. Steps of such a run were 9 "
            "to 14 % slower on an H100.",
        )


class ReportMissing(Finding, frozen=True):
    """There is no XLA report, though it was requested; where ``cluster`` is given, none of that cluster."""

    why: XlaMissing
    cluster: str
    detail: str

    @property
    def severity(self) -> Severity:
        return Severity.INFO

    @property
    def said(self) -> Said:
        of = f" of {self.cluster}" if self.cluster else ""
        return Said(f"There is no report of XLA's buffers{of}: {self.why.text.format(detail=self.detail)}.")


def nameless(state: State) -> Iterator[Nameless]:
    """Find devices where most of a peak is one allocation without a name."""
    places = {
        (one.pid, one.name): one.place for kind in (DeviceKind.GPU, DeviceKind.CPU) for one in run_devices(state, kind)
    }
    for buffer in unnamed_buffers(state):
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
