"""The text about why a replay gave no table, and what helps. Pure."""

from tfmemtop.events import Replayed, Unreplayed
from tfmemtop.words.probe import REPLAY, unbuilt_remedy, unbuilt_text

_TEXTS = {
    Unreplayed.UNBUILT: "the replay could not be built",
    Unreplayed.NOT_STARTED: "the replay cannot be started: {detail}",
    Unreplayed.SLOW: "the replay was not done within {count} s",
    Unreplayed.NO_MEMORY: "too little memory is free for the replay",
    Unreplayed.REFUSED: "the replay did not take the recorded allocations",
    Unreplayed.ENDED: "the replay ended before it had answered: exit code {count}",
    Unreplayed.TOO_FEW: "the replay ended after {count} answers",
    Unreplayed.NOT_UNDERSTOOD: "the replay's answer cannot be read: {detail}",
}


def unreplayed_text(replayed: Replayed) -> str:
    """Return why there is no table: one clause, empty where there is a table."""
    if replayed.unreplayed is None:
        return ""
    if replayed.unbuilt is not None:
        return unbuilt_text(replayed.unbuilt, REPLAY)
    if replayed.unreplayed is Unreplayed.NO_ANSWER:
        return unanswered(replayed.detail)
    return _TEXTS[replayed.unreplayed].format(detail=replayed.detail, count=replayed.count)


def unanswered(last_line: str) -> str:
    """Return the clause about a replay without an answer; *last_line* is the last that it printed, perhaps empty."""
    return "the replay gave no answer" + (f": {last_line}" if last_line else "")


def unreplayed_remedy(replayed: Replayed) -> str:
    """Return what helps to get a table; empty where nothing is known to help."""
    return unbuilt_remedy(replayed.unbuilt) if replayed.unbuilt is not None else ""
