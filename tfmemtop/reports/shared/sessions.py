"""A session, as a page has it: what is collected while the recording is folded. Pure."""

from collections.abc import Iterable

from tfmemtop import __version__
from tfmemtop.events import Event
from tfmemtop.findings.review import reviews
from tfmemtop.placement import where
from tfmemtop.reports.shared.data import PageComparison, PageData, PageRun, PageSession
from tfmemtop.reports.shared.places import RunSpan, page_places, run_span
from tfmemtop.reports.shared.runs import earlier, page_run
from tfmemtop.state import State


def page_session(
    name: str, stream: Iterable[Event], number: int | None, look_s: float, *, alive: bool
) -> tuple[PageSession, State]:
    """Return the session called *name* with the events *stream*, up to its run *number*, and the state at its end."""
    runs: list[PageRun] = []
    spans: list[RunSpan] = []
    state = State()
    for seen in reviews(stream, look_s, alive=alive):
        state = seen.state
        if (run := page_run(seen)) is not None:
            runs[-1:] = map(earlier, runs[-1:])
            runs.append(run)
            spans.append(run_span(state))
        if number is not None and state.run is not None and state.run.run >= number:
            break
    began = state.session
    placement = began.placement if began else None
    return PageSession(
        name=name,
        placement=where(placement) if placement and placement.among_others else "",
        began=began.started if began else 0.0,
        ended=state.now,
        places=page_places(state, spans),
        runs=runs,
        notes=[],
    ), state


def page_data(sessions: list[PageSession], comparison: PageComparison | None) -> PageData:
    """Return the page of *sessions*."""
    return PageData(tfmemtop=__version__, sessions=sessions, comparison=comparison)
