"""The verdict on a whole run: its one cause, and what else is said about it. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, auto

from tfmemtop.ending import Way
from tfmemtop.findings.cause import Cause, Key, shortened
from tfmemtop.findings.diagnosis import rising
from tfmemtop.findings.ending import ended
from tfmemtop.findings.finding import Finding, Severity
from tfmemtop.findings.leaks import Leak
from tfmemtop.findings.limits import TightLimit
from tfmemtop.findings.memory import AllocationFailed, NoRoom
from tfmemtop.findings.notices import Noticed
from tfmemtop.findings.places import spot
from tfmemtop.findings.questions import Peaks, peaks, pool_kind
from tfmemtop.findings.run_devices import hooked_of_run
from tfmemtop.findings.run_review import HeldFinding, RunReview
from tfmemtop.state import State
from tfmemtop.state.model import Hooked, RunState
from tfmemtop.units import format_bytes, spoken

WIDTH = 96
_SILENT_S = 8.0
"""Seconds. A crash after so long without a reading may be a request that waited with Python's lock held."""

_STEADY = 0.98
"""Share of the highest use. From the time when it is reached, the use counts as steady."""


class Unread(Enum):
    """Why nothing was read of TensorFlow's memory."""

    NO_TENSORFLOW = auto()  # no process has imported it, as far as was seen
    NO_CPU_POOL = auto()  # it used the CPU without a pool that can be read
    UNKNOWN = auto()


