"""Recordings with figures that cannot be right, or that are 0, and with lists that are empty.

A figure is refused where it is read, or every report can be made. No sentence divides by what a recording says.
"""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tfmemtop.cli import compare
from tfmemtop.events import Event, NoticeKind
from tfmemtop.events.decoding import Unreadable, decode_event, encode
from tfmemtop.events.recording import read
from tfmemtop.findings.finding import RuleFailed
from tfmemtop.findings.review import review
from tfmemtop.reports import holders, why
from tfmemtop.reports.shared.page import html, page_data, page_session
from tfmemtop.state import State
from tfmemtop.state.figures import figures as run_figures
from tfmemtop.state.holders import By, standing
from tfmemtop.state.windows import chosen

RECORDINGS = Path(__file__).parent.parent / "recordings"
PAGED = "windows/xla"
NAMES = PAGED, "leaks/leak", "seeds/cut-up"
"""Of the second and third, those figures are changed that the recordings before do not have."""


def damaged(found: Any, name: str, value: int, called: str = "") -> Any:
    """Return an event with *value* for all its figures, and with nothing in its lists, that are called *name*.

    The names are those of :func:`names`.
    """
    if called == name and isinstance(found, int | float | list):
        return [] if isinstance(found, list) else value
    parts = {key: damaged(each, name, value, inner) for key, each, inner in parts_of(found, called)}
    return parts if isinstance(found, dict) else list(parts.values()) if isinstance(found, list) else found


def names(found: Any, called: str = "") -> Iterator[str]:
    """Yield a name for each figure and list of an event.

    In a list of rows, the figures of one column have the same name.
    """
    if isinstance(found, int | float | list) and not isinstance(found, bool):
        yield called
    for _, each, inner in parts_of(found, called):
        yield from names(each, inner)


def parts_of(found: Any, called: str) -> Iterator[tuple[Any, Any, str]]:
    """Yield each part of a dict or list with its key and its name."""
    if isinstance(found, dict):
        yield from ((key, each, f"{called}.{key}") for key, each in found.items())
    elif isinstance(found, list):
        for at, each in enumerate(found):
            yield at, each, f"{called}.*" if isinstance(each, dict | list) else f"{called}.{at}"


def lines_of(name: str) -> list[Any]:
    return [msgspec.json.decode(encode(event)) for event in read(RECORDINGS / f"{name}.jsonl").events()]


def figures_of(lines: list[Any]) -> set[tuple[str, str]]:
    return {(line["type"], called) for line in lines for called in names(line)}


def readable(line: Any) -> Iterator[Event]:
    """Yield the event that a reader of a recording receives, or nothing."""
    with suppress(Unreadable):
        yield decode_event(encode(line))


def of_run(state: State) -> tuple[Any, Any]:
    """Return what ``tfmemtop compare`` compares."""
    assert state.run is not None
    found = chosen(state)
    return run_figures(state.run, state.now, "run", alive=False), (
        standing(found[0].window, found[0].hooked, By.LAYER) if found else None
    )


def report(events: Iterable[Event], beside: State) -> Iterator[str]:
    """Make all reports on a recording and its comparison with the run *beside*; yield each that failed inside."""
    seen = review(events)
    state = seen.state
    if any(notice.kind is NoticeKind.EVENT_LEFT_OUT for notice in state.notices.values()):
        yield "an event was not folded"
    for held in seen.held:
        if isinstance(held.finding, RuleFailed):
            yield held.finding.said.text
        assert held.finding.said.text
    if state.run is None:
        return
    page = why.page(seen, "run.jsonl")
    yield from (line for line in page if "cannot be answered" in line)
    encode(why.to_json(seen))
    for one in chosen(state):
        for by in By:
            holders.table(one, by, [])
            encode(holders.to_json(one, by))
    for first, second in ((of_run(state), of_run(beside)), (of_run(beside), of_run(state))):
        both = (first[1], second[1]) if first[1] and second[1] else None
        compare.table(first[0], second[0], both)
        encode(compare.to_json(first[0], second[0], both))


@pytest.mark.no_cover  # the same lines, thousands of times
@pytest.mark.parametrize("name", NAMES)
def test_no_figure_of_a_recording_makes_a_report_fail(name: str) -> None:
    events = list(read(RECORDINGS / f"{name}.jsonl").events())
    lines = lines_of(name)
    beside = review(events).state
    assert not list(report(events, beside))
    known = {figure for before in NAMES[: NAMES.index(name)] for figure in figures_of(lines_of(before))}
    for number, (kind, called) in enumerate(sorted(figures_of(lines) - known)):
        value = (0, -1, 1, 2**62)[number % 4]
        changed = (
            readable(damaged(line, called, value)) if line["type"] == kind else (event,)
            for line, event in zip(lines, events, strict=True)
        )
        stream = list(chain.from_iterable(changed))
        assert not list(report(stream, beside)), f"{kind}{called} = {value}"
        if name == PAGED:
            session, _ = page_session("run", stream, None, 1.0, alive=False)
            assert html(page_data([session], None)), f"{kind}{called} = {value}"
