"""Explain a recorded run's memory: what happened, why, and what to do.

usage: tfmemtop why [FILE] [--json]
example: tfmemtop why run.jsonl

FILE is a recording, or the name of a session, see tfmemtop ls. Without FILE it is the last session.

The report begins with a verdict of two lines. The reason and what to do follow, then the questions that the run
raises, with answers. It is plain text that you can paste into an issue. --json prints the same as JSON.
"""

from pathlib import Path

import msgspec

from tfmemtop.cli import Refusal
from tfmemtop.cli.arguments import add_json_option
from tfmemtop.cli.known_sessions import alive
from tfmemtop.cli.parser import BaseArguments, Parser
from tfmemtop.cli.recorded import no_run, numbered, spacing_s, told
from tfmemtop.cli.saying import say, tell, tell_json
from tfmemtop.events.recording import RecordingError, read
from tfmemtop.events.recording.errors import lines_left_out, recording_text
from tfmemtop.findings.run_review import review
from tfmemtop.reports.why import page, to_json


class Arguments(BaseArguments):
    """``file`` is the recording, as ``FILE`` or ``FILE:N``."""

    file: str | None = None
    json: bool = False


def declare(parser: Parser) -> None:
    """Declare the recording and the form of the report."""
    parser.add_argument("file", metavar="FILE", nargs="?", help="a recording or a session; FILE:2 means its run 2")
    add_json_option(parser)


def run(arguments: Arguments) -> int:
    """Print the report on the recording's last run, or on run N for ``FILE:N``; return 0.

    Raises:
        Refusal: the file cannot be read, or it contains no run, or no such run.
    """
    path, number = numbered(arguments.file)
    try:
        recording = read(Path(path))
        going = alive(recording.path, recording.session.id)
        seen = review(told(recording, number), number, spacing_s(recording), alive=going)
    except RecordingError as error:
        raise Refusal(recording_text(error)) from error
    if seen.state.run is None or number not in (None, seen.state.run.run):
        raise no_run(path, number)
    if arguments.json:
        tell_json(msgspec.json.format(msgspec.json.encode(to_json(seen))))
    else:
        tell(page(seen, path))
    if recording.damaged:
        say(lines_left_out(recording.path, damaged=recording.damaged, unknown=recording.unknown))
    return 0