_UNREAD = {
    Unread.NO_TENSORFLOW: "tfmemtop saw no process use TensorFlow.",
    Unread.NO_CPU_POOL: "On the CPU tfmemtop reads TensorFlow's memory only in a BFC pool: add --cpu-pool SIZE.",
    Unread.UNKNOWN: "No memory of TensorFlow was read.",
}


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict on run number ``run``: its ``cause``.

    ``finding`` is the finding that it comes from, ``None`` if it comes from none. ``unread`` is why nothing was read of
    TensorFlow's memory, ``None`` if something was read.
    """

    run: int
    cause: Cause
    finding: Finding | None
    peaks: Peaks
    unread: Unread | None

    @property
    def text(self) -> str:
        """The cause in one sentence or two, at most :data:`~tfmemtop.findings.cause.LONGEST` characters."""
        return shortened(self.cause.text)


def verdict(seen: RunReview) -> Verdict | None:
    """Return the verdict on the run; ``None`` if there was no run."""
    run = seen.state.run
    if run is None:
        return None
    found, unread = [held.finding for held in weighed(seen)], _unread(seen.state, run)
    cause, finding = _judged(seen, run, found, unread)
    return Verdict(run.run, cause, finding, peaks(run), unread)


def _judged(
    seen: RunReview, run: RunState, found: list[Finding], unread: Unread | None
) -> tuple[Cause, Finding | None]:
    for failed in (one for one in found if isinstance(one, AllocationFailed)):
        return failed.whole_cause, failed
    if run.ending is not None and run.ending.way is Way.HOST_MEMORY:
        text = "The kernel killed the run: the host's memory was full. TensorFlow's pools were not the reason."
        return Cause(Key.HOST_GROWTH, text), None
    if run.failed:
        return _not_memory(seen, run), None
    risen = next(iter(rising(seen.state).values()), None)
    if risen is not None:
        return risen, None
    for finding in found:
        if isinstance(finding, Leak):
            return finding.cause, finding
    for finding in found:
        if finding.key is not None and finding.severity < Severity.INFO:
            return _of_finding(finding, finding.key), finding
    return _healthy(seen, run, unread), None


def _of_finding(finding: Finding, key: Key) -> Cause:
    said = finding.said
    evidence = (said.figures,) if said.figures else ()
    return Cause(key, said.headline, remedies=finding.remedies, code=said.code, evidence=evidence)


def _not_memory(seen: RunReview, run: RunState) -> Cause:
    """Return that the run failed for another reason, with the error that ended it, as far as it is known."""
    hooked = _main(seen.state, run)
    how = ended(run.ending, running=False, left=False)
    if hooked is not None and hooked.error is not None:
        error = hooked.error
        at = f" ({spot(error.file, error.line)})" if error.file else ""
        what = f"{error.kind}: {error.message}" if error.message else error.kind
        return Cause(Key.NOT_MEMORY, f"Memory was not the cause: the script ended with {what}{at}.")
    if last := _last_line(seen.state):
        return Cause(Key.NOT_MEMORY, f"Memory was not the cause. The run {how}; its last line is: {last}")
    crashed = run.ending is not None and run.ending.signal is not None
    if run.peak_in_use is None or (crashed and _silent(hooked, run)):
        return Cause(Key.UNKNOWN, f"The run {how}. What was read of its memory does not show why.")
    held = f"At most {format_bytes(run.peak_in_use)} were in use."
    return Cause(Key.NOT_MEMORY, f"Memory was not the cause: the run {how}. {held}")


def _main(state: State, run: RunState) -> Hooked | None:
    """Return the hook's data of the run's process that ended with an error, else of its first process."""
    found = [hooked for _, hooked in hooked_of_run(state)]
    return next((one for one in found if one.error is not None), found[0] if found else None)


def _last_line(state: State) -> str:
    """Return the last line that the script printed; empty if its output was not seen."""
    text = "".join(chunk.text for chunk in list(state.output)[-16:])
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "")


def _silent(hooked: Hooked | None, run: RunState) -> bool:
    newest = max((reading.t for reading in hooked.allocators.values()), default=None) if hooked else None
    return newest is None or (run.ended is not None and run.ended - newest > _SILENT_S)


def _healthy(seen: RunReview, run: RunState, unread: Unread | None) -> Cause:
    going = seen.running
    if unread is not None:
        return Cause(Key.NONE, _UNREAD[unread])
    took = spoken((run.ended if run.ended is not None else seen.state.now) - run.started)
    so_far = (
        f"No memory problem found so far, after {took}" if going else f"No memory problem found in this run of {took}"
    )
    held = f"at most {format_bytes(run.peak_in_use)} in use{_steady(seen.state)}"
    pool = f", pool {format_bytes(run.peak_pool)}" if run.peak_pool is not None else ""
    return Cause(Key.NONE, f"{so_far}: {held}{pool}.", bytes=run.peak_in_use)


def _steady(state: State) -> str:
    """Return since when the use has been steady: ``, steady since step 40``; empty if it is not."""
    for _, hooked in hooked_of_run(state):
        for trend in hooked.trends.values():
            windows = trend.whole.windows
            highest = max((window.high for window in windows), default=0)
            reached = next((window for window in windows if window.high >= _STEADY * highest), None)
            if reached is None or not highest or windows.index(reached) * 4 > len(windows) * 3:
                continue
            made, unit = hooked.steps.made(0.0, reached.start)
            return f", steady since {unit.rstrip('s')} {max(1, int(made))}" if hooked.steps.calls else ", steady"
    return ""


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
    failed = [held.finding for held in seen.held if isinstance(held.finding, AllocationFailed)]
    pools = {(one.anatomy.pid, one.anatomy.device) for one in failed}

    def included(finding: Finding) -> bool:
        """Return whether a failure reports the same: that there was no room, or hardly any."""
        if isinstance(finding, NoRoom):
            return (finding.anatomy.pid, finding.anatomy.device) in pools
        return isinstance(finding, TightLimit) and finding.place.device in {device for _, device in pools}

    found = [held for held in seen.held if not _aside(held.finding) and not included(held.finding)]
    return sorted(found, key=lambda held: (held.finding.severity, seen.ceased(held.last), held.place))


def _aside(finding: Finding) -> bool:
    return finding.aside or (isinstance(finding, Noticed) and not finding.of_state)


def evidence(found: Verdict) -> Iterator[str]:
    """Yield the sentences that the verdict rests on."""
    yield from filter(None, found.cause.evidence)
