"""Notebooks that run without a user, by ``jupyter execute``. It uses nbclient, as papermill does."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.patience import PATIENCE_S, until
from tests.starting import PROGRAM
from tfmemtop import events as ev
from tfmemtop.engine.stream.kept_sessions import is_written, kept_recordings, place_for
from tfmemtop.events.recording import read

EXECUTE = str(Path(sys.executable).with_name("jupyter-execute"))


_UNTIL_IT_IS_A_ROW = """
import os, time
while f'"pid":{{os.getpid()}},' not in open({!r}).read():
    time.sleep(0.05)
"""


def _notebook(path: Path, recording: Path) -> Path:
    """Write a notebook to *path*. Its kernel runs until the file *recording* contains the kernel's process."""
    wait = _UNTIL_IT_IS_A_ROW.format(str(recording))
    cells: list[dict[str, Any]] = [
        {"cell_type": "code", "source": source, "metadata": {}, "outputs": [], "execution_count": None, "id": f"c{n}"}
        for n, source in enumerate(("x = 6", wait, "print(x * 7)"))
    ]
    spec = {"name": "tfmemtop", "display_name": "tfmemtop", "language": "python"}
    text = {"cells": cells, "metadata": {"kernelspec": spec}, "nbformat": 4, "nbformat_minor": 5}
    path.write_text(json.dumps(text))
    return path


def _printed(path: Path) -> list[str]:
    return [output["text"] for cell in json.loads(path.read_text())["cells"] for output in cell["outputs"]]


def test_a_kernel_of_tfmemtop_is_a_session_of_its_own_under_a_watched_jupyter(jupyter: Path) -> None:
    pytest.importorskip("nbclient")
    before = set(kept_recordings())
    recording = jupyter / "outer.jsonl"
    path = _notebook(jupyter / "inner.ipynb", recording)
    command = [PROGRAM, "record", "-o", str(recording), "--", EXECUTE, "--inplace", str(path)]
    subprocess.run(command, check=True, timeout=PATIENCE_S)
    assert "".join(map("".join, _printed(path))) == "42\n"
    rows = {each.pid: each for each in read(recording).events() if isinstance(each, ev.Process) and each.run == 1}
    (session,) = (each for each in set(kept_recordings()) - before if place_for(each).resolve() != recording.resolve())
    until(lambda: not is_written(place_for(session)))
    run, end = (event for event in read(place_for(session)).events() if isinstance(event, ev.Run | ev.RunEnd))
    assert isinstance(run, ev.Run) and run.kernel and run.notebook == path.name and run.pid in rows
    assert isinstance(end, ev.RunEnd) and end.exit_code in (0, None)
    # No process of tfmemtop is taken for one of Jupyter's.
    assert not [row.command for row in rows.values() if row.command[:1] in (["pty-keeper"], ["tfmemtop"])]
