"""The text of the list of sessions. Pure."""

import shlex
import time

from tfmemtop.placement import Placement
from tfmemtop.state.outcome import SessionFigures
from tfmemtop.state.program import program
from tfmemtop.units import format_bytes, format_duration
from tfmemtop.words.counting import counted
from tfmemtop.words.endings import RUNNING, ended
from tfmemtop.words.ranks import rank_of
from tfmemtop.words.safe import safe

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
    return shlex.join(program(session.command)) if session.command else "(watching only)"


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
