"""The connections of the page: bounded in number, in size and in time, so that no reader can hold up another."""

import io
import socket
import time
from contextlib import suppress
from http.client import HTTPException
from http.server import ThreadingHTTPServer
from threading import BoundedSemaphore, Lock
from typing import Any

AT_ONCE = 16
"""Connections that are served at a time; for a further one the oldest is closed."""
PATIENCE_S = 10.0
"""So long a request may take to come, and so long an answer may take to be read."""
LARGEST = 16 * 1024
"""Bytes of a request. Prometheus's have about 300."""
_MAKE_ROOM_S = 1.0


class Request(io.RawIOBase):
    """What comes from *connection*, within :data:`PATIENCE_S` and not more than :data:`LARGEST` bytes."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._until = time.monotonic() + PATIENCE_S
        self._left = LARGEST

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Raises:
        TimeoutError: the time is over.
        HTTPException: it is too large.
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
    """A thread for each of the newest :data:`AT_ONCE` connections."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, listener: socket.socket, handler: Any) -> None:
        super().__init__(listener.getsockname()[:2], handler, bind_and_activate=False)
        self.socket.close()
        self.socket = listener
        self._room = BoundedSemaphore(AT_ONCE)
        self._lock = Lock()
        self._served: dict[socket.socket, None] = {}  # the oldest first

    def process_request(self, request: Any, client_address: object) -> None:
        """Serve one connection in a thread of its own. If there are too many, the oldest is closed."""
        if not self._room.acquire(blocking=False):
            self._close_oldest()
            if not self._room.acquire(timeout=_MAKE_ROOM_S):
                self.shutdown_request(request)
                return
        with self._lock:
            self._served[request] = None
        try:
            super().process_request(request, client_address)
        except BaseException:  # there is no room for a thread
            self._leave(request)
            raise

    def process_request_thread(self, request: Any, client_address: object) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._leave(request)

    def handle_error(self, request: object, client_address: object) -> None:
        """A reader that has gone, or says what is no request, is no matter of ours."""

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
