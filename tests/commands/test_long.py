"""Reports on a long session are made of an outline, and say what the whole of it would."""

from dataclasses import replace

import pytest

from tests.bench.day import session
from tests.bench.recording import write
from tfmemtop.commands.recorded import fold, spacing_s, told
from tfmemtop.recording import Recording, read
from tfmemtop.reports.why import page
from tfmemtop.rules.run_review import RunReview, review
from tfmemtop.state import State, apply
from tfmemtop.state.figures import figures

LONG_S = 3700


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    path = tmp_path_factory.mktemp("long") / "run.jsonl.gz"
    write(path, LONG_S)
    return read(path)


def test_an_outline_explains_what_the_whole_does(recording: Recording) -> None:
    outline = list(told(recording))
    assert len(outline) < len(list(recording.events())) / 4
    short: RunReview = review(outline, None, spacing_s(recording))
    assert page(short, "run") == page(review(session(LONG_S)), "run")


def test_an_outline_compares_as_the_whole_does(recording: Recording) -> None:
    state = State()
    for event in recording.events():
        apply(state, event)
    short = fold(str(recording.path))
    whole, few = (figures(each.runs[-1], each.now) for each in (state, short))
    assert replace(few, past=whole.past) == whole
