"""The summary of a run once it is over, or when its screen is left."""

import shlex
from collections.abc import Iterable

from tfmemtop.events import Event, NoticeKind
from tfmemtop.findings.finding import Finding, Severity
from tfmemtop.findings.judgement import findings
from tfmemtop.findings.review import review, verdict
from tfmemtop.findings.rules import follow_rule
from tfmemtop.findings.rules.ending import UNSEEN, RunEnded, ended, ending
from tfmemtop.findings.rules.notices import Noticed
from tfmemtop.findings.rules.settings import SETTINGS_RULES
from tfmemtop.reports import settings
from tfmemtop.state import State
from tfmemtop.state.figures import effective_settings
from tfmemtop.state.model import RunState
from tfmemtop.state.program import program
from tfmemtop.state.steps import pace
from tfmemtop.units import counted, format_bytes, format_duration


def summary(state: State, readings: int) -> list[str]:
    """Return the newest run in figures; *readings* is how many readings the session has."""
    run = state.run
    if run is None:
        return [UNSEEN]
    how = ended(run.ending, running=False, left=run.left)
    taken = f"{counted(readings, 'reading')}, {run.dropped} dropped"
    return [f"{format_duration(_until(state, run) - run.started)}, {how}", *figures(state, run), taken]


def left(state: State, run: RunState) -> list[str]:
    """Return the newest *run* in figures, for a user who leaves the screen. The run may go on."""
    which = f"run {run.run} of {run.notebook or shlex.join(program(run.argv))}"
    how = "read from outside, it goes on" if run.outside and run.going else ending(run.ending)
    return [f"{which}: {format_duration(_until(state, run) - run.started)}, {how}", *figures(state, run)]


def figures(state: State, run: RunState) -> list[str]:
    """Return settings, peaks and pace of *run*, and how often it ran out of memory: a line for each that is known."""
    chosen = settings.in_effect(effective_settings(run))
    lines = [f"settings: {', '.join(chosen)}"] if chosen else []
    lines += [f"{device}: peak in use {format_bytes(peak)}" for device, peak in sorted(run.peaks.items())]
    if run.peak_pool is not None:
        lines.append(f"largest pool: {format_bytes(run.peak_pool)}")
    for index, total in sorted(run.totals.items()):
        if total:
            name = f"GPU {index} {state.devices[index].info.name}"
            lines.append(f"{name}: peak process total {format_bytes(total)}")
    course = pace(run.steps, _until(state, run)) if run.steps else None
    if course and course.whole:
        lines.append(f"{course.whole:.3g} {course.unit} a second")
    if run.out_of_memory:
        lines.append(counted(run.out_of_memory, "out-of-memory error"))
    return lines


def _until(state: State, run: RunState) -> float:
    return run.ended if run.ended is not None else state.now


def summarise(events: Iterable[Event], readings: int) -> list[str]:
    """Return the summary of the newest run of a stream, one line for each fact.

    The first line is how long the run took and how it ended. *readings* is how many readings the session has.
    """
    seen = review(events)
    state, found = seen.state, verdict(seen)
    settled = [finding.said.text for rule in SETTINGS_RULES for finding in follow_rule(rule, state)]
    if found is None:
        return [*summary(state, readings), *settled]
    steps = [remedy.elsewhere for remedy in found.remedies if not remedy.screen_only]
    helps = [f"What helps: {'; '.join(steps)}."] if steps else []
    return [*summary(state, readings), found.text, *helps, *(text for text in settled if found.text not in text)]


def closing(state: State) -> list[str]:
    """Return the lines for a user who leaves the screen: the newest run in figures, and each finding that matters.

    Empty where nothing was run. The findings that the run has ended and that the engine is gone are left out: leaving
    the screen ends the connection to the engine.
    """
    if state.run is None:
        return []
    grave = [found for found in findings(state) if found.severity < Severity.INFO and not _expected(found)]
    return [*left(state, state.run), *(found.said.headline for found in grave)]


def _expected(found: Finding) -> bool:
    return isinstance(found, RunEnded) or (isinstance(found, Noticed) and found.notice.kind is NoticeKind.ENGINE_GONE)
