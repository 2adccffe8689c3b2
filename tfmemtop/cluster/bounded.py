"""HTTP connections that end at a deadline, however slowly a server answers."""

import http.client
import socket
import threading
import urllib.request
from contextlib import suppress
from functools import partial
from typing import Any


class Deadline:
    """After *seconds* all connections that were made under it are shut, so that nobody waits for them any more."""

    def __init__(self, seconds: float) -> None:
        self.over = False
        self._lock = threading.Lock()
        self._connected: list[socket.socket] = []
        self._timer = threading.Timer(seconds, self._shut)
        self._timer.daemon = True
        self._timer.start()

    def holds_for(self, connected: socket.socket) -> None:
        """Shut *connected* too."""
        with self._lock:
            self._connected.append(connected)
            over = self.over
        if over:
            _shut(connected)

    def cancel(self) -> None:
        """It is over in time."""
        self._timer.cancel()

    def _shut(self) -> None:
        with self._lock:
            self.over = True
            connected = list(self._connected)
        for one in connected:
            _shut(one)


def _shut(connected: socket.socket) -> None:
    with suppress(OSError):
        # Of an encrypted connection too: this is for the one beneath, and waits for no goodbye.
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
    """Opens ``http:`` for a request that is :class:`Bounded`."""

    def http_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        """As the library does."""
        return self.do_open(partial(_connection, _Http, req), req)  # type: ignore[arg-type]


class BoundedHttps(urllib.request.HTTPSHandler):
    """Opens ``https:`` for a request that is :class:`Bounded`."""

    def https_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        """As the library does."""
        return self.do_open(partial(_connection, _Https, req), req)  # type: ignore[arg-type]


class Bounded(urllib.request.Request):
    """A request that has time until its *deadline*."""

    def __init__(self, url: str, data: bytes | None, deadline: Deadline) -> None:
        super().__init__(url, data)
        self.deadline = deadline


def _connection(kind: type[_Http | _Https], request: Bounded, *given: Any, **named: Any) -> _Http | _Https:
    made = kind(*given, **named)
    made.deadline = request.deadline
    return made
