"""Helpers that read an exporter's answers with the parser of ``prometheus_client``, and that serve runs to scrape."""

import json
import socket
import urllib.error
import urllib.request
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import TypeVar

from prometheus_client.parser import text_string_to_metric_families

from tests.patience import PATIENCE_S, until
from tfmemtop.engine.metrics.page import MetricsState, Page
from tfmemtop.events import Event
from tfmemtop.events.recording import read

RECORDINGS = Path(__file__).parents[1] / "recordings"

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]

T = TypeVar("T")


def get(url: str) -> tuple[int, str]:
    """Return the status and the text of the answer."""
    try:
        with urllib.request.urlopen(url, timeout=PATIENCE_S) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def parsed(text: str) -> Samples:
    """Return every sample by its name and labels, and check that none occurs twice."""
    found: Samples = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            key = sample.name, frozenset(sample.labels.items())
            assert key not in found, key
            found[key] = sample.value
    return found


def value(samples: Samples, name: str, **labels: str) -> float | None:
    """Return the value of the one sample *name* that has these labels; ``None`` if there is none."""
    found = [
        number for (full, own), number in samples.items() if full == f"tfmemtop_{name}" and labels.items() <= set(own)
    ]
    assert len(found) < 2, (name, labels, found)
    return found[0] if found else None


def scrape(url: str) -> Samples:
    """Return the samples at *url*."""
    status, text = get(url)
    assert status == 200, text
    return parsed(text)


def address_in(file: Path) -> str:
    """Wait until the file_sd *file* exists, and return the URL of the page that it names."""

    def look() -> str | None:
        return str(json.loads(file.read_text())[0]["targets"][0]) if file.exists() else None

    return f"http://{until(look)}/metrics"


def labels_in(file: Path) -> Mapping[str, str]:
    """Return the labels in the file_sd *file*."""
    (entry,) = json.loads(file.read_text())
    return dict(entry["labels"])


def events_until(name: str, share: float) -> list[Event]:
    """Return the events of the recording *name* in the first *share* of its time."""
    events = list(read(RECORDINGS / name).events())
    last = events[0].t + share * (events[-1].t - events[0].t)
    return [event for event in events if event.t <= last]


def watched(events: Iterable[Event]) -> MetricsState:
    """Return what watches a session with these *events*; to a deque, further ones can be added."""

    def fail(error: Exception) -> None:
        raise error

    return MetricsState(events if isinstance(events, deque) else deque(events), fail)


@contextmanager
def served(watched: MetricsState) -> Iterator[str]:
    """Serve the page of *watched* in a thread during the ``with`` block, and yield its URL."""
    listener = socket.create_server(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{listener.getsockname()[1]}/metrics"
    page = Page(listener, watched)
    thread = Thread(target=page.serve, daemon=True)
    thread.start()
    try:
        yield url
    finally:
        page.close()
        thread.join()
