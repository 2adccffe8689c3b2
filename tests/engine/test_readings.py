"""When the cards are read. The library is the double of the NVML tests."""

import asyncio
import os
import socket
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
import pytest_asyncio

from tests.engine.test_nvml import library
from tests.nvml_tables import GIB, TABLES, play, row
from tests.patience import PATIENCE_S
from tfmemtop.engine.process.launch import INJECT
from tfmemtop.engine.sources import readings as sources
from tfmemtop.engine.sources.foreign import Foreign
from tfmemtop.engine.sources.hooks import Hooks
from tfmemtop.engine.sources.host import Host
from tfmemtop.engine.sources.nvml import Nvml
from tfmemtop.engine.sources.readings import Readings
from tfmemtop.engine.stream import Stream
from tfmemtop.events import DeviceReading, Event, Initialised, Notice, SharesMissing
from tfmemtop.findings.rules.notices import say

Watch = Callable[..., tuple[Stream, "asyncio.Queue[DeviceReading]"]]


@pytest_asyncio.fixture
async def watch(tmp_path: Path) -> AsyncIterator[Watch]:
    """Provide a function that starts reading and returns the stream and a queue of the card readings in it."""
    started: list[Readings] = []
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)

    def begin(nvml: Nvml, foreign: Foreign | None = None) -> "tuple[Stream, asyncio.Queue[DeviceReading]]":
        stream, told = Stream(), asyncio.Queue[DeviceReading]()

        def take(event: Event) -> None:
            if isinstance(event, DeviceReading):
                told.put_nowait(event)

        stream.listen(take)
        readings = Readings(stream, Hooks(stream, listener), Host(os.getpid(), INJECT), frozenset(), nvml, foreign)
        readings.begin()
        started.append(readings)
        return stream, told

    yield begin
    for readings in started:
        readings.close()
    listener.close()


def made() -> Initialised:
    return Initialised(t=0.0, pid=7, file="train.py", line=3)


async def test_the_cards_are_read_at_once_when_devices_have_been_made(
    watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "PACE_S", 10 * PATIENCE_S)
    stream, told = watch(Nvml(library()))
    await asyncio.wait_for(told.get(), PATIENCE_S)
    at = stream.now()
    stream.publish(made())
    assert (await asyncio.wait_for(told.get(), PATIENCE_S)).t > at


async def test_processes_numbered_otherwise_are_told_with_what_helps(watch: Watch) -> None:
    stream, told = watch(Nvml(play(TABLES["the host's numbers"])), Foreign(lambda: (9,), "other", lambda pid: pid == 9))
    notices: list[Notice] = []
    stream.listen(lambda event: notices.append(event) if isinstance(event, Notice) else None)
    reading = await asyncio.wait_for(told.get(), PATIENCE_S)
    assert reading.processes == [] and reading.processes_missing is SharesMissing.NUMBERED_OTHERWISE
    (notice,) = [notice for notice in notices if notice.key == "namespace"]
    assert say(notice).remedy == "start the container with --pid=host"


async def test_a_reading_from_before_they_were_made_is_not_told_after(watch: Watch) -> None:
    """That reading would be too small: it would lack the context that the process has by then."""
    begun, go_on = threading.Event(), threading.Event()
    sizes = iter([GIB, 2 * GIB, 2 * GIB])

    def processes(_: object) -> list[SimpleNamespace]:
        held = row(7, next(sizes))
        begun.set()
        assert go_on.wait(PATIENCE_S)
        return [held]

    stream, told = watch(Nvml(library(nvmlDeviceGetComputeRunningProcesses_v3=processes)))
    await asyncio.get_running_loop().run_in_executor(None, begun.wait, PATIENCE_S)
    stream.publish(made())
    go_on.set()
    reading = await asyncio.wait_for(told.get(), PATIENCE_S)
    assert [process.used for process in reading.processes if process.pid == 7] == [2 * GIB]
