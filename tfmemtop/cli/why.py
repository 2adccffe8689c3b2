"""Explain a recorded run's memory: what happened, why, and what to do.

usage: tfmemtop why [FILE] [--long] [--json]
example: tfmemtop why run.jsonl

FILE is a recording, or the name of a session, see tfmemtop ls. Without FILE it is the last session.

The report begins with the verdict. What it rests on and what to do follow, then a line for each of five questions.
--long adds all findings and whole answers. It is plain text that you can paste into an issue. --json prints the same as
JSON.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from tfmemtop.cli import Refusal
from tfmemtop.cli.arguments import FOR_OUTPUT, ReportArguments
from tfmemtop.cli.output import print_encoded, print_json, print_lines, say
from tfmemtop.cli.parser import switch
from tfmemtop.cli.sessions import is_running, no_run, path_and_run, recording_path, report_events, spacing_s
from tfmemtop.events.recording import Recording, RecordingError, read
from tfmemtop.events.recording.errors import lines_left_out
from tfmemtop.findings.review import RunReview, review
from tfmemtop.reports.account import account
from tfmemtop.reports.why import page, to_json
from tfmemtop.state import State

_COLUMNS = 600
"""The number of values in each curve for a notebook."""


class WhyArguments(ReportArguments):
    """The recording, and how much is printed of it."""

    long: bool = switch(FOR_OUTPUT, "print all findings and whole answers")


ARGUMENTS = WhyArguments


def run(arguments: WhyArguments) -> int:
    """Print the report on the recording's last run, or on run N for ``FILE:N``; return 0.

    Raises:
        Refusal: the file cannot be read, or it contains no run, or no such run.
    """
    path, number = path_and_run(arguments.file)
    try:
        recording, seen = _review(path, number)
    except RecordingError as error:
        raise Refusal(error.text) from error
    if seen.state.run is None or number not in (None, seen.state.run.run):
        raise no_run(path, number)
    if arguments.json:
        print_json(to_json(seen))
    else:
        print_lines(page(seen, path, whole=arguments.long))
    if recording.damaged:
        say(lines_left_out(recording.path, damaged=recording.damaged, unknown=recording.unknown))
    return 0


def _review(path: str, number: int | None) -> tuple[Recording, RunReview]:
    recording = read(Path(path))
    going = is_running(recording.path, recording.session.id)
    return recording, review(report_events(recording, number), number, spacing_s(recording), alive=going)


class NotebookPage(msgspec.Struct, frozen=True, kw_only=True):
    """Text and curves for ``%memtop``.

    ``text`` are lines. ``in_use``, ``pool`` and ``total`` are the newest run's memory in bytes, one value for each
    ``width_s`` seconds; ``None`` stands for the time before the first reading. ``limit`` is bytes. ``ran_out_s`` are
    the times, in seconds since the run's start, at which memory ran out. If ``error`` is set, all other fields are
    empty.
    """

    text: list[str] = []
    width_s: float = 0.0
    in_use: list[int | None] = []
    pool: list[int | None] = []
    total: list[int | None] = []
    limit: int | None = None
    ran_out_s: list[float] = []
    error: str = ""


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a :class:`NotebookPage` about the session whose name is in *arguments*, as JSON; return 0.

    ``%memtop`` runs this beside the kernel. So the kernel does not load our modules, and folding a long recording does
    not take the kernel's time.
    """
    (session,) = sys.argv[1:] if arguments is None else arguments
    try:
        shown = _notebook_page(session)
    except Refusal as error:
        shown = NotebookPage(error=str(error))
    except RecordingError as error:
        shown = NotebookPage(error=error.text)
    print_encoded(msgspec.json.encode(shown))
    return 0


def _notebook_page(session: str) -> NotebookPage:
    _, seen = _review(str(recording_path(session)), None)
    if seen.state.run is None:
        return NotebookPage()
    parts = account(seen.state)
    return msgspec.structs.replace(_curves(seen.state), text=[*parts, *([""] if parts else []), *page(seen, session)])


def _curves(state: State) -> NotebookPage:
    """Return the newest run's memory from its start on, in ``_COLUMNS`` columns."""
    run = state.run
    assert run is not None
    width_s = max(run.curve.end, 0.1) / _COLUMNS
    in_use, pool, total = (run.curve.columns(width_s, _COLUMNS, boundary) for boundary in range(3))
    return NotebookPage(
        width_s=width_s,
        in_use=in_use,
        pool=pool,
        # Without a GPU the process's total equals the pool, so it is left out.
        total=total if state.devices else [],
        limit=max(run.limits.values(), default=None),
        ran_out_s=[each.t - run.started for each in run.ran_out],
    )
