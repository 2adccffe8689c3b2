"""Exports a session's metrics to Prometheus, in threads, so that the readings do not wait for it.

The event loop only appends the stream's events to a queue. A thread folds them into a state once a second, and others
answer Prometheus. If one of them fails, a notice reports it, and the run goes on. No thread has a lower priority: on a
busy machine, such a thread would hold Python's lock while it waits for a processor. A file tells Prometheus the address
of the session's page (file_sd). The other modules here make the samples and the page.
"""

import asyncio
import errno
import os
import socket
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING

from tfmemtop.engine.own_thread import WAIT_S, OwnThread
from tfmemtop.engine.process.launch import Export
from tfmemtop.engine.stream import Stream
from tfmemtop.events import Event, NoticeKind, Output, Session, Trace
from tfmemtop.failure import facts_of

if TYPE_CHECKING:
    from tfmemtop.engine.metrics.page import MetricsState, Page
import json
from collections.abc import Mapping
from pathlib import Path

from tfmemtop.engine.process.launch import StartError

_EVERYWHERE = ("0.0.0.0", "::")
_MODE = 0o644  # whatever the umask: Prometheus runs as another user


def publish(path: str, data: bytes) -> None:
    """Replace the file *path* by one with *data* that all users may read. A symbolic link is replaced, not followed.

    It is written as a draft first, so that Prometheus never finds a part of it.

    Raises:
        StartError: there is something other than a file, such as a device, or the file cannot be written.
    """
    draft = Path(f"{path}.{os.urandom(4).hex()}")  # no pattern such as *.json matches it
    try:
        if Path(path).is_dir():
            raise IsADirectoryError(errno.EISDIR, "")
        if Path(path).exists() and not Path(path).is_file():
            raise StartError(f"no metrics in {path}: it is not a regular file")
        with draft.open("xb") as file:
            with suppress(OSError):  # not every file system has modes
                os.fchmod(file.fileno(), _MODE)
            file.write(data)
        draft.replace(path)
    except OSError as error:
        with suppress(OSError):
            draft.unlink(missing_ok=True)
        raise refused(f"in {path}", error) from None


def withdraw(path: str, data: bytes) -> None:
    """Remove the file *path* if it still contains exactly *data*, so that a file of another session stays.

    Raises:
        OSError: the file cannot be read or removed.
    """
    file = Path(path)
    if file.is_file() and not file.is_symlink() and file.read_bytes() == data:
        file.unlink(missing_ok=True)


def refused(place: str, error: OSError) -> StartError:
    """Return the error of a start that fails because the metrics cannot be had at *place*, such as ``in m.json``."""
    # Python adds its own words to some of the system's messages, so the message is taken from the system.
    known = error.errno is not None and error.errno in errno.errorcode
    said = os.strerror(error.errno or 0) if known else error.strerror or str(error)
    return StartError(f"no metrics {place}: {said.lower()}")


def entry(listener: socket.socket, host: str, labels: Mapping[str, str]) -> bytes:
    """Return the content of the file for Prometheus: the address of the page on *host*, and the target's *labels*.

    Prometheus has these labels even while the page does not answer.
    """
    address, port = listener.getsockname()[:2]
    if address in _EVERYWHERE:
        address = host
    elif ":" in address:
        address = f"[{address}]"
    given = {name: value for name, value in labels.items() if value}
    return json.dumps([{"targets": [f"{address}:{port}"], "labels": given}]).encode()


def session_labels(session: Session | None) -> dict[str, str]:
    """Return the labels that all samples of a session have. Job and rank are empty if the session has none."""
    place = session.placement if session else None
    rank = "" if place is None or place.rank is None else str(place.rank)
    host = (place.host if place else "") or (session.host if session else "")
    return {"host": host, "job": (place.job if place else None) or "", "rank": rank}


FOLD_S = 1.0
"""Seconds between two folds. What is newer is folded before each answer."""

UNUSED = (Output, Trace)
"""Events with megabytes that no metric and no rule uses."""

