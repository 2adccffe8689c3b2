"""The connections of the page. Their number is limited, so that no reader can delay another."""

import socket
from collections.abc import Callable
from contextlib import suppress
from threading import BoundedSemaphore, Event, Lock, Thread

AT_ONCE = 16
"""The number of connections that are served at a time. If there is one more, the oldest is closed."""
_MAKE_ROOM_S = 1.0
_AFTER_FAILURE_S = 1.0


class Connections:
    """Serves the newest :data:`AT_ONCE` connections to *listener*, each in a thread.

    *serve_one* serves one: it is called with the connection and the address of the other side. It may raise
    :class:`OSError`, which is ignored: a reader may close its connection at any time.
    """

    def __init__(self, listener: socket.socket, serve_one: Callable[[socket.socket, str], None]) -> None:
        self._listener = listener
        self._serve_one = serve_one
        self._room = BoundedSemaphore(AT_ONCE)
        self._lock = Lock()
        self._served: dict[socket.socket, None] = {}  # in their order, the oldest first
        self._closed = Event()

    def serve(self) -> None:
        """Serve connections until :meth:`close`."""
        with self._listener:
            while not self._closed.is_set():
                try:
                    connection, (address, *_) = self._listener.accept()
                except OSError:
                    # There is no descriptor left, and another try would fail at once; or the port is closed.
                    self._closed.wait(_AFTER_FAILURE_S)
                else:
                    self._begin(connection, address)

    def close(self) -> None:
        """Close the port and all connections. This does not wait, and may be called in any thread."""
        self._closed.set()
        with self._lock:
            for one in (self._listener, *self._served):
                _shut(one)

    def _begin(self, connection: socket.socket, address: str) -> None:
        if not self._room.acquire(blocking=False):
            self._close_oldest()
            if not self._room.acquire(timeout=_MAKE_ROOM_S):
                connection.close()
                return
        with self._lock:
            self._served[connection] = None
        try:
            Thread(target=self._run, args=(connection, address), daemon=True).start()
        except RuntimeError:  # there are too many threads on this machine
            self._leave(connection)

    def _run(self, connection: socket.socket, address: str) -> None:
        try:
            with suppress(OSError):
                self._serve_one(connection, address)
        finally:
            self._leave(connection)

    def _leave(self, connection: socket.socket) -> None:
        with self._lock:
            self._served.pop(connection, None)
        connection.close()
        self._room.release()

    def _close_oldest(self) -> None:
        with self._lock:
            oldest = next(iter(self._served), None)
            if oldest is not None:
                del self._served[oldest]
        if oldest is not None:
            _shut(oldest)


def _shut(connection: socket.socket) -> None:
    """Shut *connection*, so that the thread that waits for it goes on and ends."""
    with suppress(OSError):  # the other side has closed it
        connection.shutdown(socket.SHUT_RDWR)
