"""Why a run's allocations were not replayed, as text."""

from tfmemtop.events import Holders, Probe, Replayed, Unreplayed
from tfmemtop.findings.holders import windowless_text
from tfmemtop.findings.probe import REPLAY, unbuilt_remedy, unbuilt_text, why_unused


def unreplayed_text(replayed: Replayed) -> str:
    """Return why there is no table: one clause, empty where there is a table."""
    if replayed.unreplayed is None:
        return ""
    if replayed.unbuilt is not None:
        return unbuilt_text(replayed.unbuilt, REPLAY)
    if replayed.unreplayed is Unreplayed.NO_ANSWER:
        return unanswered(replayed.detail)
    return replayed.unreplayed.text.format(detail=replayed.detail, count=replayed.count)


def unanswered(last_line: str) -> str:
    """Return the clause about a replay without an answer; *last_line* is the last that it printed, perhaps empty."""
    return "the replay gave no answer" + (f": {last_line}" if last_line else "")


def unreplayed_remedy(replayed: Replayed) -> str:
    """Return what helps to get a table; empty where nothing is known to help."""
    return unbuilt_remedy(replayed.unbuilt) if replayed.unbuilt is not None else ""


NO_TRACE_OUTSIDE = (
    "the first steps of a process that ran already are not known; start the script as tfmemtop -- COMMAND"
)
"""For a recording without a trace, of a process that was read from outside."""


def no_trace(probe: Probe | None, refused: Holders | None) -> str:
    """Return the line for a recording without a trace, of a script that tfmemtop started.

    *probe* reports why the script ran without the probe, and *refused* why it could not record, if that is known.
    """
    why = why_unused(probe) or windowless_text(refused)
    return f"this recording has no first steps{f': {why}' if why else '; record again without --no-probe'}"


NOT_REPLAYED = "not replayed: TensorFlow of that version is not on this machine"
"""For a recording whose allocations cannot be replayed here."""
