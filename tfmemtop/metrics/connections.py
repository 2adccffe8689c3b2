"""The connections of the page. Their number, size and time are limited, so that no reader can delay another."""

import io
import socket
import time
from contextlib import suppress
from http.client import HTTPException
from http.server import ThreadingHTTPServer
from threading import BoundedSemaphore, Lock
from typing import Any

AT_ONCE = 16
"""The number of connections that are served at a time. If there is one more, the oldest is closed."""
PATIENCE_S = 10.0
"""Seconds within which a request must arrive, and within which the reader must accept the answer."""
LARGEST = 16 * 1024
"""The largest request, in bytes. Prometheus's requests have about 300."""
_MAKE_ROOM_S = 1.0


class Request(io.RawIOBase):
    """Reads a request from *connection*, for at most :data:`PATIENCE_S` seconds and :data:`LARGEST` bytes."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._until = time.monotonic() + PATIENCE_S
        self._left = LARGEST

    def readable(self) -> bool:
        """Return true, as :class:`io.RawIOBase` demands it of a stream that can be read."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read what has arrived into *buffer*, and return the number of bytes.

        Raises:
            TimeoutError: :data:`PATIENCE_S` are over.
            HTTPException: the request is larger than :data:`LARGEST`.
        """
        if self._left <= 0:
            raise HTTPException(LARGEST)
        left_s = self._until - time.monotonic()
        if left_s <= 0:
            raise TimeoutError
        self._connection.settimeout(left_s)
        count = self._connection.recv_into(memoryview(buffer)[: self._left])
        self._left -= count
        return count


class Connections(ThreadingHTTPServer):
    """The server: it serves the newest :data:`AT_ONCE` connections, each in a thread."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, listener: socket.socket, handler: Any) -> None:
        super().__init__(listener.getsockname()[:2], handler, bind_and_activate=False)
        self.socket.close()
        self.socket = listener
        self._room = BoundedSemaphore(AT_ONCE)
        self._lock = Lock()
        self._served: dict[socket.socket, None] = {}  # in their order, the oldest first

    def process_request(self, request: Any, client_address: object) -> None:
        """Serve one connection in a thread of its own. If there are too many connections, close the oldest."""
        if not self._room.acquire(blocking=False):
            self._close_oldest()
            if not self._room.acquire(timeout=_MAKE_ROOM_S):
                self.shutdown_request(request)
                return
        with self._lock:
            self._served[request] = None
        try:
            super().process_request(request, client_address)
        except BaseException:  # no thread could be started
            self._leave(request)
            raise

    def process_request_thread(self, request: Any, client_address: object) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._leave(request)

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore errors: a reader that has closed the connection, or sent something that is not a request."""

    def _leave(self, request: socket.socket) -> None:
        with self._lock:
            self._served.pop(request, None)
        self._room.release()

    def _close_oldest(self) -> None:
        with self._lock:
            oldest = next(iter(self._served), None)
            if oldest is not None:
                del self._served[oldest]
        if oldest is not None:
            with suppress(OSError):
                oldest.shutdown(socket.SHUT_RDWR)  # its thread ends at once
