"""Show who held the memory of a recorded run, at its peak or at another recorded moment.

usage: tfmemtop holders [FILE] [--by WHAT] [--at MOMENT] [--phase NAME] [OPTIONS]
example: tfmemtop holders run.jsonl --by layer

FILE is a recording, or the name of a session, see tfmemtop ls. Without FILE it is the last session. The run
may still go on.

With --lifetimes, each buffer of the recorded step has a row, from its allocation to its release.

The rows add up to what TensorFlow's allocator had in use. One row holds the memory whose holder is not known; the
reason is below the table.
"""

from pathlib import Path

from msgspec.structs import replace

from tfmemtop.cli import Refusal
from tfmemtop.cli.arguments import FOR_OUTPUT, ReportArguments
from tfmemtop.cli.output import print_json, print_lines
from tfmemtop.cli.parser import option, switch
from tfmemtop.cli.sessions import recorded_run
from tfmemtop.events import Holders, ScriptPhase
from tfmemtop.findings.missing import only_asked, unrecorded
from tfmemtop.reports.holders import lifetimes_json, lifetimes_table, table, to_json
from tfmemtop.state.holder_views import fullest_in
from tfmemtop.state.holders import By
from tfmemtop.state.windows import Chosen, chosen, moment, recorded, unpacked
from tfmemtop.units import format_bytes


class HoldersArguments(ReportArguments):
    """``by`` is what each row stands for; ``device`` is a logical device, by default that which ran out."""

    by: str = option(
        FOR_OUTPUT,
        "layer (default), op, kind, shape, or line of the script",
        choices=tuple(by.value for by in By),
        default=By.LAYER.value,
    )
    at: str = option(
        FOR_OUTPUT,
        "peak (default), end of what was recorded, or seconds of the session",
        metavar="MOMENT",
        default="peak",
    )
    phase: str | None = option(
        FOR_OUTPUT,
        "the moment with most in use, of those that were recorded in the phase of this name, such as evaluate",
        metavar="NAME",
    )
    lifetimes: bool = switch(FOR_OUTPUT, "the buffers, from allocation to release, in place of who held them")
    device: str | None = option(
        FOR_OUTPUT,
        "the pool of this logical device, such as GPU:0; by default the pool that ran out of memory, or in which "
        "most was in use, rather than pinned host memory",
        metavar="NAME",
    )


ARGUMENTS = HoldersArguments

_NOT_RECORDED = "no step was recorded; record the run with --holders-interval 5, which records a step every 5 s"


def run(arguments: HoldersArguments) -> int:
    """Print the holders at the peak, as a table or as JSON; return 0.

    Raises:
        Refusal: the file cannot be read, or it has no such run, or no window of that run or device.
    """
    path, _, state, of_file = recorded_run(arguments.file)
    windows = chosen(state)
    if not windows:
        why = unrecorded(state)
        if not why and only_asked(state):
            why = "the session was started with --holders-interval 0, and nobody asked for one"
        raise Refusal(f"{Path(path).name} cannot say who held the memory: {why or _NOT_RECORDED}")
    shown = [one for one in windows if arguments.device in (None, one.device)]
    if not shown:
        known = ", ".join(sorted({one.device for one in windows}))
        raise Refusal(f"there is no window of {arguments.device}, only of {known}")
    by, (one, at), note = By(arguments.by), _at(shown[0], arguments.at), ""
    if arguments.phase is not None:
        one, at, note = _in_phase(shown[0], [*of_file.phases.values()], arguments.phase)
    if arguments.lifetimes:
        print_json(lifetimes_json(one)) if arguments.json else print_lines(lifetimes_table(one))
    elif arguments.json:
        print_json(to_json(one, by, at))
    else:
        lines = table(one, by, sorted({each.device for each in windows} - {one.device}), at)
        print_lines([*lines, *(["", note] if note else [])])
    return 0


def _in_phase(one: Chosen, phases: list[ScriptPhase], wanted: str) -> tuple[Chosen, int, str]:
    """Return the window and the event with most in use in the phases called *wanted*.

    The sentence has their peak, if that was higher. A reading shows it only if it lies wholly in the phase.
    """
    called = [phase for phase in phases if phase.pid == one.pid and wanted in (phase.name, phase.label)]
    if not called:
        names = ", ".join(sorted({phase.name for phase in phases})) or "there is none"
        raise Refusal(f"no phase is called {wanted}; the phases are: {names}")
    known = recorded(one.hooked.windows[one.device])
    highest = max(phase.peaks.get(one.device, 0) for phase in called)
    said = format_bytes(highest)
    if (found := fullest_in(known, one.hooked, called)) is None:
        raise Refusal(f"no allocations are kept of {wanted}, whose peak was {said}, only {_spans(known)}")
    course = unpacked(found[0])
    is_higher = highest > course.held(found[1]) + course.nobodys
    return replace(one, window=found[0]), found[1], f"The peak of {wanted} was {said}." if is_higher else ""


def _at(one: Chosen, wanted: str) -> tuple[Chosen, int | None]:
    """Return the window of the moment *wanted*, and its event; ``None`` is the peak."""
    if wanted == "peak":
        return one, None
    known = recorded(one.hooked.windows[one.device])
    try:
        found = moment(known, None if wanted == "end" else float(wanted))
    except ValueError:
        raise Refusal(f"--at {wanted}: neither peak, end, nor a number of seconds") from None
    if found is None:
        raise Refusal(f"no allocations are kept of {wanted} s, only {_spans(known)}")
    return replace(one, window=found[0]), found[1]


def _spans(windows: list[Holders]) -> str:
    spans: list[list[float]] = []
    for one in windows:  # by their beginnings; those that overlap are one span
        began, ended = round(one.began, 2), round(one.ended, 2)
        if not spans or began > spans[-1][1]:
            spans.append([began, ended])
        spans[-1][1] = max(spans[-1][1], ended)
    return ", ".join(f"at {a:.2f} s" if a == b else f"from {a:.2f} to {b:.2f} s" for a, b in spans)
