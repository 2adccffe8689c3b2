"""The script waits for nobody: neither for an engine that is stopped, nor for a file system that does not answer."""

import asyncio
import errno
import fcntl
import os
import re
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests import streams
from tests.disks import CAN_FREEZE, frozen, mounted
from tests.engines import Engines, ended
from tests.own_sessions import own_sessions
from tfmemtop.engine.process.keeper import BUFFER
from tfmemtop.engine.stream import Stream, recorder
from tfmemtop.engine.stream.recorder import Recorder
from tfmemtop.events import Notice, NoticeKind, Output, ProcessReadings, Run, RunEnd, Stop
from tfmemtop.events.recording import Writer, read

pytestmark = pytest.mark.programs

_PRINTS = """
import os, sys
open("go").read()
for number in range(int(sys.argv[1])):
    os.write(1, b"%09d\\n" % number * 100)
print("the end")
"""
_PIECE = 1100  # bytes of what the terminal makes of one write
_END = "the end\r\n"
_LEFT_OUT = re.compile(rb"\n\[tfmemtop: (\d+) bytes left out here\]\n")


class _Printing:
    """A script that prints a number of pieces once it is let go, with a screen."""

    def __init__(self, engines: Engines, pieces: int, **options: Any) -> None:
        self._engines = engines
        self.size = pieces * _PIECE + len(_END)
        self._go = engines.folder / "go"
        os.mkfifo(self._go)
        launched = engines.launch(sys.executable, "-c", _PRINTS, str(pieces), **options)
        self._socket = launched.socket
        self.output = Path(launched.output_path or "")

    async def __aenter__(self) -> "_Printing":
        self.screen = await self._engines.look(self._socket)
        self.run = await self.screen.until(Run)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.screen.client.send(Stop(quit=True))
        await self.screen.until_closed()

    async def let_go(self) -> None:
        await asyncio.to_thread(self._go.write_text, "")

    async def ends(self) -> None:
        """Wait for the end of the run; check that the screen was told of every byte."""
        assert (await self.screen.until(RunEnd)).exit_code == 0
        assert self.screen.shown.endswith(_END)
        told = self.screen.all(Output)
        assert sum(len(event.text) + event.skipped for event in told) == self.size


async def test_a_stopped_engine_does_not_hold_up_the_script(engines: Engines) -> None:
    async with _Printing(engines, 4000) as script:
        engine = psutil.Process(own_sessions()[0].pid)
        engine.suspend()
        try:
            await script.let_go()
            await ended(script.run.pid)
            assert engine.status() == psutil.STATUS_STOPPED
        finally:
            engine.resume()
        await script.ends()
        assert any(event.skipped for event in script.screen.all(Output))
        assert script.output.stat().st_size == script.size, "the file needs no engine"


@contextmanager
def _unanswered(path: Path) -> Iterator[None]:
    """During the ``with`` block, nobody who opens the file *path* gets an answer: this process has a lease on it."""
    before = signal.signal(signal.SIGIO, signal.SIG_IGN)  # the Linux kernel tells so that somebody waits
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        yield
    finally:
        os.close(descriptor)
        signal.signal(signal.SIGIO, before)


async def test_a_file_that_does_not_answer_holds_up_neither_script_nor_engine(engines: Engines) -> None:
    async with _Printing(engines, BUFFER // _PIECE + 4000) as script:
        with _unanswered(script.output):
            await script.let_go()
            await script.ends()
            count = len(script.screen.all(ProcessReadings))
            await script.screen.until(ProcessReadings, lambda _: len(script.screen.all(ProcessReadings)) > count)
            notice = await script.screen.until(Notice, lambda notice: notice.key == "output_file")
            assert (notice.kind, notice.detail) == (NoticeKind.OUTPUT_FILE_FAILED, os.strerror(errno.ETIMEDOUT))
            assert script.output.stat().st_size == 0
    content = script.output.read_bytes()
    (left_out,) = _LEFT_OUT.findall(content)
    assert len(_LEFT_OUT.sub(b"", content)) + int(left_out) == script.size
    assert content.endswith(_END.encode())


@CAN_FREEZE
async def test_a_frozen_file_system_costs_neither_the_script_nor_the_recording_anything(engines: Engines) -> None:
    home = Path(os.environ["XDG_STATE_HOME"])
    with mounted(home):
        async with _Printing(engines, 4000, record=str(home / "run.jsonl.gz")) as script:
            with frozen(home):
                await script.let_go()
                await script.ends()
        assert script.output.stat().st_size == script.size
        recorded = list(read(home / "run.jsonl.gz").events())
    assert any(isinstance(event, RunEnd) for event in recorded)
    assert [event for event in recorded if isinstance(event, Output)] == script.screen.all(Output)


class _Unopened:
    """A recording whose file system does not answer until :meth:`answer`."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "run.jsonl.gz"
        self._fifo = folder / "fifo"
        os.mkfifo(self._fifo)
        self.stream = Stream()
        self.recorder = Recorder(self.stream, self._open)
        self.stream.publish(streams.session())
        self.recorder.begin()

    def _open(self) -> Writer:
        self._fifo.read_bytes()
        return Writer(self.path)

    def print(self, count: int) -> None:
        for number in range(count):
            self.stream.publish(Output(t=0.0, run=1, text=f"{number:16000}"))

    async def answer(self) -> None:
        await asyncio.to_thread(self._fifo.write_bytes, b"")


@pytest.mark.parametrize("count", [10, 1200])
async def test_what_comes_while_a_recording_does_not_answer_is_recorded_later(tmp_path: Path, count: int) -> None:
    recording = _Unopened(tmp_path)
    recording.print(count)
    await recording.answer()
    await recording.recorder.close()
    told = [event for event in read(recording.path).events() if isinstance(event, Output)]
    assert int(told[-1].text) == count - 1
    assert sum(len(event.text) + event.skipped for event in told) == count * 16_000
    assert any(event.skipped for event in told) == (count > 1000), "memory is bounded, and what it costs is told"


async def test_a_recording_that_never_answers_does_not_hold_up_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorder, "WAIT_S", 0.1)
    recording = _Unopened(tmp_path)
    await recording.recorder.close()
    assert recording.recorder.trouble is not None
    assert os.strerror(errno.ETIMEDOUT) in str(recording.recorder.trouble)
    await recording.answer()  # so that its thread ends
