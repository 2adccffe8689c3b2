"""The mistakes of a real script are in its recording, and ``tfmemtop why`` finds them there."""

import subprocess
from pathlib import Path

import pytest

from tests.agent.test_making import DIFFERENT
from tests.patience import PATIENCE_S
from tests.rules.real_runs import MISTAKES, OURS, line_of, recorded
from tfmemtop import recording
from tfmemtop.rules.run_review import RunReview, review
from tfmemtop.rules.settings import AskedTooLate, GrowthDiffers
from tfmemtop.words.findings import say


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
    (late,) = [say(held.finding) for held in seen.held if isinstance(held.finding, AskedTooLate)]
    call, maker = (f"train.py:{line_of(text)}" for text in ("tf.config.set_visible", "weights"))
    assert f"{call}: set_visible_devices([], CPU) came too late" in late.headline
    assert f"{maker} (weights = tf.Variable([1.0])) had TensorFlow make its devices before" in late.figures
    assert late.headline in page and late.figures in page and late.text in summary


@pytest.mark.tensorflow
def test_growth_that_differs_is_found_though_the_script_catches_the_error(shared: Path) -> None:
    seen, page, summary = looked_back_on(recorded(shared, "growth", DIFFERENT.replace("print(error)", "pass")))
    (differs,) = [say(held.finding).text for held in seen.held if isinstance(held.finding, GrowthDiffers)]
    line = DIFFERENT.splitlines().index("        tf.ones(3)") + 1
    assert f"at train.py:{line}, since memory growth differs" in differs and "GPU:0 only" in differs
    assert differs in page and differs in summary
