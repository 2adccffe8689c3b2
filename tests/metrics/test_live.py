"""The exporter of a live session: it outlives the screen and ends with the session. If it fails, a notice says so.

Its page answers with the metrics and with nothing else.
"""

import asyncio
import http.client
import shutil
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.disks import CAN_FREEZE, frozen, mounted
from tests.engines import READS, Engines, ended
from tests.metrics.scraping import address_in, events_until, get, scrape, served, value, watched
from tests.own_sessions import own_sessions
from tests.patience import PATIENCE_S, until
from tests.starting import ran
from tests.streams import run, session
from tfmemtop.engine.metrics import open_exporter
from tfmemtop.engine.metrics.page import THREADS
from tfmemtop.engine.process.launch import Export
from tfmemtop.engine.stream import Stream
from tfmemtop.events import Event, Notice, NoticeKind, RunEnd, Stop

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


class Exporting:
    """An exporter of a session without an engine, with the notices about it."""

    def __init__(self, asked: Export) -> None:
        self.stream, self._notices = Stream(), asyncio.Queue[Notice]()
        self.exporter = open_exporter(self.stream, asked, session())
        self.told: list[NoticeKind | None] = []
        self.stream.listen(self._take)
        self.stream.publish(session())
        self.exporter.begin()

    def _take(self, event: Event) -> None:
        if isinstance(event, Notice):
            self._notices.put_nowait(event)
            self.told.append(event.kind)

    async def notice(self) -> Notice:
        return await asyncio.wait_for(self._notices.get(), PATIENCE_S)


def fails(*_: object) -> None:
    raise ValueError("on purpose")


@pytest.mark.parametrize("place", ["apply", "families"])
async def test_an_event_or_an_answer_that_fails_ends_it_with_a_notice_and_nothing_else(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"tfmemtop.engine.metrics.page.{place}", fails)
    exporting = Exporting(export(tmp_path))
    url = address_in(tmp_path / "sd.json")
    if place == "families":
        with suppress(OSError):  # the connection may be closed before the answer
            assert (await asyncio.to_thread(get, url))[0] == 500
    notice = await exporting.notice()
    assert notice.kind is NoticeKind.EXPORTER_ENDED
    assert notice.detail.startswith("ValueError: on purpose (")
    with pytest.raises(OSError):
        await asyncio.to_thread(get, url)  # the file stays, so that the target is down
    exporting.stream.notice("other", NoticeKind.INPUT_LOST)
    assert (await exporting.notice()).key == "other"
    await exporting.exporter.close()
    assert not (tmp_path / "sd.json").exists()
    assert exporting.told == [NoticeKind.EXPORTER_ENDED, NoticeKind.INPUT_LOST]


@CAN_FREEZE
async def test_a_file_system_that_does_not_answer_holds_up_neither_the_loop_nor_the_end(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    with mounted(folder):
        exporting = Exporting(Export(discovery=str(folder / "sd.json")))
        loop = asyncio.get_running_loop()
        with frozen(folder):
            exporting.stream.publish(run())
            begin, turns = loop.time(), 0
            closing = asyncio.ensure_future(exporting.exporter.close())
            while not closing.done():
                await asyncio.sleep(0.01)
                turns += 1
                assert loop.time() - begin < PATIENCE_S
            assert turns > 10
        notice = await exporting.notice()
        assert notice.kind is NoticeKind.METRICS_SD_LEFT
        assert notice.detail == f"{folder / 'sd.json'}: Connection timed out"


@pytest.fixture
def url() -> Iterator[str]:
    with served(watched(events_until("h100-transformer.jsonl", 0.6))) as found:
        yield found


@pytest.mark.parametrize("method", ["POST", "HEAD", "X"])
def test_nothing_but_get_is_done(url: str, method: str) -> None:
    line = http.client.HTTPConnection(urlsplit(url).netloc, timeout=PATIENCE_S)
    line.request(method, "/metrics")
    assert line.getresponse().status == 405
    line.close()


def connected(url: str) -> socket.socket:
    return socket.create_connection(("127.0.0.1", urlsplit(url).port or 0), timeout=PATIENCE_S)


def test_who_says_nothing_is_closed_in_time(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tfmemtop.engine.metrics.page._Handler.timeout", 0.3)
    with connected(url) as silent:
        assert silent.recv(1) == b""


def test_many_silent_connections_and_nonsense_take_a_bounded_number_of_threads_and_hold_up_nobody(url: str) -> None:
    before = threading.active_count()
    silent = [connected(url) for _ in range(THREADS + 50)]
    assert threading.active_count() <= before + THREADS
    for one in silent[50:]:
        one.close()
    until(lambda: threading.active_count() < before + THREADS)
    with connected(url) as rude:
        rude.sendall(b"\0" * 100 + b"\r\n\r\n")
        rude.recv(100)
    assert scrape(url)
    for one in silent[:50]:
        one.close()


@pytest.mark.programs
@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed (Debian: prometheus)")
@pytest.mark.parametrize("name", ["h100-transformer.jsonl", "h200-four-cards.jsonl", "cpu-oom.jsonl"])
def test_promtool_finds_no_fault(name: str) -> None:
    with served(watched(events_until(name, 0.6))) as url:
        _, text = get(url)
    done = ran(["promtool", "check", "metrics"], stdin=text)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
