"""The page that Prometheus reads."""

import socket
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler

from prometheus_client import CONTENT_TYPE_LATEST
from prometheus_client.exposition import ThreadingWSGIServer

from tfmemtop.engine.metrics.state import MetricsState

PATH = "/metrics"
PATIENCE_S = 10
"""Seconds for which a connection may be silent."""
THREADS = 200
"""While the process has more threads than this, no connection is accepted. Each connection has a thread."""


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
