"""List the sessions: those that run, and those that have ended.

usage: tfmemtop ls [--all] [--json]
example: tfmemtop ls --all

The newest are first. The name of a session stands for its recording: tfmemtop why NAME. Without a name, why, compare
and replay take the last session, and attach takes the newest that still runs.
"""

from tfmemtop.cli.arguments import add_json_option
from tfmemtop.cli.output import note, print_json, print_lines
from tfmemtop.cli.parser import BaseArguments, Parser
from tfmemtop.cli.sessions import newest_sessions
from tfmemtop.reports.sessions import NONE, more, table, to_json

_NEWEST = 20


class LsArguments(BaseArguments):
    """``all``: list all sessions, not only the newest."""

    all: bool = False
    json: bool = False


def declare(parser: Parser) -> None:
    """Declare the number of sessions, and the form of the output."""
    parser.arguments = LsArguments
    parser.add_argument("--all", action="store_true", help=f"list all sessions, not only the newest {_NEWEST}")
    add_json_option(parser)


def run(arguments: LsArguments) -> int:
    """Print the list, as a table or as JSON; return 0.

    Raises:
        Refusal: the folder of the sessions cannot be searched.
    """
    sessions, others = newest_sessions(None if arguments.all else _NEWEST)
    if arguments.json:
        print_json(to_json(sessions))
    elif sessions:
        print_lines(table(sessions))
        if others:
            note(more(others))
    else:
        note(NONE)
    return 0
