"""List the sessions: those that run, and those that have ended.

usage: tfmemtop ls [--all] [--json]
example: tfmemtop ls --all

The newest are first. The name of a session stands for its recording: tfmemtop why NAME. Without a name, why, compare
and replay take the last session, and attach takes the newest that still runs.
"""

import msgspec

from tfmemtop.cli.arguments import add_json_option
from tfmemtop.cli.known_sessions import known
from tfmemtop.cli.parser import BaseArguments, Parser
from tfmemtop.cli.saying import note, tell, tell_json
from tfmemtop.reports.sessions import NONE, more, table, to_json

_NEWEST = 20


class Arguments(BaseArguments):
    """``all``: list all sessions, not only the newest."""

    all: bool = False
    json: bool = False


def declare(parser: Parser) -> None:
    """Declare the number of sessions, and the form of the output."""
    parser.add_argument("--all", action="store_true", help=f"list all sessions, not only the newest {_NEWEST}")
    add_json_option(parser)


def run(arguments: Arguments) -> int:
    """Print the list, as a table or as JSON; return 0.

    Raises:
        Refusal: the folder of the sessions cannot be searched.
    """
    found, left = known(None if arguments.all else _NEWEST)
    if arguments.json:
        tell_json(msgspec.json.format(msgspec.json.encode(to_json(found))))
    elif found:
        tell(table(found))
        if left:
            note(more(left))
    else:
        note(NONE)
    return 0
