"""Real engines, each in a folder of its own, that do not outlive their test."""

import asyncio
import os
import signal
import sys
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import pytest
import pytest_asyncio

from tests import sparing
from tests.patience import PATIENCE_S
from tfmemtop.engine.process.launch import Launch, Launched, start
from tfmemtop.engine.sources.processes import all_pids, carries
from tfmemtop.engine.stream.server import Client, connect
from tfmemtop.events import Event, Output

E = TypeVar("E", bound=Any)

READS = "print('up')\nwhile True: print('got', input())"
"""A script that prints when it is ready, and then repeats each line that it reads."""


class Screen:
    """A client that stores every event that it receives."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.events: list[Event] = []
        self._batches = client.events()

    async def until(self, kind: type[E], fits: Callable[[E], bool] = lambda _: True) -> E:
        """Return the first event of *kind* that fits, among those received already and those yet to come."""

        async def search() -> E:
            position = 0
            while True:
                for event in self.events[position:]:
                    if isinstance(event, kind) and fits(event):
                        return event
                position = len(self.events)
                self.events += await anext(self._batches)

        return await asyncio.wait_for(search(), PATIENCE_S)

    async def until_shown(self, text: str, run: int | None = None) -> None:
        """Wait until the script's output contains *text*; with *run*, only that run's output counts.

        The text may arrive in any number of parts.
        """
        await self.until(Output, lambda _: text in self.shown_by(run))

    async def until_closed(self) -> None:
        """Wait until the engine has closed the connection."""

        async def rest() -> None:
            async for batch in self._batches:
                self.events += batch

        await asyncio.wait_for(rest(), PATIENCE_S)

    def all(self, kind: type[E]) -> list[E]:
        """Return all events of *kind* received so far."""
        return [event for event in self.events if isinstance(event, kind)]

    @property
    def shown(self) -> str:
        """Return the script's output so far."""
        return self.shown_by(None)

    def shown_by(self, run: int | None) -> str:
        """Return the output so far of one *run*, or of all."""
        return "".join(event.text for event in self.all(Output) if run in (None, event.run))


class Engines:
    """Starts engines and connects to them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.screens: list[Screen] = []

    def launch(self, *argv: str, **options: Any) -> Launched:
        """Start an engine that runs a command."""
        cwd = options.pop("cwd", str(self.folder))
        environment = {**options.pop("environment", os.environ), **sparing.for_command(argv, Path(cwd))}
        return start(Launch(argv=list(argv), cwd=cwd, environment=environment, **options))

    async def run(self, *argv: str, **options: Any) -> Screen:
        """Start an engine and connect a screen to it."""
        launched = self.launch(*argv, **options)
        assert launched.error is None, launched.error
        return await self.look(launched.socket)

    async def python(self, program: str, **options: Any) -> Screen:
        """Run a Python program."""
        return await self.run(sys.executable, "-u", "-c", program, **options)

    async def look(self, socket: str) -> Screen:
        """Connect one more screen."""
        screen = Screen(await connect(socket))
        self.screens.append(screen)
        return screen


async def ended(pid: int) -> None:
    """Wait until the process has ended; return at once if it has ended already."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    loop = asyncio.get_running_loop()
    gone = asyncio.Event()
    loop.add_reader(descriptor, gone.set)
    try:
        await asyncio.wait_for(gone.wait(), PATIENCE_S)
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)


async def eventually(look: Callable[[], bool]) -> None:
    """Wait until *look* returns true."""

    async def search() -> None:
        while not look():  # noqa: ASYNC110 (what it looks at is in other processes)
            await asyncio.sleep(0.01)

    await asyncio.wait_for(search(), PATIENCE_S)


@pytest_asyncio.fixture
async def engines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Engines]:
    """Provide engines whose sessions are in a folder of this test."""
    # Not tmp_path: a socket's path has to be short. If it is too long, the session is put into a folder that all tests
    # share.
    with tempfile.TemporaryDirectory(prefix="tfm", dir="/tmp") as runtime:
        monkeypatch.setenv("XDG_RUNTIME_DIR", runtime)
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
        started = Engines(tmp_path)
        yield started
        for screen in started.screens:
            await screen.client.close()
        for pid in _processes_of(runtime):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def _processes_of(runtime: str) -> list[int]:
    """Return the engines, keepers and scripts whose sessions are in *runtime*, even if their engine has ended."""
    return [pid for pid in all_pids() if pid != os.getpid() and carries(pid, f"XDG_RUNTIME_DIR={runtime}".encode())]
