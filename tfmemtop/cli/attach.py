"""Show the screen for a run, or for a process that tfmemtop did not start.

usage: tfmemtop attach [RUN] [OPTIONS]
usage: tfmemtop attach PID [OPTIONS]
example: tfmemtop attach
example: tfmemtop attach 4242

RUN is the name of a session, or the beginning of the name; tfmemtop ls lists them. Without RUN it is the newest
session whose command still runs. If there is none, it is the newest session. The screen of a session that tfmemtop
record runs changes nothing.

PID is the number of a process with TensorFlow. Its allocators are read from outside: nothing is put into it, and it
is not stopped. It goes on when you leave. See also: tfmemtop help outside.
"""

import os
from pathlib import Path

from tfmemtop.cli import Refusal
from tfmemtop.cli.arguments import FOR_RECORDING, NO_RECORD, RECORD, ScreenArguments, seconds
from tfmemtop.cli.launch import file_for, script_terminal_size, terminal_size, working_folder
from tfmemtop.cli.live import show
from tfmemtop.cli.output import say
from tfmemtop.cli.parser import argument, option
from tfmemtop.cli.sessions import running_sessions
from tfmemtop.engine.process.launch import Launch, Launched, start
from tfmemtop.engine.sources.outside.look import Look
from tfmemtop.engine.sources.processes import descendants, is_alive, read_environment
from tfmemtop.engine.stream.folders import SessionInfo
from tfmemtop.events import OutsideState
from tfmemtop.findings.rules.attached import say_state
from tfmemtop.settings import INTERVAL_S

_NEWEST = "This is the newest of {} sessions that run here. tfmemtop ls lists them; tfmemtop attach NAME shows another."
_FOR_PROCESS = "for a process that tfmemtop did not start"


class AttachArguments(ScreenArguments):
    """``session`` is the beginning of a session's name, or a process id."""

    session: str | None = argument("RUN", "the name of a session or its beginning, or the number of a process")
    interval: float = option(
        _FOR_PROCESS,
        f"time between two readings, 0.05 to 60 (default {INTERVAL_S})",
        metavar="SECONDS",
        type=seconds(0.05, 60),
        default=INTERVAL_S,
    )
    record: Path | None = RECORD
    no_record: bool = NO_RECORD

    @property
    def pid(self) -> int | None:
        """The process id, if ``session`` is a number; else ``None``. A session's name begins with a letter."""
        return int(self.session) if self.session and self.session.isdecimal() else None

    def check(self) -> None:
        of_process = (each.flag for each in self.typed() if each.group in (_FOR_PROCESS, FOR_RECORDING))
        if self.pid is None and (flag := next(of_process, None)):
            raise Refusal(f"{flag} needs the number of a process; for example: tfmemtop attach {flag} … 4242")


ARGUMENTS = AttachArguments


def run(arguments: AttachArguments) -> int:
    """Show the named session or process, or the newest session that runs; return the exit code of its screen.

    Raises:
        Refusal: there is no such session or process, the names of several sessions begin alike, the process cannot be
            read, or there is no terminal for the screen.
    """
    if arguments.pid is not None:
        return _process(arguments.pid, arguments)
    found = running_sessions()
    session, running = choose(found, arguments.session), sum(map(_is_running, found))
    unnamed = arguments.session is None and running > 1
    return _show_session(session, arguments, _NEWEST.format(running) if unnamed else "")


def _show_session(session: SessionInfo, arguments: AttachArguments, hint: str = "") -> int:
    terminal_size()
    arguments.readonly |= session.recorded
    launched = Launched(id=session.id, socket=session.socket, output_path=session.output_path)
    return show(lambda: launched, arguments, outside=session.reads is not None, hint=hint)


def _process(pid: int, arguments: AttachArguments) -> int:
    if (session := _session_of(pid)) is not None:
        return _show_session(session, arguments)
    look = Look(pid)
    about = look.refresh()
    look.close()
    # If the process itself may change what is missing, the screen waits for that. Otherwise refuse at once.
    if about.state is OutsideState.GONE:
        raise Refusal(f"there is no process {pid}", 1)
    if not about.state.may_change:
        raise Refusal(f"process {pid} cannot be read: {say_state(about).line}", 1)
    columns, rows = script_terminal_size()
    cwd = working_folder()
    arguments.record, remarks = file_for(arguments.record, pid)
    launch = Launch(
        argv=[],
        cwd=cwd,
        environment=dict(os.environ),
        interval_s=arguments.interval,
        record=str(Path(cwd, arguments.record)) if arguments.record else None,
        keep=not arguments.no_record,
        columns=columns,
        rows=rows,
        attach=pid,
    )
    code = show(lambda: start(launch), arguments, outside=True)
    for line in remarks:
        say(line)
    return code


def _session_of(pid: int) -> SessionInfo | None:
    """Return the session that started process *pid*, or has it as its own, and still goes on; else ``None``."""
    try:
        socket = read_environment(pid).get("TFMEMTOP_SOCKET", "")
    except OSError:
        return None
    name = Path(socket).parent.name
    started = (session for session in running_sessions() if session.reads is None)
    return next((session for session in started if session.id == name or session.pid == pid), None)


def choose(sessions: list[SessionInfo], name: str | None) -> SessionInfo:
    """Return the session whose name is *name* or begins with it.

    Without a *name*, return the newest session whose script runs, or the newest of all if no script runs. *sessions*
    has the oldest first.

    Raises:
        Refusal: no session fits, or several do.
    """
    if not sessions:
        raise Refusal(
            "no session is running; start one: tfmemtop -- COMMAND… (tfmemtop ls lists those that have ended)"
        )
    if name is None:
        return next(filter(_is_running, reversed(sessions)), sessions[-1])
    exact = [session for session in sessions if session.id == name]
    fitting = exact or [session for session in sessions if name and session.id.startswith(name)]
    if len(fitting) == 1:
        return fitting[0]
    shown = fitting or sessions
    example = next(filter(_is_running, shown), shown[0])
    problem = f"there are several sessions that begin with {name!r}" if fitting else f"no session is called {name!r}"
    raise Refusal(f"{problem}; tfmemtop ls lists them; for example: tfmemtop attach {example.id}")


def _is_running(session: SessionInfo) -> bool:
    """Return whether the session's script still runs. An engine goes on for a while after its script has ended."""
    if session.reads is not None:
        return is_alive(session.reads)
    if session.kernel is not None:
        return is_alive(session.kernel)
    return bool(session.command) and bool(descendants(session.pid))
