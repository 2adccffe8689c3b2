"""The verdict on a whole run: the most important of its findings, and how much memory it held. Pure."""

from dataclasses import dataclass
from enum import Enum, auto

from tfmemtop.ending import Ending
from tfmemtop.findings.finding import Finding
from tfmemtop.findings.limits import TightLimit
from tfmemtop.findings.memory import AllocationFailed, CrashedWhenFull, NoRoom
from tfmemtop.findings.notices import Noticed
from tfmemtop.findings.questions import Peaks, peaks, pool_kind
from tfmemtop.findings.run_devices import hooked_of_run
from tfmemtop.findings.run_review import HeldFinding, RunReview
from tfmemtop.state import State
from tfmemtop.state.model import RunState


class Unread(Enum):
    """Why nothing was read of TensorFlow's memory."""

    NO_TENSORFLOW = auto()  # no process has imported it, as far as was seen
    NO_CPU_POOL = auto()  # it used the CPU without a pool that can be read
    UNKNOWN = auto()


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict on run number ``run``.

    ``first`` is the most important finding, ``None`` if nothing was found. ``how`` is how the run ended, ``None`` if
    it is ``running`` or the end was not seen. ``unread`` is why nothing was read of TensorFlow's memory, ``None`` if
    something was read.
    """

    run: int
    how: Ending | None
    running: bool
    left: bool  # tfmemtop had not started it, and left it before its end
    peaks: Peaks
    first: Finding | None
    unread: Unread | None

    @property
    def explained(self) -> bool:
        """Whether ``first`` explains why the run failed."""
        return self.first is not None and self.first.fatal


def verdict(seen: RunReview) -> Verdict | None:
    """Return the verdict on the run; ``None`` if there was no run."""
    run = seen.state.run
    if run is None:
        return None
    found = weighed(seen)
    first = found[0].finding if found else None
    return Verdict(
        run.run, run.ending, seen.running, run.left and run.going, peaks(run), first, _unread(seen.state, run)
    )


def _unread(state: State, run: RunState) -> Unread | None:
    if run.peak_in_use is not None or run.peak_process_total:
        return None
    if not any(hooked_of_run(state)):
        return Unread.NO_TENSORFLOW
    return Unread.UNKNOWN if pool_kind(run).on_gpu else Unread.NO_CPU_POOL


def weighed(seen: RunReview) -> list[HeldFinding]:
    """Return what was found in the run, the most serious first, without findings that a more serious one includes.

    Of equally serious ones, those come first that held to the run's end: figures of others were no longer true then.
    """
    failed = {
        (held.finding.anatomy.pid, held.finding.anatomy.device)
        for held in seen.held
        if isinstance(held.finding, AllocationFailed)
    }
    crashed = any(isinstance(held.finding, CrashedWhenFull) for held in seen.held)

    def told(finding: Finding) -> bool:
        """Return whether an error, or a crash, reports the same: that there was no room, or hardly any."""
        if isinstance(finding, NoRoom):
            return crashed or (finding.anatomy.pid, finding.anatomy.device) in failed
        if not isinstance(finding, TightLimit):
            return False
        return crashed or finding.place.device in {device for _, device in failed}

    found = [held for held in seen.held if not _aside(held.finding) and not told(held.finding)]
    return sorted(found, key=lambda held: (held.finding.severity, seen.ceased(held.last), held.place))


def _aside(finding: Finding) -> bool:
    return finding.aside or (isinstance(finding, Noticed) and not finding.of_state)
