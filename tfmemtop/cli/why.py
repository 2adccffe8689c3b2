"""Explain a recorded run's memory: what happened, why, and what to do.

usage: tfmemtop why [FILE] [--long] [--json]
example: tfmemtop why run.jsonl

FILE is a recording, or the name of a session, see tfmemtop ls. Without FILE it is the last session.

The report begins with the verdict. What it rests on and what to do follow, then a line for each of five
questions; without a GPU, for those that concern the run.
--long adds all findings and whole answers. It is plain text that you can paste into an issue. --json prints the same as
JSON.
"""

import os
from collections.abc import Sequence
from pathlib import Path

from tfmemtop.charset import fit_streams
from tfmemtop.cli import Refusal
from tfmemtop.cli.arguments import FOR_OUTPUT, ReportArguments
from tfmemtop.cli.output import note, print_json, print_lines, say
from tfmemtop.cli.parser import switch
from tfmemtop.cli.sessions import is_running, no_run, path_and_run, recording_path, report_events, spacing_s
from tfmemtop.engine.stream.kept_sessions import kept_recordings
from tfmemtop.events.recording import Recording, read
from tfmemtop.events.recording.lines import lines_left_out
from tfmemtop.failure import reason
from tfmemtop.findings.review import RunReview, review
from tfmemtop.reports.account import account
from tfmemtop.reports.why import page, to_json


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
    recording, seen = _review(path, number)
    if seen.state.run is None or number not in (None, seen.state.run.run):
        raise no_run(path, number)
    if arguments.json:
        print_json(to_json(seen))
    else:
        kept = kept_recordings().get(recording.session.id) == recording.path
        name = recording.session.id if kept else path
        print_lines(page(seen, name, number, whole=arguments.long))
    if recording.damaged:
        say(lines_left_out(recording.path, damaged=recording.damaged, unknown=recording.unknown))
    return 0


def _review(path: str, number: int | None) -> tuple[Recording, RunReview]:
    recording = read(Path(path))
    going = is_running(recording.path, recording.session.id)
    return recording, review(report_events(recording, number), number, spacing_s(recording), alive=going)


def main(arguments: Sequence[str]) -> int:
    """Print the account and the report of the session whose name is the only one of *arguments*; return the exit code.

    ``%memtop`` runs this in a process of its own.
    """
    fit_streams(os.environ)
    (session,) = arguments
    try:
        _, seen = _review(str(recording_path(session)), None)
    except Refusal as error:
        note(reason(error))
        return 1
    parts = account(seen.state)
    print_lines([*parts, *([""] if parts else []), *(page(seen, session) if seen.state.run else ())])
    return 0
