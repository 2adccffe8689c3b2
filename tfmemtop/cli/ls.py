"""List the sessions: those that run, and those that have ended.

usage: tfmemtop ls [--all] [--json]
example: tfmemtop ls --all

The newest are first. The name of a session stands for its recording: tfmemtop why NAME. Without a name, why, compare
and replay take the last session, and attach takes the newest that still runs.
"""

import shlex
import time
from typing import Any

from tfmemtop.cli.arguments import FOR_OUTPUT, JSON
from tfmemtop.cli.output import note, print_json, print_lines
from tfmemtop.cli.parser import BaseArguments, switch
from tfmemtop.cli.sessions import newest_sessions
from tfmemtop.findings.rules.ending import RUNNING, ended
from tfmemtop.placement import Placement, rank_of
from tfmemtop.safe import safe
from tfmemtop.state.figures import SessionFigures
from tfmemtop.state.program import program, short
from tfmemtop.units import aligned, counted, format_bytes, format_duration

_HEADINGS = ("SESSION", "STARTED", "DURATION", "PEAK", "RECORDING", "COMMAND", "END")
_OF_RANKS = ("JOB", "RANK", "HOST")  # they stand before the command
NONE = "no session is known yet; start one: tfmemtop -- COMMAND…"


def headings(ranks: bool) -> tuple[str, ...]:
    """Return the headings of the columns. *ranks* is true if one of the sessions was one of several ranks."""
    return (*_HEADINGS[:-2], *_OF_RANKS, *_HEADINGS[-2:]) if ranks else _HEADINGS


def cells(session: SessionFigures, ranks: bool = False) -> tuple[str, ...]:
    """Return the cells of *session* under the :func:`headings`. Times are in this machine's time zone."""
    return (
        session.name,
        time.strftime("%Y-%m-%d %H:%M", time.localtime(session.started)),
        format_duration(session.duration_s),
        format_bytes(session.last.peak_in_use),
        format_bytes(session.size),
        *(_of_rank(session.placement) if ranks else ()),
        _command(session),
        end(session),
    )


def _command(session: SessionFigures) -> str:
    if session.last.notebook:
        return f"{safe(session.last.notebook)} (Jupyter kernel)"
    return short(shlex.join(program(session.command))) if session.command else "(watching only)"


def _of_rank(place: Placement | None) -> tuple[str, str, str]:
    place = place or Placement()
    return place.job or "", rank_of(place).removeprefix("rank "), safe(place.host)


def end(session: SessionFigures) -> str:
    """Return how the last run of *session* ended, and how many runs there were if several.

    For a kernel, the number is that of this run among the kernel's runs.
    """
    if not session.command:
        return RUNNING if session.going else ""
    last = session.last
    how = ended(last.ending, running=session.running, left=last.left)
    number = session.last.run or 0
    if number < 2:
        return how
    return f"{how}; run {number} of it" if session.last.kernel else f"{how}; {counted(number, 'run')}"


def more(count: int) -> str:
    """Return the line about older sessions that are not listed."""
    return f"{counted(count, 'older session')} not listed; --all lists them"


def table(sessions: list[SessionFigures]) -> list[str]:
    """Return a line with the headings, and one for each session."""
    ranks = any(session.placement and session.placement.among_others for session in sessions)
    rows = [headings(ranks), *(cells(session, ranks) for session in sessions)]
    return aligned(rows, range(len(rows[0])))


def to_json(sessions: list[SessionFigures]) -> list[dict[str, Any]]:
    """Return the same as keys and values, in bytes and seconds; ``started`` is in seconds since 1970."""
    return [_told(session) for session in sessions]


def _told(session: SessionFigures) -> dict[str, Any]:
    last = session.last
    return {
        "name": session.name,
        "command": session.command,
        "notebook": last.notebook,
        "started": session.started,
        "duration_s": round(session.duration_s, 3),
        "running": session.running,
        "runs": 1 if last.kernel else last.run,
        "run": last.run,
        "end": end(session),
        "good": None if last.ending is None else last.ending.good,
        "peak_in_use": last.peak_in_use,
        "recording": session.path,
        "size": session.size,
        "placement": session.placement,
    }


_NEWEST = 20


class LsArguments(BaseArguments):
    """``all``: list all sessions, not only the newest."""

    all: bool = switch(FOR_OUTPUT, f"list all sessions, not only the newest {_NEWEST}")
    json: bool = JSON


ARGUMENTS = LsArguments


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
