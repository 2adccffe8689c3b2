"""Show the screen again for a run that still runs.

usage: tfmemtop attach [RUN] [OPTIONS]
example: tfmemtop attach

RUN is the name of a session, or the beginning of the name; tfmemtop ls lists them. Without RUN it is the newest
session whose command runs, or if none does, the newest.
"""

import shlex
import time

from tfmemtop.commands.arguments import ScreenArguments, add_screen_options
from tfmemtop.commands.known_sessions import going
from tfmemtop.commands.live import show
from tfmemtop.commands.parser import Parser
from tfmemtop.commands.saying import note
from tfmemtop.commands.screen import terminal_size
from tfmemtop.engine.process.launch import Launched
from tfmemtop.engine.sources.procfs import descendants
from tfmemtop.engine.stream.folders import SessionInfo
from tfmemtop.options import Refusal
from tfmemtop.units import format_duration


class Arguments(ScreenArguments):
    """``session`` is the beginning of a session's name."""

    session: str | None = None


def declare(parser: Parser) -> None:
    """The session, and the options of the screen."""
    parser.arguments = Arguments
    parser.add_argument("session", metavar="RUN", nargs="?", help="the session's name, or the beginning of the name")
    add_screen_options(parser)


def run(arguments: Arguments) -> int:
    """Show the session that is named, or the newest that runs; return the exit code of its screen.

    Raises:
        Refusal: there is no such session, or several have a name that begins so.
    """
    chosen = choose(going(), arguments.session)
    terminal_size()
    launched = Launched(id=chosen.id, socket=chosen.socket, output_path=chosen.output_path)
    return show(lambda: launched, arguments)


def choose(found: list[SessionInfo], name: str | None) -> SessionInfo:
    """The session whose name is *name* or begins with it; without a *name*, the newest whose script runs.

    If the script of none runs, the newest. *found* has the oldest first.

    Raises:
        Refusal: no session fits, or several do. Those are first listed on stderr.
    """
    if not found:
        raise Refusal("no session is running; start one: tfmemtop -- COMMAND…")
    if name is None:
        return next(filter(_is_running, reversed(found)), found[-1])
    exact = [session for session in found if session.id == name]
    fitting = exact or [session for session in found if name and session.id.startswith(name)]
    if len(fitting) == 1:
        return fitting[0]
    shown = fitting or found
    _list(shown)
    example = next(filter(_is_running, shown), shown[0])
    problem = (
        f"no session is called {name!r}" if not fitting else f"there are several sessions that begin with {name!r}"
    )
    raise Refusal(f"{problem}; choose one: tfmemtop attach {example.id}")


def _is_running(session: SessionInfo) -> bool:
    """Whether its script still runs. An engine stays for a while after its script has ended."""
    return bool(session.command) and bool(descendants(session.pid))


def _list(found: list[SessionInfo]) -> None:
    now = time.time()
    for session in found:
        what = shlex.join(session.command) if session.command else "(watching only)"
        state = "running" if _is_running(session) else "ended" if session.command else "watching"
        since = format_duration(now - session.started)
        note(f"  {session.id}  {state:<8}  started {since} ago  {what}")
