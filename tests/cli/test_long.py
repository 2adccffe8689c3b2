"""Reports on a long session are made from an outline of it. They are the same as those from all of its events."""

from dataclasses import replace

import pytest

from tests.tools.bench.day import session
from tests.tools.bench.recording import write
from tfmemtop.cli.sessions import fold_recording, report_events, spacing_s
from tfmemtop.engine.stream.thinner import Thinner
from tfmemtop.events.recording import Recording, read
from tfmemtop.events.recording.outline import STRETCH_S, outlined
from tfmemtop.findings.run_review import RunReview, review
from tfmemtop.reports.why import page
from tfmemtop.state.figures import figures

LONG_S = 3700
"""Seconds. Reports on sessions of an hour or more are made from an outline."""


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    path = tmp_path_factory.mktemp("long") / "run.jsonl.gz"
    write(path, LONG_S)
    return read(path)


@pytest.fixture(scope="module")
def whole() -> RunReview:
    """The review of all events, not only of those in the outline."""
    return review(session(LONG_S))


@pytest.mark.long
def test_an_outline_explains_what_the_whole_does(recording: Recording, whole: RunReview) -> None:
    outline = list(report_events(recording))
    assert len(outline) < len(list(recording.events())) / 4
    assert page(review(outline, None, spacing_s(recording)), "run") == page(whole, "run")


@pytest.mark.long
def test_an_outline_compares_as_the_whole_does(recording: Recording, whole: RunReview) -> None:
    short = fold_recording(str(recording.path))
    complete, few = (figures(each.runs[-1], each.now) for each in (whole.state, short))
    assert replace(few, past=complete.past) == complete


@pytest.mark.long
@pytest.mark.parametrize("spacing_s", [0.4, 4.0])
def test_of_fewer_readings_too_an_outline_explains_what_the_whole_does(spacing_s: float) -> None:
    thinner = Thinner()
    thinner.spacing_s = spacing_s
    whole = [kept for event in session(LONG_S) if (kept := thinner(event)) is not None]
    outline = list(outlined(whole, LONG_S - 300.0))
    assert len(outline) < 0.8 * len(whole)
    assert page(review(outline, None, STRETCH_S), "run") == page(review(whole), "run")
