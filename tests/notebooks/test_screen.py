"""The screen of a kernel: choices apply from its next restart on, which is requested from Jupyter's own server."""

import asyncio
import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pexpect
import pytest

from tests import streams
from tests.notebook import Notebook
from tests.patience import PATIENCE_S, until
from tests.starting import PROGRAM
from tests.ui.test_app import app, drawn, press, text_of
from tfmemtop.cli.live import successor
from tfmemtop.engine.sources.processes import read_environment
from tfmemtop.engine.stream.client import connect
from tfmemtop.engine.stream.folders import SessionInfo, sessions
from tfmemtop.experiments.session.source import LiveSource
from tfmemtop.options import ScreenOutcome, UiOptions
from tfmemtop.ui import kernel_actions as kernels
from tfmemtop.ui.app import TfmemtopApp

NOTEBOOK = "train.ipynb"


class Jupyter:
    """A Jupyter server with one kernel."""

    def __init__(self, home: Path) -> None:
        place = ["--ServerApp.port=0", "--ServerApp.port_retries=50", f"--ServerApp.root_dir={home}"]
        command = [sys.executable, "-m", "jupyter_server", "--ServerApp.open_browser=False", *place]
        root = ["--ServerApp.allow_root=True"]
        self.process = subprocess.Popen([*command, *root], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            self._begin(home)
        except BaseException:
            self.end()
            raise

    def _begin(self, home: Path) -> None:
        found = home / "runtime" / f"jpserver-{self.process.pid}.json"
        until(lambda: found.exists() and found.stat().st_size)
        self._said = json.loads(found.read_bytes())
        wanted = {"path": NOTEBOOK, "name": NOTEBOOK, "type": "notebook", "kernel": {"name": "tfmemtop"}}
        self.kernel = until(lambda: self._ask("api/sessions", json.dumps(wanted).encode()))["kernel"]["id"]

    def kernels(self) -> Any:
        return self._ask("api/kernels")

    def _ask(self, path: str, data: bytes | None = None) -> Any:
        request = urllib.request.Request(self._said["url"] + path, data)
        request.add_header("Authorization", f"token {self._said['token']}")
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
                return json.loads(answer.read())
        except urllib.error.URLError as error:
            if isinstance(error.reason, ConnectionRefusedError):
                return None  # the server does not listen yet
            raise

    def session(self, but: str = "") -> SessionInfo:
        """Wait for a session of the server's kernel other than *but*, and return the newest."""

        def newest() -> SessionInfo | None:
            ours = [each for each in sessions() if self.kernel in (each.connection or "") and each.id != but]
            return ours[-1] if ours else None

        found: SessionInfo = until(newest)
        return found

    def end(self) -> None:
        self.process.terminate()
        self.process.wait(PATIENCE_S)


@pytest.fixture
def server(jupyter: Path) -> Iterator[Jupyter]:
    pytest.importorskip("jupyter_server")
    made = Jupyter(jupyter)
    yield made
    made.end()


async def _until(pilot: Any, look: Callable[[], Any]) -> Any:
    """Call *look* until its result is true. Return this result."""
    ends = time.monotonic() + PATIENCE_S
    while not (found := look()):
        assert time.monotonic() < ends, text_of(pilot.app)
        await pilot.pause(0.1)
    return found


async def _shown(pilot: Any, text: str) -> str:
    """Wait until *text* is on the screen. Return all of its text, with blanks in place of line breaks."""

    def look() -> str:
        told = " ".join(text_of(pilot.app).replace("│", " ").split())
        return told if text in told else ""

    told: str = await _until(pilot, look)
    return told


async def _screen(session: SessionInfo) -> TfmemtopApp:
    return TfmemtopApp(LiveSource(await connect(session.socket)), UiOptions(successor=successor))


async def test_what_is_chosen_holds_from_the_restart_that_the_server_is_asked_for(server: Jupyter) -> None:
    first = server.session()
    shown = await _screen(first)
    async with shown.run_test(size=(140, 40)) as pilot:
        await _shown(pilot, f"{NOTEBOOK} run 1")
        await press(pilot, "A")
        assert [note.message for note in shown._notifications] == [kernels.CHOSEN]
        await _until(pilot, lambda: shown.state.upcoming)
        await press(pilot, "R")
        asked = await _shown(pilot, "restart this kernel only")
        assert "Its next start: BFC" in asked or "bfc" in asked, asked
        await press(pilot, "r")
        second = await asyncio.to_thread(server.session, first.id)
        assert await _until(pilot, lambda: shown.return_value) == ScreenOutcome(0, follow=second.id)
    after = await _screen(second)
    async with after.run_test(size=(140, 40)) as pilot:
        run = await _until(pilot, lambda: after.state.run)
    assert run.settings.allocator == "bfc" and run.kernel == first.connection
    assert read_environment(run.pid)["TF_CPU_ALLOCATOR_USE_BFC"] == "true"
    # It is still the same server with the same kernel.
    assert server.process.poll() is None
    assert [kernel["id"] for kernel in await asyncio.to_thread(server.kernels)] == [server.kernel]


async def test_without_a_server_the_screen_says_what_to_do(jupyter: Path) -> None:
    notebook = await asyncio.to_thread(Notebook)
    try:
        async with (await _screen(notebook.session())).run_test(size=(140, 40)) as pilot:
            await _shown(pilot, "run 1")
            await press(pilot, "R")
            said = await _shown(pilot, "This run is a kernel of Jupyter")
            assert "No Jupyter server was found here" in said and "Kernel, Restart Kernel" in said
            assert "restart this kernel" not in said
            await press(pilot, "n", "E")
            assert [note.message for note in pilot.app._notifications] == [kernels.NO_COMMAND_LINE]
            await press(pilot, "Q")
        assert notebook.manager.provisioner.process.poll() is None
    finally:
        notebook.end(now=True)


def test_a_screen_in_a_terminal_goes_on_with_the_kernel_that_was_restarted(jupyter: Path) -> None:
    notebook = Notebook()
    try:
        first = notebook.session()
        environment = dict(os.environ) | {"TERM": "xterm-256color"}
        terminal = pexpect.spawn(PROGRAM, ["attach", first.id], env=environment, encoding="utf-8", timeout=PATIENCE_S)
        terminal.expect("ipykernel_launcher")
        notebook.restart()
        second = notebook.session()

        def gone() -> bool:
            with suppress(pexpect.TIMEOUT):  # read what is drawn: the screen would wait at a full terminal
                terminal.read_nonblocking(1 << 16, 0)
            return all(each.id != first.id for each in sessions())

        until(gone)  # the engine of the first session stays while a screen shows it
        terminal.send("q")
        terminal.expect(f"still running as {second.id}")
        terminal.expect(pexpect.EOF)
        assert notebook.run("print(6 * 7)") == "42\n"
    finally:
        notebook.end(now=True)


@pytest.mark.screens
async def test_under_a_server_kernels_are_rows_and_r_says_what_it_ends() -> None:
    kernel = "python -m ipykernel_launcher -f kernel-1.json"
    stream = [streams.session(["jupyter", "lab"]), streams.run(), streams.process(0.2, 100, command="jupyter lab")]
    rows = [streams.process(0.3, pid, ppid=100, command=kernel) for pid in (101, 102)]
    async with app([*stream, *rows]).run_test(size=(140, 40)) as pilot:
        await drawn(pilot)
        asked = " ".join((await press(pilot, "R")).split())
        assert "ipykernel_launcher" in asked
        assert "this ends the server with its 2 kernels" in asked
