"""The verdict on a whole run that was reviewed, and the findings in the order of their weight. Pure."""

from dataclasses import dataclass

from tfmemtop.findings.cause import Cause, shortened
from tfmemtop.findings.finding import Finding
from tfmemtop.findings.host_growth import HostGrowth
from tfmemtop.findings.judgement import judged
from tfmemtop.findings.leaks import Leak
from tfmemtop.findings.limits import TightLimit
from tfmemtop.findings.memory import AllocationFailed, NoRoom
from tfmemtop.findings.notices import Noticed
from tfmemtop.findings.run_review import HeldFinding, RunReview

WIDTH = 96
"""Columns of a report."""

_RISES = Leak, HostGrowth
"""What is no cause once it has ceased: memory that rose and then stayed as it was."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict on run number ``run``: its ``cause``."""

    run: int
    cause: Cause

    @property
    def text(self) -> str:
        """The cause in one sentence or two, at most :data:`~tfmemtop.findings.cause.LONGEST` characters."""
        return shortened(self.cause.text)


def verdict(seen: RunReview) -> Verdict | None:
    """Return the verdict on the run; ``None`` if there was no run."""
    run = seen.state.run
    if run is None:
        return None
    found = (
        held.finding for held in weighed(seen) if not (isinstance(held.finding, _RISES) and seen.ceased(held.last))
    )
    cause, _ = judged(seen.state, found, going=seen.running)
    return Verdict(run.run, cause)


def weighed(seen: RunReview) -> list[HeldFinding]:
    """Return what was found in the run, the most serious first, without findings that a more serious one includes.

    Of equally serious ones, those come first that held to the run's end: figures of others were no longer true then.
    """
    failed = [held.finding for held in seen.held if isinstance(held.finding, AllocationFailed)]
    pools = {(one.anatomy.pid, one.anatomy.device) for one in failed}

    def included(finding: Finding) -> bool:
        """Return whether a failure reports the same: that there was no room, or hardly any, or what filled the pool."""
        if isinstance(finding, NoRoom):
            return (finding.anatomy.pid, finding.anatomy.device) in pools
        devices = {one.anatomy.device for one in failed if one.cause.keeps_growing or isinstance(finding, TightLimit)}
        return isinstance(finding, TightLimit | Leak) and finding.place.device in devices

    found = [held for held in seen.held if not _aside(held.finding) and not included(held.finding)]
    return sorted(found, key=lambda held: (held.finding.severity, seen.ceased(held.last), held.place))


def _aside(finding: Finding) -> bool:
    return finding.aside or (isinstance(finding, Noticed) and not finding.of_state)
