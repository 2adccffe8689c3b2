"""A session, as a page has it: what is collected while the recording is folded. Pure."""

from collections.abc import Iterable, Iterator

from tfmemtop import __version__
from tfmemtop.events import Event
from tfmemtop.findings.holders import windowless_text
from tfmemtop.findings.missing import unused_probe
from tfmemtop.findings.probe import why_unused
from tfmemtop.findings.review import reviews
from tfmemtop.placement import where
from tfmemtop.reports.holders import not_recorded
from tfmemtop.reports.shared.data import PageComparison, PageData, PageRun, PageSession
from tfmemtop.reports.shared.places import COLUMNS, MemoryOverTime
from tfmemtop.reports.shared.runs import ROOM, page_run, reduced
from tfmemtop.state import State
from tfmemtop.state.holder_choice import chosen, missing
from tfmemtop.units import counted


def page_session(
    name: str, stream: Iterable[Event], number: int | None, look_s: float, *, alive: bool, beside: int = 0
) -> tuple[PageSession, State]:
    """Return the session called *name* with the events *stream*, up to its run *number*, and the state at its end.

    The more sessions are *beside* it on the page, the less of it is shown.
    """
    runs: list[PageRun] = []
    state, memory = State(), MemoryOverTime(COLUMNS // (1 + beside))
    for seen in reviews(_watched(stream, state, memory), look_s, alive=alive, state=state):
        if (run := page_run(seen)) is not None:
            runs[-1:] = map(reduced, runs[-1:])
            runs.append(run)
        if number is not None and state.run is not None and state.run.run >= number:
            break
    if beside:
        runs[-1:] = [reduced(run, ROOM // (1 + beside)) for run in runs[-1:]]
    began = state.session
    placement = began.placement if began else None
    return PageSession(
        name=name,
        placement=where(placement) if placement and placement.among_others else "",
        began=began.started if began else 0.0,
        ended=state.now,
        places=memory.places(state),
        runs=runs,
        notes=list(_notes(state)),
    ), state


def _watched(stream: Iterable[Event], state: State, memory: MemoryOverTime) -> Iterator[Event]:
    """Yield the events of *stream*. Each goes to *memory* as the next is asked for: *state* contains it by then."""
    for event in stream:
        yield event
        memory.take(state, event)


def _notes(state: State) -> Iterator[str]:
    """Yield what is missing of the last run."""
    run = state.run
    if run is None:
        yield "No program was started in this session."
        return
    why = windowless_text(missing(state)) or why_unused(unused_probe(state))
    if not chosen(state) and (why or run.peaks):
        yield not_recorded(why)
    if run.dropped:
        yield f"{counted(run.dropped, 'reading')} could not be sent without making the script wait, and are missing."
    if run.unread:
        yield "The last moments of a process are missing."


def page_data(sessions: list[PageSession], comparison: PageComparison | None) -> PageData:
    """Return the page of *sessions*."""
    return PageData(tfmemtop=__version__, sessions=sessions, comparison=comparison)
