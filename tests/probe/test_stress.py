"""A few rounds of what ``tests/probe/stress.py`` does by the hundred."""

import os
import subprocess
import sys
from pathlib import Path


def test_no_awkward_moment_crashes_or_hangs_the_script(library: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.probe.stress", "--rounds", "1", "--seconds", "0.5"],
        cwd=Path(__file__).parents[2],
        env={**os.environ, "TF_ENABLE_ONEDNN_OPTS": "0"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(done.stdout.splitlines()) == 11
