"""The page that Prometheus reads, and the file that node_exporter reads. The one place that imports prometheus_client.

All that travels is made by that library: the formats, what of them a reader gets, and the writing of the file.
"""

import socket
from collections.abc import Iterable, Iterator
from http.server import ThreadingHTTPServer
from threading import BoundedSemaphore
from urllib.parse import parse_qs, urlsplit

from prometheus_client import CollectorRegistry, MetricsHandler, write_to_textfile
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from tfmemtop.metrics.families import PREFIX, Family, Kind
from tfmemtop.metrics.watched import Watched
from tfmemtop.words.metrics import HELP

PATH = "/metrics"

_AT_ONCE = 16
"""Connections that are served at a time; further ones are closed."""
_PATIENCE_S = 10.0
"""So long a connection may stay silent."""


class _Collected(Collector):
    """Families as prometheus_client takes them."""

    def __init__(self, found: Iterable[Family]) -> None:
        self._found = found

    def collect(self) -> Iterator[Metric]:
        for family in self._found:
            make = CounterMetricFamily if family.kind is Kind.COUNTER else GaugeMetricFamily
            made = make(PREFIX + family.name, HELP[family.name], labels=family.labels)
            for labels, value in family.samples:
                made.add_metric([labels[label] for label in family.labels], value)
            yield made


def registry(found: Iterable[Family]) -> CollectorRegistry:
    """A registry of these families and nothing else."""
    made = CollectorRegistry()
    made.register(_Collected(found))
    return made


def write_file(path: str, found: Iterable[Family]) -> None:
    """Replace the file at *path* by one with these families, whole or not at all.

    Raises:
        OSError: it cannot be written.
    """
    write_to_textfile(path, registry(found))


class Page(ThreadingHTTPServer):
    """Answers on *listener* with the metrics of *watched*, and with nothing else."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, listener: socket.socket, watched: Watched) -> None:
        super().__init__(listener.getsockname()[:2], _Handler, bind_and_activate=False)
        self.socket.close()
        self.socket = listener
        self.watched = watched
        self._room = BoundedSemaphore(_AT_ONCE)

    def process_request(self, request: "socket.socket | tuple[bytes, socket.socket]", client_address: object) -> None:
        """Serve one connection in a thread of its own, if there are not too many."""
        if self._room.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(
        self, request: "socket.socket | tuple[bytes, socket.socket]", client_address: object
    ) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._room.release()

    def handle_error(self, request: object, client_address: object) -> None:
        """A reader that has gone, or says what is no request, is no matter of ours."""


class _Handler(MetricsHandler):
    server: Page
    timeout = _PATIENCE_S
    server_version = "tfmemtop"
    sys_version = ""

    def do_GET(self) -> None:
        """Answer with the metrics, or 404."""
        asked = urlsplit(self.path)
        if asked.path != PATH:
            self.send_error(404)
            return
        # Two readers on one machine that call themselves alike can ask for ?scraper=a and ?scraper=b.
        named = parse_qs(asked.query).get("scraper", [""])[0]
        reader = self.client_address[0], self.headers.get("User-Agent", ""), named
        # Plain text is what every reader takes. OpenMetrics would take half as long again, and to compress a few kB
        # takes longer than to send them.
        del self.headers["Accept"], self.headers["Accept-Encoding"]
        found, marks = self.server.watched.look(reader)
        self.registry = registry(found)
        try:
            super().do_GET()
        except BaseException:
            self.server.watched.give_back(reader, marks)
            raise