_BACKLOG = 128


class Exporter:
    """One session's exporter; made by :func:`open_exporter`, which has checked the address."""

    def __init__(self, stream: Stream, listener: socket.socket, published: tuple[str, bytes] | None) -> None:
        """*published* is the path of the file in which Prometheus finds the page, and its content."""
        self._stream = stream
        self._listener = listener
        self._published = published
        self._new: deque[Event] = deque()
        self._page: Page | None = None
        self._task: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """Export the stream from its beginning, and write the file for Prometheus. Needs the running loop.

        Raises:
            StartError: that file cannot be written.
        """
        self._loop = asyncio.get_running_loop()
        if self._published is not None:
            publish(*self._published)
        for event in self._stream.backlog.events():
            self._take(event)
        self._stream.listen(self._take)
        self._task = self._loop.create_task(self._export())

    async def close(self) -> None:
        """Remove the file for Prometheus, and close the port."""
        self._stop()
        if self._published is not None:
            path, content = self._published
            removal = self._loop.run_in_executor(OwnThread("metrics file"), withdraw, path, content)
            try:
                await asyncio.wait_for(removal, WAIT_S)
            except asyncio.TimeoutError:
                self._fail(NoticeKind.METRICS_SD_LEFT, f"{path}: {os.strerror(errno.ETIMEDOUT)}")
            except OSError as error:
                self._fail(NoticeKind.METRICS_SD_LEFT, f"{path}: {error.strerror or error}")
        self._close_port()

    def _take(self, event: Event) -> None:
        if not isinstance(event, UNUSED):
            self._new.append(event)

    def _end_by(self, error: Exception) -> None:
        """End the export because of an unforeseen *error*. The file for Prometheus stays until the session ends."""
        if self._task is not None:
            self._stop()
            self._close_port()
            self._fail(NoticeKind.EXPORTER_ENDED, facts_of(error))

    def _stop(self) -> None:
        self._stream.forget(self._take)
        if self._task is not None:
            self._task.cancel()
            self._task = None

    def _fail(self, kind: NoticeKind, detail: str) -> None:
        self._stream.notice(kind.value, kind, detail=detail)

    def _close_port(self) -> None:
        if self._page is not None:
            self._page.close()
        else:
            self._listener.close()

    async def _export(self) -> None:
        try:
            watched, page = await asyncio.to_thread(self._make_page)
            serving = self._loop.run_in_executor(OwnThread("metrics page"), page.serve)
            while not (await asyncio.wait([serving], timeout=FOLD_S))[0]:
                await asyncio.to_thread(watched.fold)
            serving.result()
        except Exception as error:
            self._end_by(error)

    # These run in threads:

    def _make_page(self) -> "tuple[MetricsState, Page]":
        from tfmemtop.engine.metrics.page import MetricsState, Page  # imported here, as it takes a while

        watched = MetricsState(self._new, self._tell_failure)
        self._page = Page(self._listener, watched)
        return watched, self._page

    def _tell_failure(self, error: Exception) -> None:
        with suppress(RuntimeError):  # the loop has ended, and with it the session
            self._loop.call_soon_threadsafe(self._end_by, error)


def open_exporter(stream: Stream, asked: Export, session: Session) -> Exporter:
    """Return the exporter that *asked* describes. It listens; its file is not there yet.

    Raises:
        StartError: the address cannot be used.
    """
    listener = _listen(asked.address, asked.port)
    published = None
    if asked.discovery is not None:
        published = asked.discovery, entry(listener, session.host, session_labels(session))
    return Exporter(stream, listener, published)


def _listen(address: str, port: int) -> socket.socket:
    try:
        family, _, _, _, found = socket.getaddrinfo(address, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        return socket.create_server(found[:2], family=family, backlog=_BACKLOG)
    except OSError as error:
        shown = f"[{address}]" if ":" in address else address
        raise refused(f"at {shown}:{port}", error) from None
