"""All findings that hold, and the one cause that a run is judged by: of these, or that nothing is wrong. Pure.

The order is: a failed allocation; another end; memory that rises; what else was found; nothing.
"""

import re
import signal
from collections.abc import Iterable

from msgspec.structs import replace

from tfmemtop.events.runs import Way
from tfmemtop.findings.cause import Cause, Key, fitting
from tfmemtop.findings.finding import CauseFinding, Finding, RuleFailed, Severity
from tfmemtop.findings.names import quoted, spot
from tfmemtop.findings.proposed_limit import found_no_room
from tfmemtop.findings.remedy import Action
from tfmemtop.findings.rise_causes import rising
from tfmemtop.findings.room import on_full_card
from tfmemtop.findings.rules import follow_rule, rules
from tfmemtop.findings.rules.ending import ended
from tfmemtop.findings.rules.framework_memory import FrameworkFailed
from tfmemtop.findings.rules.frameworks import OtherPools
from tfmemtop.findings.rules.host_growth import HostGrowth
from tfmemtop.findings.rules.leaks import Leak
from tfmemtop.findings.rules.out_of_memory import CRASHES, AllocationFailed, NoRoom
from tfmemtop.findings.rules.pool import KEPT, CachedButIdle, TightLimit
from tfmemtop.findings.run_devices import hooked_of_run, pool_kind
from tfmemtop.state import State
from tfmemtop.state.lookup import once_per_revision, without_tensorflow
from tfmemtop.state.model import Hooked, RunState
from tfmemtop.state.shortages import on_full_cards
from tfmemtop.state.views import host_memory
from tfmemtop.state.waiting import waiting
from tfmemtop.tensorflow_text import is_of_cuda
from tfmemtop.units import format_bytes, spoken

_SILENT_S = 8.0
"""Seconds. A crash after so long without a reading may be a request that waited with Python's lock held."""

_MARK = re.compile(r"\{\{[^{}]*\}\}|\x1b\[\d*m")
"""TensorFlow's mark of the node that raised an error, in front of its message, and Keras's of bold text."""

_NO_POOL = (
    "Nothing was measured: on the CPU, tfmemtop reads TensorFlow's memory only in a pool. Run it again with "
    "--cpu-pool 50%."
)
_OUTPUT = 16  # chunks of the script's output, among which its last line is
_ECHO = "^C"  # what a terminal writes for Ctrl+C


class Judged(CauseFinding, frozen=True):
    """The cause that a run which has ended is judged by, where it comes from no other finding."""

    aside = True

    @property
    def severity(self) -> Severity:
        return Severity.INFO if self.cause.key is Key.NONE else Severity.WARNING


@once_per_revision
def findings(state: State) -> list[Finding]:
    """Return all findings that hold now, most serious first. Those of one severity are in the order of the rules."""
    found = [finding for rule in rules() for finding in follow_rule(rule, state)]
    return sorted([*judged_at_the_end(state, found), *found], key=lambda finding: finding.severity)


def kinds(base: type[Finding] = Finding) -> list[type[Finding]]:
    """Return all kinds of findings that are derived from *base*."""
    rules()  # loads their classes
    return [kind for one in base.__subclasses__() for kind in kinds(one) or [one]]


