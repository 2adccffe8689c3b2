"""The verdict on a whole run: the most important of its findings, and how much memory it held. Pure."""

import signal
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, auto

from tfmemtop.ending import Ending
from tfmemtop.findings.ending import ended
from tfmemtop.findings.finding import Finding
from tfmemtop.findings.limits import TightLimit
from tfmemtop.findings.memory import AllocationFailed, CrashedWhenFull, NoRoom
from tfmemtop.findings.notices import Noticed
from tfmemtop.findings.questions import Peaks, peaks, pool_kind
from tfmemtop.findings.run_devices import hooked_of_run
from tfmemtop.findings.run_review import HeldFinding, RunReview
from tfmemtop.safe import safe
from tfmemtop.state import State
from tfmemtop.state.model import RunState
from tfmemtop.units import format_bytes


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


_STOPPED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
"""The signals that end a run on purpose."""

WIDTH = 96
LINES = 2


def say_verdict(verdict: Verdict) -> str:
    """Return the fullest text of the verdict that fits into two lines of 96 characters."""
    for text in (safe(" ".join(way.split())) for way in _ways(verdict)):
        if _fits(text):
            return text
    while ". " in text:  # even the shortest is too long: its last sentences are left out
        text = text[: text.rindex(". ") + 1]
        if _fits(text):
            return text
    return textwrap.shorten(text, WIDTH * LINES - LINES, placeholder=" …")


def _fits(text: str) -> bool:
    return len(textwrap.wrap(text, WIDTH)) <= LINES


def _ways(verdict: Verdict) -> Iterator[str]:
    """Yield the possible texts of the verdict, the fullest first."""
    first = verdict.first.said.headline if verdict.first is not None else _nothing(verdict)
    if not verdict.explained:
        how = ended(verdict.how, running=verdict.running, left=verdict.left)
        run = f"Run {verdict.run}{'' if verdict.how else ':'} {how}"
        yield f"{run}. {_held(verdict)} {first}"
        if verdict.peaks.in_use is not None:
            yield f"{run}. At most {format_bytes(verdict.peaks.in_use)} were in use{_on_one(verdict)}. {first}"
        yield f"{run}. {first}"
    yield first


def _on_one(verdict: Verdict) -> str:
    return " on a GPU" if verdict.peaks.several else ""


_UNREAD = {
    Unread.NO_TENSORFLOW: "tfmemtop saw no process use TensorFlow.",
    Unread.NO_CPU_POOL: "On the CPU tfmemtop reads TensorFlow's memory only in a BFC pool: add --cpu-pool SIZE.",
    Unread.UNKNOWN: "No memory of TensorFlow was read.",
}


def _nothing(verdict: Verdict) -> str:
    if verdict.unread is not None:
        return ""
    if verdict.how is not None and verdict.how.good:
        return "Nothing needs to be changed."
    if verdict.running:
        return "So far no setting needs a change."
    stopped = verdict.how is None or verdict.how.signal in _STOPPED
    return "Up to then no setting needed a change." if stopped else "Its memory does not explain that."


def _held(verdict: Verdict) -> str:
    peaks = verdict.peaks
    if verdict.unread is not None:
        return _UNREAD[verdict.unread]
    held = ""
    if peaks.process_total:
        held = f"It held up to {format_bytes(peaks.process_total)} {'on a GPU' if peaks.several else 'of the GPU'}"
    if peaks.in_use is None:
        return f"{held}."
    use = f"at most {format_bytes(peaks.in_use)} were in use"
    if peaks.pool is not None:
        use += f" in a pool of {format_bytes(peaks.pool)}"
    return f"{held}; {use}." if held else f"{use[0].upper()}{use[1:]}."
