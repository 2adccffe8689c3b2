"""The rules for memory of XLA that has no name, and for XLA reports that were requested and are missing."""

from collections.abc import Iterator
from functools import lru_cache

from tfmemtop.events import Holders, XlaMissing
from tfmemtop.events.machine import DeviceKind, is_cpu
from tfmemtop.findings.finding import DeviceFinding, Finding, Said, Severity
from tfmemtop.findings.names import place_name
from tfmemtop.findings.remedy import Action
from tfmemtop.findings.rules import rule
from tfmemtop.findings.run_devices import hooked_of_run, run_devices
from tfmemtop.state import State
from tfmemtop.state.model import Hooked
from tfmemtop.state.operation_names import Phase, named
from tfmemtop.state.windows import REMEMBERED, unpacked
from tfmemtop.units import format_bytes

_SHARE = 0.5  # of the peak, above which a buffer is reported


class Nameless(DeviceFinding, frozen=True):
    """One allocation of ``bytes``, more than half of the ``peak``, belongs to no operation that TensorFlow names."""

    remedies = (Action.XLA_REPORT,)

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


@rule(280)
def nameless(state: State) -> Iterator[Nameless]:
    """Find devices where most of a peak is one allocation without a name."""
    places = {
        (one.pid, one.name): one.place for kind in (DeviceKind.GPU, DeviceKind.CPU) for one in run_devices(state, kind)
    }
    for pid, hooked in hooked_of_run(state):
        if any(cluster.missing is not None for cluster in hooked.clusters.values()):
            continue  # a report was requested and is missing for a known reason: a second request would not help
        for device, windows in hooked.windows.items():
            newest = next((one for one in reversed(windows.newest) if not one.is_missing), None)
            place = places.get((pid, device))
            size = _largest_nameless(newest, hooked) if newest else 0
            if newest and place and size > _SHARE * newest.peak:
                yield Nameless(place, size, newest.peak)


def _largest_nameless(window: Holders, hooked: Hooked) -> int:
    """Return the bytes of the largest nameless allocation of *window* that is not in a report; 0 if there is none."""
    reported = {cluster.temporary for cluster in hooked.clusters.values()}
    # As long as no function is known, one is taken to be compiled on a GPU, where Keras does so by itself.
    courses = hooked.steps.courses.values()
    compiled = any(course.function.compiled for course in courses) if courses else not is_cpu(window.device)
    return max((size for size in _nameless_sizes(window, compiled) if size not in reported), default=0)


@lru_cache(REMEMBERED)
def _nameless_sizes(window: Holders, compiled: bool) -> list[int]:
    """Return the bytes of each allocation in *window* that has the name of a whole function.

    Where functions were *compiled*, also of each without a name: else that is no buffer of XLA's, but such as an array.
    """
    course = unpacked(window)
    return [
        kind.requested
        for kind in course.kinds
        if kind.window == window.window  # the names of older allocations were never recorded
        and (named(course.name(kind)).phase is Phase.FUNCTION if course.name(kind) else compiled)
    ]


@rule(290)
def report_missing(state: State) -> Iterator[ReportMissing]:
    """Find the reasons for which XLA's reports were requested and are missing, at most three."""
    found = {
        ReportMissing(cluster.missing, cluster.name, cluster.detail): None
        for _, hooked in hooked_of_run(state)
        for cluster in hooked.clusters.values()
        if cluster.missing is not None
    }
    yield from list(found)[:3]  # more of them would add nothing new
