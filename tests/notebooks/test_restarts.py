"""Restarts of a kernel: choices on the screen apply to them, and from each run the kernel's other runs are found."""

import asyncio
import json
import secrets
from pathlib import Path

import pytest

from tests.notebook import Notebook
from tests.notebooks.test_screen import _screen, _shown, _until
from tests.patience import until
from tests.starting import tfmemtop
from tests.ui.shown import press
from tfmemtop import events as ev
from tfmemtop.cli.live import successor
from tfmemtop.engine.sources.processes import read_environment
from tfmemtop.engine.stream.folders import SessionInfo
from tfmemtop.engine.stream.kept_sessions import kept_recordings, place_for
from tfmemtop.events.recording import RecordingError, read
from tfmemtop.experiments.session import LiveSource
from tfmemtop.notebooks import notebook
from tfmemtop.reports.settings import SCRIPTS_OWN
from tfmemtop.settings import Settings
from tfmemtop.ui import UiOptions
from tfmemtop.ui.app import TfmemtopApp
from tfmemtop.ui.next_run_actions import NO_COMMAND_LINE, NOT_RECOGNISED, restart_yourself

MIB = 1 << 20


def _run(session: SessionInfo) -> ev.Run:
    """Wait for a run in the session's own recording, and return it. There must be only one."""

    def recorded() -> list[ev.Run]:
        try:
            return [event for event in read(place_for(session.id)).events() if isinstance(event, ev.Run)]
        except RecordingError:
            return []  # the recording has just begun

    (run,) = until(recorded)
    assert isinstance(run, ev.Run)
    return run


def _told(*command: str) -> str:
    return " ".join(tfmemtop(*command).stdout.split())


async def test_growth_limit_and_allocator_hold_from_the_next_restart_and_each_is_found(jupyter: Path) -> None:
    notebook = await asyncio.to_thread(Notebook)
    try:
        first = notebook.session()
        async with (await _screen(first)).run_test(size=(140, 40)) as pilot:
            await _shown(pilot, "run 1")
            shown = pilot.app
            assert isinstance(shown, TfmemtopApp)
            await press(pilot, "R", "E")
            assert [note.message for note in shown._notifications] == [restart_yourself([SCRIPTS_OWN]), NO_COMMAND_LINE]
            await press(pilot, "L", *"200M", "enter", "A")
            upcoming = shown.session.next
            assert upcoming is not None
            # The key G works only with a GPU. This is what it does then.
            shown.session.choose(upcoming.with_growth_cycled())
            await _until(pilot, lambda: shown.state.upcoming and shown.state.upcoming.growth)
            await press(pilot, "Q")
        wanted = Settings(growth="on", memory_limit=200 * MIB, allocator="bfc")
        held = []
        for _ in range(2):
            await asyncio.to_thread(notebook.restart)
            held.append(notebook.session())
            environment = read_environment(notebook.pid)
            assert environment["TF_FORCE_GPU_ALLOW_GROWTH"] == "true"
            assert environment["TF_CPU_ALLOCATOR_USE_BFC"] == "true"
            assert environment["TF_CPU_BFC_MEM_LIMIT_IN_MB"] == "200"
        runs = [_run(session) for session in (first, *held)]
        assert [run.settings for run in runs] == [Settings(), wanted, wanted]
        assert [run.run for run in runs] == [1, 2, 3]
        assert runs[2].earlier == (first.id, held[0].id)
        options = UiOptions(recording=kept_recordings().get)
        source = (await _screen(held[1])).session.source
        assert isinstance(source, LiveSource)
        async with TfmemtopApp(source, options).run_test(size=(140, 40)) as pilot:
            await _shown(pilot, "run 3")
            await press(pilot, "H")
            listed = await _shown(pilot, "3 runs")
            assert "Runs of this kernel" in listed and listed.count("limit 200.0 MiB") >= 2
            await press(pilot, "escape", "Q")
    finally:
        notebook.end(now=True)
    assert f"{held[0].id}.jsonl.gz" in _told("compare", held[1].id)
    assert f"Run 2 of this kernel is session {held[0].id}" in _told("why", held[1].id)


async def test_each_start_by_a_window_of_vs_code_is_a_kernel_of_its_own(jupyter: Path) -> None:
    """VS Code makes a new connection file for each start (vscode-jupyter, ``kernelProcess.node.ts``).

    It starts the kernelspec's command as it is, unless its first word is a Python that runs ipykernel.
    """
    spec = json.loads((jupyter / "data" / "kernels" / "tfmemtop" / "kernel.json").read_text())
    assert spec["metadata"]["interpreter"]["path"] == spec["metadata"]["tfmemtop"]["python"]
    assert not Path(spec["argv"][0]).name.startswith("python")
    (jupyter / "runtime").mkdir(exist_ok=True)
    files = [str(jupyter / "runtime" / f"kernel-v3{secrets.token_hex(20)}.json") for _ in range(2)]
    window = await asyncio.to_thread(Notebook, connection=files[0])
    try:
        first = window.session()
        async with (await _screen(first)).run_test(size=(140, 40)) as pilot:
            await _shown(pilot, "run 1")
            await press(pilot, "L")
            shown = pilot.app
            assert isinstance(shown, TfmemtopApp)
            assert [note.message for note in shown._notifications] == [NOT_RECOGNISED]
            assert "next start" not in await press(pilot, "R")
        window.end(now=True)
        window = await asyncio.to_thread(Notebook, connection=files[1])
        second = _run(window.session())
        assert (second.run, second.earlier, successor(first.id)) == (1, (), None)
        window.manager.interrupt_kernel()
        assert await asyncio.to_thread(window.run, "print(6 * 7)") == "42\n"
    finally:
        window.end(now=True)


@pytest.mark.parametrize(
    ("parent", "said"),
    [
        (["python", "/bin/jupyter-execute", "--inplace", "/home/ada/train.ipynb"], "train.ipynb"),
        (["python", "/bin/jupyter-execute", "one.ipynb", "two.ipynb"], None),
        (["python", "/bin/jupyter-execute", "one.ipynb", "--output", "done.ipynb"], "one.ipynb"),
        (["python", "/bin/jupyter-execute", "--output=done.ipynb", "one.ipynb"], "one.ipynb"),
        (["python3", "/bin/papermill", "train.ipynb", "out/train.ipynb", "-p", "batch", "8"], "train.ipynb"),
        (["node", "extensionHost"], None),
    ],
)
def test_the_notebook_is_told_by_what_runs_it(parent: list[str], said: str | None) -> None:
    assert notebook({}, parent) == said
    assert notebook({"JPY_SESSION_NAME": "/home/ada/lab.ipynb"}, parent) == "lab.ipynb"
