"""The summary of a run once it is over, or once its screen is left: one line for each fact. Pure."""

import shlex

from tfmemtop.state import State
from tfmemtop.state.in_effect import in_effect
from tfmemtop.state.model import RunState
from tfmemtop.state.program import program
from tfmemtop.state.steps import pace
from tfmemtop.units import format_bytes, format_duration
from tfmemtop.words import settings
from tfmemtop.words.counting import counted
from tfmemtop.words.endings import UNSEEN, ended, ending


def summary(state: State, readings: int) -> list[str]:
    """Return the newest run in figures; *readings* is how many readings the session has."""
    run = state.run
    if run is None:
        return [UNSEEN]
    how = ended(run.ending, running=False, left=run.left)
    return [f"{format_duration(_until(state, run) - run.started)}, {how}", *figures(state, run), _taken(run, readings)]


def left(state: State, run: RunState) -> list[str]:
    """Return the newest *run* in figures, for a user who leaves the screen. The run may go on."""
    which = f"run {run.run} of {run.notebook or shlex.join(program(run.argv))}"
    read = "watched with the hook" if run.hooked is not None else "read from outside"
    how = f"{read}, it goes on" if run.outside and run.going else ending(run.ending)
    return [f"{which}: {format_duration(_until(state, run) - run.started)}, {how}", *figures(state, run)]


def figures(state: State, run: RunState) -> list[str]:
    """Return settings, peaks and pace of *run*, and how often it ran out of memory: a line for each that is known."""
    chosen = settings.in_effect(in_effect(run))
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


def _taken(run: RunState, readings: int) -> str:
    return f"{counted(readings, 'reading')}, {run.dropped} dropped"


def _until(state: State, run: RunState) -> float:
    return run.ended if run.ended is not None else state.now
