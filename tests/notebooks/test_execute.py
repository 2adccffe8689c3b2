"""Notebooks that run without a user, by ``jupyter execute``. It uses nbclient, as papermill does."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.notebook import PROGRAM, until
from tests.patience import PATIENCE_S
from tfmemtop import events as ev
from tfmemtop.engine.stream.kept_sessions import is_written, kept_recordings, place_for
from tfmemtop.events.recording import read

EXECUTE = str(Path(sys.executable).with_name("jupyter-execute"))


_UNTIL_IT_IS_A_ROW = """
import os, time
while f'"pid":{{os.getpid()}},' not in open({!r}).read():
    time.sleep(0.05)
"""


def _notebook(path: Path, kernel: str, recording: Path | None = None) -> Path:
    """Write a notebook to *path*. With *recording*, its kernel runs until this file contains the kernel's process."""
    wait = "" if recording is None else _UNTIL_IT_IS_A_ROW.format(str(recording))
    cells: list[dict[str, Any]] = [
        {"cell_type": "code", "source": source, "metadata": {}, "outputs": [], "execution_count": None, "id": f"c{n}"}
        for n, source in enumerate(("x = 6", wait, "print(x * 7)"))
    ]
    spec = {"name": kernel, "display_name": kernel, "language": "python"}
    text = {"cells": cells, "metadata": {"kernelspec": spec}, "nbformat": 4, "nbformat_minor": 5}
    path.write_text(json.dumps(text))
    return path


def _printed(path: Path) -> list[str]:
    return [output["text"] for cell in json.loads(path.read_text())["cells"] for output in cell["outputs"]]


def test_jupyter_execute_runs_a_notebook_with_the_kernelspec(jupyter: Path) -> None:
    pytest.importorskip("nbclient")
    before = set(kept_recordings())
    path = _notebook(jupyter / "ours.ipynb", "tfmemtop")
    subprocess.run([EXECUTE, "--inplace", str(path)], check=True, timeout=PATIENCE_S)
    assert "".join(map("".join, _printed(path))) == "42\n"
    (session,) = set(kept_recordings()) - before
    until(lambda: not is_written(place_for(session)))
    runs = [event for event in read(place_for(session)).events() if isinstance(event, ev.Run | ev.RunEnd)]
    assert isinstance(runs[0], ev.Run) and runs[0].kernel
    assert isinstance(runs[1], ev.RunEnd) and runs[1].exit_code in (0, None)


def test_a_kernel_of_tfmemtop_is_a_session_of_its_own_under_a_watched_jupyter(jupyter: Path) -> None:
    pytest.importorskip("nbclient")
    before = set(kept_recordings())
    recording = jupyter / "outer.jsonl"
    path = _notebook(jupyter / "inner.ipynb", "tfmemtop", recording)
    command = [PROGRAM, "record", "-o", str(recording), "--", EXECUTE, "--inplace", str(path)]
    subprocess.run(command, check=True, timeout=PATIENCE_S)
    rows = {each.pid: each for each in read(recording).events() if isinstance(each, ev.Process) and each.run == 1}
    (session,) = (each for each in set(kept_recordings()) - before if place_for(each).resolve() != recording.resolve())
    until(lambda: not is_written(place_for(session)))
    run, end = (event for event in read(place_for(session)).events() if isinstance(event, ev.Run | ev.RunEnd))
    assert isinstance(run, ev.Run) and run.notebook == path.name and run.pid in rows
    assert isinstance(end, ev.RunEnd)
    # No process of tfmemtop is taken for one of Jupyter's.
    assert not [row.command for row in rows.values() if row.command[:1] in (["pty-keeper"], ["tfmemtop"])]


def test_of_a_watched_jupyter_the_kernels_are_rows(jupyter: Path) -> None:
    pytest.importorskip("nbclient")
    recording = jupyter / "run.jsonl"
    path = _notebook(jupyter / "plain.ipynb", "python3", recording)
    command = [PROGRAM, "record", "-o", str(recording), "--", EXECUTE, "--inplace", str(path)]
    subprocess.run(command, check=True, timeout=PATIENCE_S)
    assert "".join(map("".join, _printed(path))) == "42\n"
    rows = [event for event in read(recording).events() if isinstance(event, ev.Process) and event.run == 1]
    assert any("ipykernel_launcher" in row.command for row in rows)
