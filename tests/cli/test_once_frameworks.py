"""``tfmemtop --once`` shows what JAX, PyTorch, CuPy and RMM hold in a process of a session."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.patience import PATIENCE_S, until
from tests.stand_ins import FIGURES, USED, write_stand_ins
from tests.starting import PROGRAM, tfmemtop

pytestmark = pytest.mark.programs


def test_a_reading_has_them_while_the_script_runs(home: Path) -> None:
    script = home / "train.py"
    script.write_text(USED + "import sys; sys.stdin.readline()\n")
    record = subprocess.Popen(
        [PROGRAM, "record", "-o", str(home / "run.jsonl"), "--", sys.executable, str(script)],
        stdin=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": write_stand_ins(home / "packages")},
    )

    def found() -> dict[str, dict[str, int]]:
        lines = map(json.loads, tfmemtop("--once", "--json").stdout.splitlines())
        events = {line["device"]: line for line in lines if line["type"] == "framework"}
        return events if len(events) == len(FIGURES) else {}

    told = until(found, every_s=0.5)
    assert {device: {name: told[device][name] for name in figures} for device, figures in FIGURES.items()} == FIGURES
    rows = [line.split() for line in tfmemtop("--once").stdout.splitlines()]
    assert [row[2:5] for row in rows if "PyTorch:0" in row] == [["512.0M", "513.0M", "514.0M"]]
    record.communicate(b"\n", timeout=PATIENCE_S)
    assert record.returncode == 0
    assert "framework" not in tfmemtop("--once", "--json").stdout
