"""``tfmemtop attach [RUN]``: the screen again, onto a run that goes on."""

import shlex
import time

from tfmemtop.commands.arguments import Arguments
from tfmemtop.commands.live import show
from tfmemtop.commands.saying import note
from tfmemtop.commands.screen import terminal_size
from tfmemtop.engine.folders import SessionInfo, sessions
from tfmemtop.engine.launch import Launched
from tfmemtop.engine.procfs import descendants
from tfmemtop.options import Refusal
from tfmemtop.units import format_duration


def run(arguments: Arguments) -> int:
    """Show the one session there is, or the one that is named; the exit code its screen gives.

    Raises:
        Refusal: there is none, none of that name, or several and none named.
    """
    try:
        found = sessions()
    except OSError as error:
        raise Refusal(f"cannot look for sessions: {error}") from error
    chosen = choose(found, arguments.target)
    terminal_size()
    launched = Launched(id=chosen.id, socket=chosen.socket, output_path=chosen.output_path)
    return show(lambda: launched, arguments)


def choose(found: list[SessionInfo], name: str | None) -> SessionInfo:
    """The session called *name*, of which the beginning will do, or the only one.

    Raises:
        Refusal: none fits, or several do; these are listed on stderr first.
    """
    if not found:
        raise Refusal("nothing goes on that one could attach to; start something: tfmemtop -- COMMAND…")
    if name is not None:
        exact = [session for session in found if session.id == name]
        fitting = exact or [session for session in found if name and session.id.startswith(name)]
        if len(fitting) == 1:
            return fitting[0]
        if fitting:
            found = fitting
        _list(found)
        what = "several sessions begin with" if fitting else "no session is called"
        raise Refusal(f"{what} {name!r}; choose one of these: tfmemtop attach {found[0].id}")
    if len(found) > 1:
        _list(found)
        raise Refusal(f"several sessions go on; choose one: tfmemtop attach {found[0].id}")
    return found[0]


def _list(found: list[SessionInfo]) -> None:
    now = time.time()
    for session in found:
        what = shlex.join(session.command) if session.command else "(watching only)"
        state = "running" if descendants(session.pid) else "ended" if session.command else "watching"
        since = format_duration(now - session.started)
        note(f"  {session.id}  {state:<8}  started {since} ago  {what}")
