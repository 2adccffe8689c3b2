"""The page answers with the metrics and with nothing else."""

import http.client
import shutil
import socket
import subprocess
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest

from tests.metrics.scraping import events_until, get, parsed, scrape, served
from tests.patience import PATIENCE_S
from tfmemtop.metrics import page
from tfmemtop.metrics.watched import Watched


@pytest.fixture
def url() -> Iterator[str]:
    watched = Watched()
    watched.take(events_until("h100-transformer.jsonl", 0.6))
    with served(watched) as found:
        yield found


@pytest.mark.parametrize("path", ["", "/", "/favicon.ico", "/metrics/", "/metrics/x", "/../etc/passwd"])
def test_every_other_path_is_not_there(url: str, path: str) -> None:
    status, text = get(url.removesuffix("/metrics") + path)
    assert status == 404 and "tfmemtop_" not in text


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "HEAD", "OPTIONS", "X"])
def test_nothing_but_get_is_done(url: str, method: str) -> None:
    line = http.client.HTTPConnection(urlsplit(url).netloc, timeout=PATIENCE_S)
    line.request(method, "/metrics")
    assert line.getresponse().status == 501
    line.close()


def test_who_asks_for_other_formats_gets_plain_text_which_all_readers_take(url: str) -> None:
    line = http.client.HTTPConnection(urlsplit(url).netloc, timeout=PATIENCE_S)
    accepted = "application/openmetrics-text;version=1.0.0"
    line.request("GET", "/metrics", headers={"Accept": accepted, "Accept-Encoding": "gzip"})
    answer = line.getresponse()
    assert answer.headers["Content-Type"].startswith("text/plain; version=")
    assert answer.headers["Content-Encoding"] is None
    assert parsed(answer.read().decode())
    line.close()


def test_who_says_nothing_or_nonsense_holds_up_nobody(url: str) -> None:
    address = urlsplit(url)
    assert address.port
    silent = [socket.create_connection(("127.0.0.1", address.port)) for _ in range(page._AT_ONCE - 2)]
    with socket.create_connection(("127.0.0.1", address.port)) as rude:
        rude.sendall(b"\0" * 100 + b"\r\n\r\n")
        rude.recv(100)
    assert scrape(url)
    for one in silent:
        one.close()


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed (Debian: prometheus)")
@pytest.mark.parametrize("name", ["h100-transformer.jsonl", "h200-four-cards.jsonl", "cpu-oom.jsonl"])
def test_promtool_finds_no_fault(name: str) -> None:
    watched = Watched()
    watched.take(events_until(name, 0.6))
    with served(watched) as url:
        _, text = get(url)
    done = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
