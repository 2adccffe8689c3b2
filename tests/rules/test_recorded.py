"""What a real script does wrong is in its recording, and ``tfmemtop why`` finds it there."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.agent.test_making import DIFFERENT
from tests.patience import PATIENCE_S
from tfmemtop import recording
from tfmemtop.rules.run_review import RunReview, review
from tfmemtop.rules.settings import AskedTooLate, GrowthDiffers
from tfmemtop.words.findings import say

LATE = """
import tensorflow as tf
weights = tf.Variable([1.0])
try:
    tf.config.set_visible_devices([], "CPU")
except RuntimeError:
    pass
"""


def recorded(folder: Path, source: str) -> tuple[RunReview, str, str]:
    """A run of *source*, looked back on, what ``why`` prints of it, and what ``record`` said at its end."""
    script, path = folder / "train.py", str(folder / "run.jsonl")
    script.write_text(source)
    ours = [sys.executable, "-m", "tfmemtop"]
    watched = [*ours, "record", "-o", path, "--no-probe", "--", sys.executable, str(script)]
    summary = subprocess.run(watched, check=True, timeout=PATIENCE_S, stderr=subprocess.PIPE, text=True).stderr
    page = subprocess.run(
        [*ours, "why", path], check=True, timeout=PATIENCE_S, stdout=subprocess.PIPE, text=True
    ).stdout
    return review(recording.read(path).events()), " ".join(page.split()), summary


@pytest.mark.tensorflow
def test_a_call_that_came_too_late_names_what_came_before(tmp_path: Path) -> None:
    seen, page, summary = recorded(tmp_path, LATE)
    (late,) = [say(held.finding) for held in seen.held if isinstance(held.finding, AskedTooLate)]
    assert "train.py:5: set_visible_devices([], CPU) came too late" in late.headline
    assert "train.py:3 (weights = tf.Variable([1.0])) had TensorFlow make its devices before" in late.figures
    assert late.headline in page and late.figures in page and late.text in summary


@pytest.mark.tensorflow
def test_growth_that_differs_is_found_though_the_script_catches_the_error(tmp_path: Path) -> None:
    seen, page, summary = recorded(tmp_path, DIFFERENT.replace("print(error)", "pass"))
    (differs,) = [say(held.finding).text for held in seen.held if isinstance(held.finding, GrowthDiffers)]
    line = DIFFERENT.splitlines().index("        tf.ones(3)") + 1
    assert f"at train.py:{line}, since memory growth differs" in differs and "GPU:0 only" in differs
    assert differs in page and differs in summary
