"""The page answers with the metrics and with nothing else."""

import http.client
import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest

from tests.metrics.scraping import events_until, get, scrape, served, watched
from tests.patience import PATIENCE_S, until
from tfmemtop.engine.metrics.page import THREADS


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
    done = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
