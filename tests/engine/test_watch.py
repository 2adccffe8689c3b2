"""One watch over several runs, on a machine whose driver can hang."""

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.engine.test_nvml import library
from tests.patience import PATIENCE_S
from tfmemtop.engine.process.launch import Launch
from tfmemtop.engine.sources.nvml import Nvml
from tfmemtop.engine.stream.folders import open_session
from tfmemtop.engine.watch import Watch
from tfmemtop.events import Event, Initialised, RunEnd
from tfmemtop.frameworks import FrameworkName, UsedFramework
from tfmemtop.settings import Settings

GIB = 1 << 30


class Driver:
    """A driver with one card, which answers until its event ``hang`` is set."""

    def __init__(self) -> None:
        self.hang = threading.Event()
        self.hangs = threading.Event()
        self.go_on = threading.Event()
        self.nvml = Nvml(library(nvmlDeviceGetComputeRunningProcesses_v3=self._processes))

    def _processes(self, _: object) -> list[object]:
        if self.hang.is_set():
            self.hangs.set()
            self.go_on.wait(PATIENCE_S)
        return []

    async def until_it_hangs(self) -> None:
        await asyncio.get_running_loop().run_in_executor(None, self.hangs.wait, PATIENCE_S)


@pytest.fixture
def driver() -> Iterator[Driver]:
    driver = Driver()
    yield driver
    driver.go_on.set()


class Watched:
    """A watch, and the events that it has published."""

    def __init__(self, folder: Path, driver: Driver) -> None:
        self.session = open_session()
        environment = dict(os.environ) | {"WHO": "the user"}
        launch = Launch(argv=["sh"], cwd=str(folder), environment=environment)
        self.watch: Watch = Watch(launch, self.session, nvml=driver.nvml)
        self.events: list[Event] = []
        self.watch.stream.listen(self.events.append)


@pytest_asyncio.fixture
async def watched(tmp_path: Path, driver: Driver, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Watched]:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    yield Watched(tmp_path, driver)


@pytest.mark.programs
async def test_a_driver_that_hangs_from_the_start_holds_up_only_what_needs_it(watched: Watched, driver: Driver) -> None:
    driver.hang.set()
    async with watched.watch as watch:
        await driver.until_it_hangs()
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(watch.prepare(["true"], Settings(gpus=(0,))), 0.1)
        growing = Settings(growth="on", frameworks=(UsedFramework(FrameworkName.JAX),))
        run = await asyncio.wait_for(watch.prepare(["true"], growing), PATIENCE_S)
        assert run.environment["XLA_PYTHON_CLIENT_PREALLOCATE"] == "false"
        watch.start(run)
        await asyncio.wait_for(watch.ended(), PATIENCE_S)
    assert [event.exit_code for event in watched.events if isinstance(event, RunEnd)] == [0]


async def test_settings_are_checked_though_the_driver_hangs_by_now(watched: Watched, driver: Driver) -> None:
    async with watched.watch as watch:
        await watch.readings.gpus()
        driver.hang.set()
        watch.stream.publish(Initialised(t=0.0, pid=7, file="train.py", line=3))  # which reads the driver at once
        await driver.until_it_hangs()
        run = await asyncio.wait_for(watch.prepare(["true"], Settings(gpus=(0,), memory_limit=79 * GIB)), PATIENCE_S)
        assert run.environment["CUDA_VISIBLE_DEVICES"] == "GPU-1"
        for_jax = Settings(memory_limit=20 * GIB, frameworks=(UsedFramework(FrameworkName.JAX),))
        run = await asyncio.wait_for(watch.prepare(["true"], for_jax), PATIENCE_S)
        assert run.environment["XLA_PYTHON_CLIENT_MEM_FRACTION"] == "0.250000"
        with pytest.raises(ValueError, match=r"81\.0 GiB is more than GPU 0 has, 80\.0 GiB"):
            await watch.prepare(["true"], Settings(memory_limit=81 * GIB))
        with pytest.raises(ValueError, match="there is no GPU 1"):
            await watch.prepare(["true"], Settings(gpus=(1,)))