def judged(state: State, found: Iterable[Finding], *, going: bool) -> tuple[Cause, Finding | None]:
    """Return the cause, and the finding that it comes from: the most serious of *found*, or ``None``."""
    run, found = state.run, list(found)
    assert run is not None
    if not going:  # a recording may break off before the run ends
        found = [replace(one, ended=True) if isinstance(one, HostGrowth | Leak | NoRoom) else one for one in found]
    if broken := next((finding for finding in found if isinstance(finding, RuleFailed)), None):
        return Cause(Key.UNKNOWN, f"The cause is unknown. {broken.said.headline}"), broken
    for finding in found:
        if isinstance(finding, AllocationFailed):
            return finding.whole_cause, finding
        if isinstance(finding, FrameworkFailed):
            return finding.whole_cause, finding
    if run.ending is not None and run.ending.way is Way.HOST_MEMORY:
        limited = host_memory(state).limited
        text = f"The kernel killed the run: host memory ran out{f'; the limit is {limited}' if limited else ''}."
        return Cause(Key.HOST_GROWTH, text), None
    for finding in found:
        if isinstance(finding, NoRoom) and (finding.waited or (going and finding.matters)):
            return finding.told, finding
    hooked, how = _main(state), run.ending
    raised = hooked is not None and hooked.error is not None
    if how is not None and not (how.good or run.stopped) and (how.known or raised):
        kept = next((one for one in found if isinstance(one, Leak) and one.by is not None), None)
        if kept is not None and any(isinstance(one, TightLimit) for one in found):
            # The error may be of what waited for the full pool, such as a request to a server.
            return replace(kept.cause, text=f"The pool was full as the script failed. {kept.cause.text}"), kept
        of_host = any(isinstance(one, HostGrowth) and one.severity < Severity.INFO for one in found)
        killed = run.ending is not None and run.ending.signal == signal.SIGKILL  # as by the kernel, for lack of memory
        # People also end a run since its memory rises.
        if (run.failed and not (killed and of_host)) or not (of_host or rising(state)):
            return _not_memory(state, run), None
    for cause in rising(state).values():
        told = next((one for one in found if isinstance(one, Leak) and one.by == cause), None)
        return replace(cause, text=f"Memory {'keeps' if going else 'kept'} rising: {cause.text}"), told
    # Host memory that rises for a known reason does so four times as fast, or more: its rule sees to that.
    explained = any(isinstance(one, HostGrowth) and one.cause and one.severity < Severity.INFO for one in found)
    for finding in found:
        if isinstance(finding, Leak) and not explained:
            return finding.cause, finding
    for finding in sorted(found, key=lambda one: one.severity):
        shared = isinstance(finding, OtherPools)
        if finding.key is not None and (finding.severity < Severity.INFO or shared):
            said = finding.said
            text = f"No memory problem found{' so far' * going}. {said.headline}" if shared else said.headline
            rest = finding.remedies, said.code, (said.figures,)
            return Cause(finding.key, text, finding.holder, None, None, *rest), finding
    for finding in found:
        if isinstance(finding, NoRoom) and going and finding.cause.key is not Key.SCRATCH:
            return Cause(finding.cause.key, finding.said.headline), finding  # too early for advice
    idle = next((one.said.headline for one in found if isinstance(one, CachedButIdle)), "")
    return replace(_healthy(state, run, going=going), evidence=(idle, KEPT) if idle else ()), None


def judged_at_the_end(state: State, found: Iterable[Finding]) -> list[Judged]:
    """Return the judgement of a run that has ended, where none of the findings *found* states it."""
    run = state.run
    if run is None or run.going:
        return []
    cause, finding = judged(state, found, going=False)
    return [] if finding is not None else [Judged(cause)]


def _not_memory(state: State, run: RunState) -> Cause:
    """Return that the run failed for another reason, with the error that ended it, as far as it is known."""
    hooked = _main(state)
    how = ended(run.ending, running=False, left=False)
    raised = hooked.error.message if hooked is not None and hooked.error is not None else ""
    full = next(filter(None, (on_full_card(one, raised) for one in on_full_cards(state))), None)
    if hooked is not None and hooked.error is not None:
        error = hooked.error
        at = f" at {spot(error.file, error.line)}" if error.file else ""
        message = _MARK.sub("", error.message).strip().removesuffix(" name:").removeprefix(f"{error.kind}: ")
        if error.kind == KeyError.__name__:
            message = repr(message)  # a key
        what = f"{error.kind}{at}" + (f": {message}" if message else "")
        if full is not None and is_of_cuda(raised):
            return replace(full, evidence=(f"The script ended with {what}.", *full.evidence))
        if error.kind == MemoryError.__name__:
            pools = f"TensorFlow had at most {format_bytes(run.peak_in_use)} in use." if run.peak_in_use else ""
            asked = f" for {quoted(error.code)}" if error.code else ""
            short = "Host memory was too small"
            text = fitting(f"{short}{asked}: the script ended with {what}.", f"{short}: the script ended with {what}.")
            return Cause(Key.HOST_GROWTH, text, evidence=(pools,))
        return Cause(Key.NOT_MEMORY, f"Memory was not the cause: the script ended with {what.removesuffix('.')}.")
    if full is not None and run.ending is not None and run.ending.signal in CRASHES:
        return replace(full, evidence=(f"The run {how}.", *full.evidence))
    crashed = run.ending is not None and run.ending.signal is not None
    if run.peak_in_use is None or (crashed and _silent(hooked, run)):
        return Cause(Key.UNKNOWN, f"The run {how}. What was read of its memory does not show why.")
    # Who sends a signal may do so for lack of the host's memory.
    whose = "TensorFlow's memory" if run.ending and run.ending.signal is not None else "Memory"
    if last := _last_line(state):
        return Cause(Key.NOT_MEMORY, f"{whose} was not the cause. The run {how}; its last line is: {last}")
    return Cause(
        Key.NOT_MEMORY,
        f"{whose} was not the cause: the run {how}. At most {format_bytes(run.peak_in_use)} were in use.",
    )


