"""HTTP connections that end at a deadline, even if the server answers slowly and never stops."""

import http.client
import socket
import threading
import urllib.request
from contextlib import suppress
from functools import partial
from typing import Any


class Deadline:
    """Shuts all its connections after *seconds*, so that no thread waits for them any longer."""

    def __init__(self, seconds: float) -> None:
        self.over = False
        self._lock = threading.Lock()
        self._connected: list[socket.socket] = []
        self._timer = threading.Timer(seconds, self._shut)
        self._timer.daemon = True
        self._timer.start()

    def holds_for(self, connected: socket.socket) -> None:
        """Shut *connected* at this deadline; at once if it has passed."""
        with self._lock:
            self._connected.append(connected)
            over = self.over
        if over:
            _shut(connected)

    def cancel(self) -> None:
        """Stop the timer. Call this when the answer has come in time."""
        self._timer.cancel()

    def _shut(self) -> None:
        with self._lock:
            self.over = True
            connected = list(self._connected)
        for one in connected:
            _shut(one)


def _shut(connected: socket.socket) -> None:
    with suppress(OSError):
        # The method of the plain socket is called for an encrypted connection, too: it does not wait for TLS to close.
        socket.socket.shutdown(connected, socket.SHUT_RDWR)


class _Http(http.client.HTTPConnection):
    deadline: Deadline

    def connect(self) -> None:
        super().connect()
        self.deadline.holds_for(self.sock)


class _Https(http.client.HTTPSConnection):
    deadline: Deadline

    def connect(self) -> None:
        super().connect()
        self.deadline.holds_for(self.sock)


class BoundedHttp(urllib.request.HTTPHandler):
    """Opens ``http:`` connections for a :class:`Bounded` request."""

    def http_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        """Open the connection as the library does, but end it at the request's deadline."""
        return self.do_open(partial(_connection, _Http, req), req)  # type: ignore[arg-type]


class BoundedHttps(urllib.request.HTTPSHandler):
    """Opens ``https:`` connections for a :class:`Bounded` request."""

    def https_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        """Open the connection as the library does, but end it at the request's deadline."""
        return self.do_open(partial(_connection, _Https, req), req)  # type: ignore[arg-type]


class Bounded(urllib.request.Request):
    """A request whose connection ends at its *deadline*."""

    def __init__(self, url: str, data: bytes | None, deadline: Deadline) -> None:
        super().__init__(url, data)
        self.deadline = deadline


def _connection(kind: type[_Http | _Https], request: Bounded, *given: Any, **named: Any) -> _Http | _Https:
    made = kind(*given, **named)
    made.deadline = request.deadline
    return made
