"""The page that Prometheus reads, and the state from which it is made."""

import socket
import threading
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler

from prometheus_client import CONTENT_TYPE_LATEST
from prometheus_client.exposition import ThreadingWSGIServer

from tfmemtop.engine.metrics.families import families, text_of
from tfmemtop.events import Event
from tfmemtop.state import State
from tfmemtop.state.fold import apply

PATH = "/metrics"
PATIENCE_S = 10
"""Seconds for which a connection may be silent."""
THREADS = 200
"""While the process has more threads than this, no connection is accepted. Each connection has a thread."""


class MetricsState:
    """Folds events into the state and returns its metrics. Several threads may use it.

    Another thread may append events to *new* at any time. They are folded before each look, and by :meth:`fold`.
    """

    def __init__(self, new: deque[Event]) -> None:
        self._new = new
        self._state = State()
        self._lock = threading.Lock()  # one thread at a time makes a text: the others need Python's lock too

    def fold(self) -> None:
        """Fold the new events into the state."""
        with self._lock:
            self._fold()

    def text(self) -> bytes:
        """Return the current metrics in Prometheus's text format."""
        with self._lock:
            self._fold()
            return text_of(families(self._state))

    def _fold(self) -> None:
        for _ in range(len(self._new)):  # events that arrive meanwhile are left for the next time
            apply(self._state, self._new.popleft())


class _Handler(WSGIRequestHandler):
    timeout = PATIENCE_S
    wbufsize = -1  # one packet instead of five

    def log_message(self, format: str, *args: Any) -> None:
        """Write nothing about a request."""


class Page(ThreadingWSGIServer):
    """The server that answers on *listener* with the metrics of *watched*, and with nothing else.

    If an answer cannot be made, *failed* is called with the exception, in the thread of the request.
    """

    def __init__(self, listener: socket.socket, watched: MetricsState, failed: Callable[[Exception], None]) -> None:
        super().__init__(listener.getsockname()[:2], _Handler, bind_and_activate=False)
        self.socket.close()
        self.socket = listener
        self.server_name, self.server_port = listener.getsockname()[:2]
        self.setup_environ()
        self.set_app(self._answer)
        self._watched = watched
        self._failed = failed
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

    def _answer(self, environ: dict[str, Any], start_response: Callable[..., object]) -> Iterable[bytes]:
        method = environ["REQUEST_METHOD"]
        status, kind, content = self._content(environ["PATH_INFO"], method)
        body = content or status.encode()
        start_response(status, [("Content-Type", kind), ("Content-Length", str(len(body)))])
        return [] if method == "HEAD" else [body]

    def _content(self, path: str, method: str) -> tuple[str, str, bytes]:
        """Return status, type and content of the answer. An empty content stands for the text of the status."""
        if path != PATH:
            return "404 Not Found", "text/plain", b""
        if method not in ("GET", "HEAD"):
            return "405 Method Not Allowed", "text/plain", b""
        try:
            return "200 OK", CONTENT_TYPE_LATEST, self._watched.text()
        except Exception as error:
            self._failed(error)
            return "500 Internal Server Error", "text/plain", b""
