"""The page that Prometheus reads, and the file that node_exporter reads. The only place that imports prometheus_client.

That library makes the text of both, and the HTTP answer.
"""

import io
import socket
from collections.abc import Iterable, Iterator
from urllib.parse import parse_qs, urlsplit

from prometheus_client import CollectorRegistry, MetricsHandler, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from tfmemtop.metrics.connections import PATIENCE_S, Connections, Request
from tfmemtop.metrics.families import PREFIX, Family, Kind
from tfmemtop.metrics.watched import Watched
from tfmemtop.metrics.whole import replace
from tfmemtop.words.metrics import HELP

PATH = "/metrics"


class _Collected(Collector):
    """Families in the form that prometheus_client needs."""

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
    """Return a registry that contains only these families."""
    made = CollectorRegistry()
    made.register(_Collected(found))
    return made


def write_file(path: str, found: Iterable[Family], draft: str) -> None:
    """Replace the file at *path* by one with these families, completely or not at all. It is first written to *draft*.

    Raises:
        OSError: the file cannot be written.
    """
    replace(path, generate_latest(registry(found)), draft)


class Page(Connections):
    """The server that answers on *listener* with the metrics of *watched*, and with nothing else."""

    def __init__(self, listener: socket.socket, watched: Watched) -> None:
        super().__init__(listener, _Handler)
        self.watched = watched


class _Handler(MetricsHandler):
    server: Page
    server_version = "tfmemtop"
    sys_version = ""

    def setup(self) -> None:
        """Read the request within bounds."""
        super().setup()
        self.rfile.close()
        self.rfile = io.BufferedReader(Request(self.connection))

    def do_GET(self) -> None:
        """Answer with the metrics, or 404."""
        asked = urlsplit(self.path)
        if asked.path != PATH:
            self.send_error(404)
            return
        # Two readers on one machine with the same User-Agent can use ?scraper=a and ?scraper=b as their names.
        named = parse_qs(asked.query).get("scraper", [""])[0]
        reader = self.client_address[0], self.headers.get("User-Agent", ""), named
        # Every reader accepts plain text. OpenMetrics would take half as long again. To compress a few kB takes longer
        # than to send them.
        del self.headers["Accept"], self.headers["Accept-Encoding"]
        found, marks = self.server.watched.look(reader)
        self.registry = registry(found)
        self.connection.settimeout(PATIENCE_S)
        try:
            super().do_GET()
        except BaseException:
            self.server.watched.give_back(reader, marks)
            raise
