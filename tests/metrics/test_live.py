"""The exporter of a live session: it outlives the screen and ends with the session. If it fails, a notice says so."""

import asyncio
import os
import signal
import socket
from contextlib import suppress
from pathlib import Path

import pytest

from tests.engines import READS, Engines, ended
from tests.metrics.scraping import address_in, get, scrape, value
from tests.metrics.silent import CAN_MOUNT, silent
from tests.own_sessions import own_sessions
from tests.patience import PATIENCE_S, until
from tests.streams import run
from tfmemtop.engine.exporter import Exporter, open_exporter
from tfmemtop.engine.process.launch import Export
from tfmemtop.engine.stream.stream import Stream
from tfmemtop.events import FORMAT, Input, Notice, NoticeKind, RunEnd, Session, Stop

pytestmark = pytest.mark.programs


def export(folder: Path) -> Export:
    return Export(port=0, discovery=str(folder / "sd.json"))


def engine_pid() -> int:
    """Return the process number of the engine of the only session in this test's folder."""
    (session,) = own_sessions()
    return session.pid


async def test_it_outlives_the_screen_and_ends_with_the_session(engines: Engines, tmp_path: Path) -> None:
    screen = await engines.python(READS, export=export(tmp_path))
    await screen.until_shown("up")
    url, engine = address_in(tmp_path / "sd.json"), engine_pid()
    await screen.client.close()
    until(lambda: True if value(scrape(url), "running") == 1 else None)
    (session,) = own_sessions()
    again = await engines.look(session.socket)
    await again.until_shown("up")
    await again.client.send(Stop(quit=True))
    await ended(engine)
    assert not (tmp_path / "sd.json").exists()
    with pytest.raises(OSError):
        get(url)


async def test_who_asks_it_is_no_reader_that_keeps_the_engine(engines: Engines, tmp_path: Path) -> None:
    screen = await engines.python("print('up')", export=export(tmp_path))
    await screen.until(RunEnd)
    url, engine = address_in(tmp_path / "sd.json"), engine_pid()
    until(lambda: True if value(scrape(url), "running") == 0 else None)
    with socket.create_connection(("127.0.0.1", int(url.split(":")[2].partition("/")[0]))):
        await screen.client.close()
        await ended(engine)  # two seconds after the last screen has left


async def test_signals_that_are_not_for_the_engine_do_not_disturb_it(engines: Engines, tmp_path: Path) -> None:
    screen = await engines.python(READS, export=export(tmp_path))
    await screen.until_shown("up")
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2):
        os.kill(engine_pid(), number)  # as Slurm does with all processes of a step
    assert value(scrape(address_in(tmp_path / "sd.json")), "running") == 1
    await screen.client.send(Input(text="still here\n"))
    await screen.until_shown("got still here")


class Exporting:
    """An exporter of a session without an engine, with the notices about it."""

    def __init__(self, exporter: Exporter, stream: Stream, notices: "asyncio.Queue[Notice]") -> None:
        self.exporter = exporter
        self.stream = stream
        self._notices = notices

    async def notice(self) -> Notice:
        return await asyncio.wait_for(self._notices.get(), PATIENCE_S)


def begun(folder: Path, asked: Export | None = None) -> Exporting:
    session = Session(
        t=0.0, format=FORMAT, version="1", id="x", started=1.7e9, host="here", user="ada", host_memory=1, cores=1,
        interval_s=0.1, command=[],
    )  # fmt: skip
    stream, notices = Stream(), asyncio.Queue[Notice]()
    exporter = open_exporter(stream, asked or export(folder), session)
    stream.listen(lambda event: notices.put_nowait(event) if isinstance(event, Notice) else None)
    stream.publish(session)
    exporter.begin()
    return Exporting(exporter, stream, notices)


def fails(*_: object) -> None:
    raise ValueError("on purpose")


async def test_events_that_cannot_be_folded_end_it_with_a_notice_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tfmemtop.engine.metrics.page.apply", fails)
    exporting = begun(tmp_path)
    notice = await exporting.notice()
    assert notice.kind is NoticeKind.EXPORTER_ENDED
    assert notice.detail.startswith("ValueError: on purpose (engine/metrics/page.py:")
    with pytest.raises(OSError):
        await asyncio.to_thread(get, address_in(tmp_path / "sd.json"))  # the file stays, so that the target is down
    exporting.stream.notice("other", NoticeKind.INPUT_LOST)
    assert (await exporting.notice()).key == "other"
    await exporting.exporter.close()
    assert not (tmp_path / "sd.json").exists()
    assert [failed.kind for failed in exporting.exporter.failed] == [NoticeKind.EXPORTER_ENDED]


async def test_an_answer_that_cannot_be_made_ends_it_with_a_notice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tfmemtop.engine.metrics.page.text_of", fails)
    exporting = begun(tmp_path)
    with suppress(OSError):  # the connection may be closed before the answer
        assert (await asyncio.to_thread(get, address_in(tmp_path / "sd.json")))[0] == 500
    notice = await exporting.notice()
    assert notice.kind is NoticeKind.EXPORTER_ENDED and notice.detail.startswith("ValueError: on purpose (")
    await exporting.exporter.close()


@CAN_MOUNT
async def test_a_file_system_that_does_not_answer_holds_up_neither_the_loop_nor_the_end(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    exporting = begun(tmp_path, Export(discovery=str(folder / "sd.json")))
    exporting.stream.publish(run())
    loop = asyncio.get_running_loop()
    with silent(folder):
        begin, turns = loop.time(), 0
        closing = asyncio.ensure_future(exporting.exporter.close())
        while not closing.done():
            await asyncio.sleep(0.01)
            turns += 1
            assert loop.time() - begin < PATIENCE_S
        assert turns > 10
    assert {failed.kind: failed.detail for failed in exporting.exporter.failed} == {
        NoticeKind.METRICS_SD_LEFT: f"{folder / 'sd.json'}: Connection timed out",
    }
