"""The mistakes of a real script are in its recording, and are found there, as by ``tfmemtop why``."""

import subprocess
from pathlib import Path

import pytest

from tests import streams as s
from tests.cli.real_runs import MISTAKES, OURS, line_of, recorded
from tests.patience import PATIENCE_S
from tfmemtop.events import recording
from tfmemtop.findings.retracing import Retraced
from tfmemtop.findings.review import RunReview, review
from tfmemtop.findings.rules import findings
from tfmemtop.findings.settings import AskedTooLate


def looked_back_on(folder: Path) -> tuple[RunReview, str, str]:
    """Return the review of the run recorded in *folder*, what ``why`` prints about it, and what ``record`` printed."""
    path = folder / "run.jsonl"
    page = subprocess.run(
        [*OURS, "why", path], check=True, timeout=PATIENCE_S, stdout=subprocess.PIPE, text=True
    ).stdout
    return review(recording.read(path).events()), " ".join(page.split()), (folder / "said").read_text()


@pytest.mark.tensorflow
def test_a_call_that_came_too_late_names_what_came_before(shared: Path) -> None:
    seen, page, summary = looked_back_on(recorded(shared, "mistakes", MISTAKES))
    (late,) = [held.finding.said for held in seen.held if isinstance(held.finding, AskedTooLate)]
    call, maker = (f"train.py:{line_of(text)}" for text in ("tf.config.set_visible", "weights"))
    assert f"{call}: set_visible_devices([], CPU) came too late" in late.headline
    assert f"{maker} (weights = tf.Variable([1.0])) had TensorFlow make its devices before" in late.figures
    assert late.headline in page and late.figures in page and late.headline in summary


def of_retracing(folder: Path) -> tuple[list[Retraced], int]:
    """Return the findings about retracing in the run recorded in *folder*, and the number of calls of its function."""
    state = s.fold(recording.read(folder / "run.jsonl").events())
    assert state.run is not None and state.run.steps is not None
    return [finding for finding in findings(state) if isinstance(finding, Retraced)], state.run.steps.calls


@pytest.mark.tensorflow
def test_a_real_function_that_is_traced_anew(shared: Path) -> None:
    (finding,), calls = of_retracing(recorded(shared, "mistakes", MISTAKES))
    assert (
        finding.said.text.startswith(f"train.py:{line_of('@tf.function')}: step was traced anew in 12 of 12 calls")
        and calls == 12
    )
