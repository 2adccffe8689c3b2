"""What a real script does wrong is in its recording, and ``tfmemtop why`` finds it there."""

import subprocess
import sys
from pathlib import Path

from tests.hook.test_making import DIFFERENT
from tfmemtop import recording
from tfmemtop.verdicts.course import Course, follow

LATE = """
import tensorflow as tf
weights = tf.Variable([1.0])
try:
    tf.config.set_visible_devices([], "CPU")
except RuntimeError:
    pass
"""


def recorded(folder: Path, source: str) -> tuple[Course, str, str]:
    """A run of *source*, looked back on, what ``why`` prints of it, and what ``record`` said at its end."""
    script, path = folder / "train.py", str(folder / "run.jsonl")
    script.write_text(source)
    ours = [sys.executable, "-m", "tfmemtop"]
    watched = [*ours, "record", "-o", path, "--no-probe", "--", sys.executable, str(script)]
    summary = subprocess.run(watched, check=True, timeout=120, stderr=subprocess.PIPE, text=True).stderr
    page = subprocess.run([*ours, "why", path], check=True, timeout=60, stdout=subprocess.PIPE, text=True).stdout
    return follow(recording.read(path).events()), " ".join(page.split()), summary


def test_a_call_that_came_too_late_names_what_came_before(tmp_path: Path) -> None:
    course, page, summary = recorded(tmp_path, LATE)
    (late,) = [told.finding for told in course.told if told.finding.key == "asked-too-late"]
    assert "train.py:5: set_visible_devices([], CPU) came too late" in late.text
    assert "train.py:3 (weights = tf.Variable([1.0])) had TensorFlow make its devices before" in late.text
    assert late.text in page and late.text in summary


def test_growth_that_differs_is_found_though_the_script_catches_the_error(tmp_path: Path) -> None:
    course, page, summary = recorded(tmp_path, DIFFERENT.replace("print(error)", "pass"))
    (differs,) = [told.finding for told in course.told if told.finding.key == "growth-differs"]
    line = DIFFERENT.splitlines().index("        tf.ones(3)") + 1
    assert f"at train.py:{line}, since memory growth differs" in differs.text and "GPU:0 only" in differs.text
    assert differs.text in page and differs.text in summary
