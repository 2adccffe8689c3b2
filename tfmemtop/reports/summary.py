"""What is worth saying about a run once it is over, or when its screen is left."""

from collections.abc import Iterable

from tfmemtop.events import Event, NoticeKind
from tfmemtop.rules import findings, follow_rule
from tfmemtop.rules.ending import RunEnded
from tfmemtop.rules.finding import Finding, Severity
from tfmemtop.rules.memory import crashed_when_full, out_of_memory
from tfmemtop.rules.notices import Noticed
from tfmemtop.rules.settings import SETTINGS_RULES
from tfmemtop.state import State, apply
from tfmemtop.words.findings import say
from tfmemtop.words.summary import left, summary

_WORTH_IT = (out_of_memory, crashed_when_full, *SETTINGS_RULES)
"""The rules whose findings still matter when the run is over."""


def summarise(events: Iterable[Event], readings: int) -> list[str]:
    """The newest run of a stream, a line a fact; the first says how long it took and how it ended.

    *readings* is how many were taken in the session.
    """
    state = State()
    for event in events:
        apply(state, event)
    found = [say(finding).text for rule in _WORTH_IT for finding in follow_rule(rule, state)]
    return [*summary(state, readings), *found]


def closing(state: State) -> list[str]:
    """For a user who leaves the screen: the newest run in figures, and a line for each finding that matters.

    Empty where nothing was run. That the connection to the engine is over is what leaving means.
    """
    if state.run is None:
        return []
    grave = [found for found in findings(state) if found.severity < Severity.INFO and not _expected(found)]
    return [*left(state, state.run), *(say(found).headline for found in grave)]


def _expected(found: Finding) -> bool:
    return isinstance(found, RunEnded) or (isinstance(found, Noticed) and found.notice.kind is NoticeKind.ENGINE_GONE)
