"""The exporter: a process of its own that reads a session's stream and exports its metrics to Prometheus."""

import socket
import time
from threading import Thread

import msgspec

from tfmemtop.events import Event, Unreadable, decode_event
from tfmemtop.failure import facts_of
from tfmemtop.metrics.discovery import withdraw
from tfmemtop.metrics.page import Page, write_file
from tfmemtop.metrics.signs import ALIVE, BEAT_S, TROUBLE
from tfmemtop.metrics.watched import WRITE_S, Watched

_READ = 256 * 1024


class Tasks(msgspec.Struct, frozen=True):
    """What an exporter does: it answers on ``listener``, writes ``textfile``, and removes ``discovery`` at its end.

    ``textfile`` is the path of the file and that of its draft. ``discovery`` is the path of a file and the text that
    was written to it.
    """

    listener: socket.socket | None
    textfile: tuple[str, str] | None
    discovery: tuple[str, str] | None


def export(stream: socket.socket, tasks: Tasks) -> None:
    """Follow *stream* until it ends. An error of the page or the file does not end it.

    The exporter reports errors of the file to the engine.
    """
    _Exporter(stream, tasks).run()


class _Exporter:
    def __init__(self, stream: socket.socket, tasks: Tasks) -> None:
        self._stream = stream
        self._tasks = tasks
        self._watched = Watched()
        self._rest = b""
        self._trouble = ""
        self._beat_at = self._write_at = 0.0

    def run(self) -> None:
        if self._tasks.listener is not None:
            page = Page(self._tasks.listener, self._watched)
            Thread(target=_serve, args=(page,), daemon=True).start()
        self._stream.settimeout(1.0)
        try:
            while self._follow():
                now = time.monotonic()
                if now >= self._beat_at:
                    self._beat_at = now + BEAT_S
                    self._say(ALIVE)
                if now >= self._write_at:
                    self._write_at = now + WRITE_S
                    self._write(last=False)
            self._write(last=True)
        finally:
            if self._tasks.discovery is not None:
                withdraw(*self._tasks.discovery)

    def _follow(self) -> bool:
        """Process what the stream has; return whether more may come."""
        try:
            data = self._stream.recv(_READ)
        except TimeoutError:
            return True
        except OSError:
            return False
        *lines, self._rest = (self._rest + data).split(b"\n")
        self._watched.take(event for line in lines if (event := _decoded(line)) is not None)
        return bool(data)

    def _write(self, *, last: bool) -> None:
        if self._tasks.textfile is None or not self._watched.has_begun:
            return
        try:
            path, draft = self._tasks.textfile
            write_file(path, self._watched.look_for_file(last=last), draft)
            trouble = ""
        except OSError as error:
            trouble = error.strerror or str(error)
        except Exception as error:
            trouble = facts_of(error)
        if trouble != self._trouble:
            self._trouble = trouble
            self._say(TROUBLE + trouble.encode(errors="replace"))

    def _say(self, word: bytes) -> None:
        try:
            self._stream.sendall(word + b"\n")
        except OSError:
            return  # the engine has ended: the next read finds the end of the stream


def _serve(page: Page) -> None:
    while True:
        page.handle_request()  # unlike serve_forever, this does not wake up while there is no request


def _decoded(line: bytes) -> Event | None:
    try:
        return decode_event(line) if line else None
    except Unreadable:
        return None  # skipped without a message here: the other readers of the stream report such lines
