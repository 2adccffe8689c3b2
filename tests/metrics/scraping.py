"""Reading what an exporter answers, with the library's own parser, and runs to be scraped."""

import json
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import TypeVar

from prometheus_client.parser import text_string_to_metric_families

from tests.patience import PATIENCE_S
from tfmemtop.events import Event
from tfmemtop.metrics.page import Page
from tfmemtop.metrics.watched import Watched
from tfmemtop.recording import read

RECORDINGS = Path(__file__).parents[1] / "recordings"

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]

T = TypeVar("T")


def get(url: str, agent: str = "tests") -> tuple[int, str]:
    """Status and text of the answer."""
    request = urllib.request.Request(url, headers={"User-Agent": agent})
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def parsed(text: str) -> Samples:
    """Every sample by its name and labels; none comes twice."""
    found: Samples = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            key = sample.name, frozenset(sample.labels.items())
            assert key not in found, key
            found[key] = sample.value
    return found


def value(samples: Samples, name: str, **labels: str) -> float | None:
    """The value of the one sample *name* that has these labels; ``None`` if there is none."""
    found = [
        number for (full, own), number in samples.items() if full == f"tfmemtop_{name}" and labels.items() <= set(own)
    ]
    assert len(found) < 2, (name, labels, found)
    return found[0] if found else None


def scrape(url: str, agent: str = "tests") -> Samples:
    """The samples at *url*."""
    status, text = get(url, agent)
    assert status == 200, text
    return parsed(text)


def eventually(look: Callable[[], T | None]) -> T:
    """What *look* gives once it gives something, asked again and again."""
    until = time.monotonic() + PATIENCE_S
    while (found := look()) is None:
        assert time.monotonic() < until
        time.sleep(0.05)
    return found


def address_in(file: Path) -> str:
    """The page that the file_sd *file* names, once it is there."""

    def look() -> str | None:
        return str(json.loads(file.read_text())[0]["targets"][0]) if file.exists() else None

    return f"http://{eventually(look)}/metrics"


def labels_in(file: Path) -> Mapping[str, str]:
    """The labels in the file_sd *file*."""
    (entry,) = json.loads(file.read_text())
    return dict(entry["labels"])


def events_until(name: str, share: float) -> list[Event]:
    """The events of the recording *name* in the first *share* of its time."""
    events = list(read(RECORDINGS / name).events())
    last = events[0].t + share * (events[-1].t - events[0].t)
    return [event for event in events if event.t <= last]


@contextmanager
def served(watched: Watched) -> Iterator[str]:
    """The page of *watched*, in a thread of the test's."""
    listener = socket.create_server(("127.0.0.1", 0))
    page = Page(listener, watched)
    thread = Thread(target=page.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/metrics"
    finally:
        page.shutdown()
        page.server_close()
        thread.join()
