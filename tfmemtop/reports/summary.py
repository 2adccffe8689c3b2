"""The summary of a run once it is over, or when its screen is left."""

from collections.abc import Iterable

from tfmemtop.events import Event, NoticeKind
from tfmemtop.findings import findings, follow_rule
from tfmemtop.findings.ending import RunEnded
from tfmemtop.findings.finding import Finding, Severity
from tfmemtop.findings.memory import crashed_when_full, out_of_memory
from tfmemtop.findings.notices import Noticed
from tfmemtop.findings.settings import SETTINGS_RULES
from tfmemtop.state import State, apply
from tfmemtop.words.summary import left, summary

_WORTH_IT = (out_of_memory, crashed_when_full, *SETTINGS_RULES)
"""The rules whose findings still matter once the run is over."""


def summarise(events: Iterable[Event], readings: int) -> list[str]:
    """Return the summary of the newest run of a stream, one line for each fact.

    The first line is how long the run took and how it ended. *readings* is how many readings the session has.
    """
    state = State()
    for event in events:
        apply(state, event)
    found = [finding.said.text for rule in _WORTH_IT for finding in follow_rule(rule, state)]
    return [*summary(state, readings), *found]


def closing(state: State) -> list[str]:
    """Return the lines for a user who leaves the screen: the newest run in figures, and each finding that matters.

    Empty where nothing was run. The findings that the run has ended and that the engine is gone are left out: leaving
    the screen ends the connection to the engine.
    """
    if state.run is None:
        return []
    grave = [found for found in findings(state) if found.severity < Severity.INFO and not _expected(found)]
    return [*left(state, state.run), *(found.said.headline for found in grave)]


def _expected(found: Finding) -> bool:
    return isinstance(found, RunEnded) or (isinstance(found, Noticed) and found.notice.kind is NoticeKind.ENGINE_GONE)
