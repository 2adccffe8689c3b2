"""The list of sessions, as text and as JSON. Pure."""

from typing import Any

from tfmemtop.state.outcome import SessionFigures
from tfmemtop.words.sessions import cells, end, headings


def table(sessions: list[SessionFigures]) -> list[str]:
    """Return a line with the headings, and one for each session."""
    ranks = any(session.placement and session.placement.among_others for session in sessions)
    rows = [headings(ranks), *(cells(session, ranks) for session in sessions)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


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
