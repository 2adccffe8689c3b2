"""The exporter of a live session: it outlives the screen and ends with the session. If it is killed, a notice comes."""

import asyncio
import os
import signal
import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from tests.engines import READS, Engines, ended
from tests.metrics.scraping import address_in, eventually, get, scrape, value
from tests.patience import PATIENCE_S
from tfmemtop.engine.process import exporter as exporting
from tfmemtop.engine.process.exporter import open_exporter
from tfmemtop.engine.process.launch import Export
from tfmemtop.engine.stream.folders import sessions
from tfmemtop.engine.stream.stream import Stream
from tfmemtop.events import FORMAT, Input, Notice, NoticeKind, Process, ProcessReadings, RunEnd, Session, Stop
from tfmemtop.events.unstarted import Why

pytestmark = pytest.mark.programs


def export(folder: Path) -> Export:
    return Export(port=0, discovery=str(folder / "sd.json"))


def exporter_pid() -> int:
    """Return the process number of the exporter of the only session in this test's folder."""
    (engine,) = [one.pid for one in sessions() if one.socket.startswith(os.environ["XDG_RUNTIME_DIR"])]
    (found,) = [one.pid for one in psutil.Process(engine).children() if one.name() == exporting.NAME]
    return found


async def test_it_outlives_the_screen_and_ends_with_the_session(engines: Engines, tmp_path: Path) -> None:
    screen = await engines.python(READS, export=export(tmp_path))
    await screen.until_shown("up")
    url, pid = address_in(tmp_path / "sd.json"), exporter_pid()
    await screen.client.close()
    eventually(lambda: True if value(scrape(url), "running") == 1 else None)
    (session,) = [one for one in sessions() if one.socket.startswith(os.environ["XDG_RUNTIME_DIR"])]
    again = await engines.look(session.socket)
    await again.until_shown("up")
    await again.client.send(Stop(quit=True))
    await ended(pid)
    assert not (tmp_path / "sd.json").exists()


async def test_it_is_no_process_of_the_run_and_no_reader_that_keeps_the_engine(
    engines: Engines, tmp_path: Path
) -> None:
    screen = await engines.python("print('up')", export=export(tmp_path))
    await screen.until(RunEnd)
    pid = exporter_pid()
    eventually(lambda: True if value(scrape(address_in(tmp_path / "sd.json")), "running") == 0 else None)
    await screen.until(ProcessReadings)
    assert pid not in {process.pid for process in screen.all(Process)}
    await screen.client.close()
    await ended(pid)  # two seconds after the last screen has left


async def test_its_death_is_a_notice_and_the_script_goes_on(engines: Engines, tmp_path: Path) -> None:
    screen = await engines.python(READS, export=export(tmp_path))
    await screen.until_shown("up")
    url = address_in(tmp_path / "sd.json")
    os.kill(exporter_pid(), signal.SIGKILL)
    notice = await screen.until(Notice, lambda notice: notice.key == "exporter" and notice.kind is not None)
    assert (notice.kind, notice.detail) == (NoticeKind.EXPORTER_ENDED, "SIGKILL")
    with pytest.raises(OSError):
        get(url)
    await screen.client.send(Input(text="still here\n"))
    await screen.until_shown("got still here")


async def test_a_taken_port_is_told_before_the_script_starts(engines: Engines, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        launched = engines.launch("touch", str(tmp_path / "started"), export=Export(port=port))
    assert launched.error is not None
    assert (launched.error.why, launched.error.name) == (Why.METRICS_ADDRESS, f"127.0.0.1:{port}")
    assert not (tmp_path / "started").exists()


async def test_one_that_hangs_is_told_of_and_taken_back_when_it_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exporting, "SILENT_S", 0.5)
    monkeypatch.setattr(exporting, "_LOOK_S", 0.1)
    monkeypatch.setattr("tfmemtop.metrics.exporter.BEAT_S", 0.1)
    stream, told = Stream(), asyncio.Queue[Notice]()
    exporter = begun(stream, tmp_path, told)
    for number, kind in ((signal.SIGSTOP, NoticeKind.EXPORTER_SILENT), (signal.SIGCONT, None)):
        os.kill(exporter.pid, number)
        assert (await asyncio.wait_for(told.get(), PATIENCE_S)).kind is kind
    await exporter.close()
    assert not psutil.pid_exists(exporter.pid)


async def test_one_that_cannot_begin_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tfmemtop.metrics.exporter", None)  # as if prometheus_client were missing
    stream, told = Stream(), asyncio.Queue[Notice]()
    exporter = begun(stream, tmp_path, told)
    notice = await asyncio.wait_for(told.get(), PATIENCE_S)
    assert notice.kind is NoticeKind.EXPORTER_ENDED
    assert "tfmemtop.metrics.exporter" in notice.detail
    await exporter.close()
    assert not (tmp_path / "sd.json").exists()


def names_in(folder: Path) -> set[str]:
    return {one.name for one in folder.iterdir()}


async def test_what_it_had_begun_to_write_when_it_was_killed_is_removed(tmp_path: Path) -> None:
    stream, told = Stream(), asyncio.Queue[Notice]()
    asked = Export(port=0, discovery=str(tmp_path / "sd.json"), textfile=str(tmp_path / "m.prom"))
    exporter = begun(stream, tmp_path, told, asked)
    os.kill(exporter.pid, signal.SIGKILL)
    assert (await asyncio.wait_for(told.get(), PATIENCE_S)).kind is NoticeKind.EXPORTER_ENDED
    assert exporter._draft is not None
    write = Path(exporter._draft).write_text
    write("half of it")
    await exporter.close()
    assert names_in(tmp_path) <= {"m.prom"}


def begun(
    stream: Stream, folder: Path, told: "asyncio.Queue[Notice]", asked: Export | None = None
) -> exporting.Exporter:
    """Start an exporter for a session without an engine. *told* receives the notices."""
    session = Session(
        t=0.0, format=FORMAT, version="1", id="x", started=1.7e9, host="here", user="ada", host_memory=1, cores=1,
        interval_s=0.1, command=[],
    )  # fmt: skip
    exporter = open_exporter(stream, asked or export(folder), session)
    assert exporter is not None

    class Runs:
        """Reaps processes as the engine's class does, but with a pidfd in place of a signal."""

        def adopt(self, pid: int, ended: Callable[[int], None]) -> None:
            loop = asyncio.get_running_loop()
            descriptor = os.pidfd_open(pid)

            def reap() -> None:
                loop.remove_reader(descriptor)
                os.close(descriptor)
                with suppress(ChildProcessError):
                    ended(os.waitpid(pid, 0)[1])

            loop.add_reader(descriptor, reap)

    stream.listen(lambda event: told.put_nowait(event) if isinstance(event, Notice) else None)
    stream.publish(session)
    exporter.begin(Runs())  # type: ignore[arg-type]
    return exporter
