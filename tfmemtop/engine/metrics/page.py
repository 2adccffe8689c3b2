"""The page that Prometheus reads, and the state from which it is made."""

import io
import socket
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TextIO
from wsgiref.simple_server import WSGIRequestHandler

from prometheus_client.exposition import ThreadingWSGIServer, make_wsgi_app
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from tfmemtop.engine.metrics.families import families
from tfmemtop.events import Event
from tfmemtop.state import State
from tfmemtop.state.fold import apply

PATIENCE_S = 10
"""Seconds for which a connection may be silent."""
THREADS = 200
"""While the process has more threads than this, no connection is accepted. Each connection has a thread."""


class MetricsState(Collector):
    """Folds events into the state and returns its metrics. Several threads may use it.

    Another thread may append events to *new* at any time. They are folded before each look, and by :meth:`fold`. If
    the metrics cannot be made, *failed* is called with the exception, in the thread of the request.
    """

    def __init__(self, new: deque[Event], failed: Callable[[Exception], None]) -> None:
        self._new = new
        self._failed = failed
        self._state = State()
        self._lock = threading.Lock()

    def fold(self) -> None:
        """Fold the new events into the state."""
        with self._lock:
            self._fold()

    def collect(self) -> list[Metric]:
        """Return the current metrics."""
        try:
            with self._lock:
                self._fold()
                return families(self._state)
        except Exception as error:
            self._failed(error)
            raise

    def _fold(self) -> None:
        for _ in range(len(self._new)):  # events that arrive meanwhile are left for the next time
            apply(self._state, self._new.popleft())


class _Handler(WSGIRequestHandler):
    timeout = PATIENCE_S
    wbufsize = -1  # one packet instead of five

    def log_message(self, format: str, *args: Any) -> None:
        """Write nothing about a request."""

    def get_stderr(self) -> TextIO:
        return io.StringIO()  # who made the state reports the error


class Page(ThreadingWSGIServer):
    """The server that answers on *listener* with the metrics of *watched*, and with nothing else."""

    def __init__(self, listener: socket.socket, watched: MetricsState) -> None:
        super().__init__(listener.getsockname()[:2], _Handler, bind_and_activate=False)
        self.socket.close()
        self.socket = listener
        self.server_name, self.server_port = listener.getsockname()[:2]
        self.setup_environ()
        self.set_app(make_wsgi_app(watched))
        self._closed = False

    def serve(self) -> None:
        """Serve connections until :meth:`close`."""
        with self.socket:
            while not self._closed:
                self.handle_request()

    def close(self) -> None:
        """Close the port. This does not wait, and may be called in any thread."""
        self._closed = True
        with suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)  # so that the thread that waits for a connection goes on

    def verify_request(self, request: object, client_address: object) -> bool:
        return threading.active_count() <= THREADS

    def handle_error(self, request: object, client_address: object) -> None:
        """Write nothing: a reader may close its connection at any time."""