def _main(state: State) -> Hooked | None:
    """Return the hook's data of the run's process that ended with an error, else of its first process."""
    found = [hooked for _, hooked in hooked_of_run(state)]
    return next((one for one in found if one.error is not None), found[0] if found else None)


def _last_line(state: State) -> str:
    """Return the last line that the script printed; empty if its output was not seen."""
    lines = "".join(chunk.text for chunk in list(state.output)[-_OUTPUT:]).splitlines()
    plain = (line.strip().removeprefix(_ECHO).removesuffix(_ECHO).strip() for line in reversed(lines))
    return next(filter(None, plain), "")


def _silent(hooked: Hooked | None, run: RunState) -> bool:
    newest = max((reading.t for reading in hooked.allocators.values()), default=None) if hooked else None
    return newest is None or (run.ended is not None and run.ended - newest > _SILENT_S)


def _healthy(state: State, run: RunState, *, going: bool) -> Cause:
    others = _of_other_frameworks(state)
    if run.peak_in_use is None and not others and not run.peak_process_total:
        text = _unread(state, run)
        return Cause(Key.NONE, text, remedies=(Action.GIVE_CPU_POOL,) if text is _NO_POOL else ())
    took = spoken((run.ended if run.ended is not None else state.now) - run.started)
    found = f"found so far, after {took}" if going else f"found in this run of {took}"
    if run.ending is not None and not run.ending.known:
        found += " (exit code not known)"
    own = peaks_of_processes(state)
    if len(own) > 1:
        sizes = f"from {format_bytes(min(own))} to {format_bytes(max(own))}"
        text = f"No memory problem {found}: each of {len(own)} processes has its own pool; their peaks are {sizes}."
        return Cause(Key.NONE, text, bytes=max(own))
    of_many = " on one card" * (len(run.peaks) > 1)
    came = f"pools{of_many} came to at most" if of_many else "pool came to"
    pool = f"; TensorFlow's {came} {format_bytes(run.peak_pool)}" if run.peak_pool is not None else ""
    waited = "; some requests waited for room" if found_no_room(state) else ""
    held = f"at most {format_bytes(run.peak_in_use)} in use{of_many}{_reached(state, run)}{pool}{waited}"
    if run.peak_in_use is None and others:
        held = others
    elif run.peak_in_use is None:
        held = f"the process held at most {format_bytes(run.peak_process_total)} of a GPU"
    return Cause(Key.NONE, f"No memory problem {found}: {held}.", bytes=run.peak_in_use)


def _reached(state: State, run: RunState) -> str:
    """Return when the highest use was first read, ``, reached after 12 s``; empty where that is not known."""
    trends = (trend for _, hooked in hooked_of_run(state) for trend in hooked.trends.values())
    reached = next((trend.reached for trend in trends if trend.peak == run.peak_in_use), None)
    return "" if reached is None else f", reached after {spoken(reached - run.started)}"


def _of_other_frameworks(state: State) -> str:
    """Return what each framework other than TensorFlow had at most in use on a GPU; empty if there is none."""
    readings = [one for _, hooked in hooked_of_run(state) for one in hooked.frameworks.values()]
    largest = {one.framework.title: one for one in sorted(readings, key=lambda one: one.peak or one.pool or 0)}
    return ", ".join(
        f"{title} held {format_bytes(one.pool)} when it was last read"
        if one.peak is None
        else f"{title} had at most {format_bytes(one.peak)} in use"
        for title, one in sorted(largest.items())
    )


def peaks_of_processes(state: State) -> list[int]:
    """Return the peak in use of each process of the run that has a pool, in bytes, on the device with most."""
    peaks = (max((trend.peak for trend in one.trends.values()), default=0) for _, one in hooked_of_run(state))
    return [size for size in peaks if size]


def _unread(state: State, run: RunState) -> str:
    """Return why nothing was read of TensorFlow's memory."""
    hooks, so_far = [hooked for _, hooked in hooked_of_run(state)], " so far" * run.going
    if not hooks:
        return f"tfmemtop saw no process use TensorFlow{so_far}."
    if names := " and ".join(framework.name.title for framework in without_tensorflow(state)):
        return f"Nothing was measured: on the CPU, there is no pool of {names}."
    if run.going and not any(hooked.initialised or hooked.effective for hooked in hooks):
        return "TensorFlow has not initialised its devices yet: it initialises them at its first operation."
    waits = waiting(state)
    if pool_kind(run).on_gpu or (waits and waits.pool_chosen):
        return f"No memory of TensorFlow was read{so_far}."
    return _NO_POOL
