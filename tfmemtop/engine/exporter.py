"""Exports the session's metrics to Prometheus, in threads, so that the readings do not wait for it.

The event loop only appends the stream's events to a queue. A thread folds them into a state once a second, another
writes the file, and others answer Prometheus. If one of them fails, a notice reports it, and the run goes on. No thread
has a lower priority: on a busy machine, such a thread would hold Python's lock while it waits for a processor.
"""

import asyncio
import errno
import math
import os
import socket
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from threading import Thread
from typing import TYPE_CHECKING

from tfmemtop.engine.metrics.files import SharedFile, entry, refused, session_labels
from tfmemtop.engine.own_thread import WAIT_S, OwnThread
from tfmemtop.engine.process.alerts import Failed
from tfmemtop.engine.process.launch import Export
from tfmemtop.engine.stream.stream import Stream
from tfmemtop.events import Event, NoticeKind, Output, Session, Trace
from tfmemtop.events.unstarted import Why
from tfmemtop.failure import facts_of

if TYPE_CHECKING:
    from tfmemtop.engine.metrics.page import Page
    from tfmemtop.engine.metrics.state import MetricsState

FOLD_S = 1.0
"""Seconds between two folds. What is newer is folded before each answer."""
WRITE_S = 5.0
"""Seconds between two writes of the file."""

UNUSED = (Output, Trace)
"""Events with megabytes that no metric and no rule uses."""

_BACKLOG = 128
_NO_ANSWER = os.strerror(errno.ETIMEDOUT)


class Exporter:
    """One session's exporter; made by :func:`open_exporter`, which has checked the address and the files.

    ``failed`` are the failures so far.
    """

    def __init__(
        self,
        stream: Stream,
        listener: socket.socket | None,
        textfile: SharedFile | None,
        published: tuple[SharedFile, bytes] | None,
    ) -> None:
        """*published* is the file for Prometheus, and its content."""
        self._stream = stream
        self._listener = listener
        self._textfile = textfile
        self._published = published
        self._new: deque[Event] = deque()
        self._closing = threading.Event()
        self._ended = False  # because of an unforeseen error
        self._page: Page | None = None
        self._jobs: list[Future[None]] = []
        self._late: dict[NoticeKind, float] = {}  # when a thread will have waited too long for a file system
        self._troubles: dict[NoticeKind, str] = {}  # with the files
        self.failed: list[Failed] = []

    def begin(self) -> None:
        """Export the stream from its beginning, and write the file for Prometheus. Needs the running loop.

        Raises:
            StartError: that file cannot be written.
        """
        self._loop = asyncio.get_running_loop()
        if self._published is not None:
            file, content = self._published
            try:
                file.write(content)
            except OSError as error:
                raise refused(Why.METRICS_FILE, file.path, error) from None
        for event in self._stream.backlog.events():
            self._take(event)
        self._stream.listen(self._take)
        thread = OwnThread("metrics")
        self._loaded = thread.submit(self._load)
        self._begin(thread, self._fold)
        if self._textfile is not None:
            self._begin(OwnThread("metrics file"), partial(self._keep_file, self._textfile))

    async def close(self) -> None:
        """Write the file for the last time, remove the one for Prometheus, and close the port."""
        self._stream.forget(self._take)
        self._closing.set()
        if self._published is not None:
            file, content = self._published
            withdraw = partial(self._attempt, NoticeKind.METRICS_SD_LEFT, partial(file.withdraw, content))
            self._begin(OwnThread("metrics withdrawal"), withdraw)
        _, late = await asyncio.wait([asyncio.wrap_future(job) for job in self._jobs], timeout=WAIT_S)
        for unfinished in late:
            unfinished.cancel()
        self._tell_late(now=math.inf)
        self._close_port()

    def _take(self, event: Event) -> None:
        if not isinstance(event, UNUSED):
            self._new.append(event)

    def _end_by(self, error: Exception) -> None:
        """End the export because of an unforeseen *error*. The file for Prometheus stays until the session ends."""
        if not self._ended:
            self._ended = True
            self._stream.forget(self._take)
            self._closing.set()
            self._close_port()
            self._tell(NoticeKind.EXPORTER_ENDED, facts_of(error))

    def _close_port(self) -> None:
        if self._page is not None:
            self._page.close()
        elif self._listener is not None:
            self._listener.close()

    def _tell(self, kind: NoticeKind, trouble: str) -> None:
        """Publish *trouble*, or that there is none any more. Each is published once."""
        if trouble == self._troubles.get(kind, ""):
            return
        self._troubles[kind] = trouble
        if trouble:
            left = kind is NoticeKind.METRICS_SD_LEFT and self._published
            detail = f"{left[0].path}: {trouble}" if left else trouble
            self.failed.append(Failed(kind, detail, None))
            self._stream.notice(kind.value, kind, detail=detail)
        else:
            self._stream.withdraw(kind.value)

    def _tell_late(self, now: float) -> None:
        """Publish which file systems have not answered for too long as of *now*, on the monotonic clock."""
        for kind, late in tuple(self._late.items()):
            if now > late:
                self._tell(kind, _NO_ANSWER)

    def _begin(self, thread: OwnThread, work: Callable[[], None]) -> None:
        self._jobs.append(thread.submit(self._guard, work))
        thread.shutdown()

    # These run in threads:

    def _guard(self, work: Callable[[], None]) -> None:
        try:
            work()
        except Exception as error:
            self._in_loop(self._end_by, error)

    def _in_loop(self, call: Callable[..., None], *arguments: object) -> None:
        with suppress(RuntimeError):  # the loop has ended, and with it the session
            self._loop.call_soon_threadsafe(call, *arguments)

    def _load(self) -> "MetricsState":
        from tfmemtop.engine.metrics.state import MetricsState  # imported here, as it takes a while

        watched = MetricsState(self._new)
        if self._listener is not None:
            from tfmemtop.engine.metrics.page import Page

            self._page = Page(self._listener, watched, partial(self._in_loop, self._end_by))
            Thread(target=self._guard, args=(self._page.serve,), name="metrics page", daemon=True).start()
        return watched

    def _fold(self) -> None:
        watched = self._loaded.result()
        while not self._closing.wait(FOLD_S):
            watched.fold()
            self._in_loop(self._tell_late, time.monotonic())

    def _keep_file(self, file: SharedFile) -> None:
        watched = self._loaded.result()
        last = False
        while not last:
            last = self._closing.is_set()
            if not self._ended and watched.has_begun:
                self._attempt(NoticeKind.METRICS_FILE_FAILED, partial(file.write, watched.text(last=last)))
            self._closing.wait(WRITE_S)

    def _attempt(self, kind: NoticeKind, call: Callable[[], None]) -> None:
        """Call *call*, whose file system may not answer, and tell why it failed, or that it did not."""
        self._late[kind] = time.monotonic() + WAIT_S
        trouble = ""
        try:
            call()
        except OSError as error:
            trouble = error.strerror or str(error)
        finally:
            del self._late[kind]
        self._in_loop(self._tell, kind, trouble)


def open_exporter(stream: Stream, asked: Export, session: Session) -> Exporter:
    """Return the exporter that *asked* describes. It listens, and its files can be written, but are not there yet.

    Raises:
        StartError: the address cannot be used, or a file cannot be written.
    """
    listener = _listen(asked.address, asked.port) if asked.port is not None else None
    published = textfile = None
    if asked.textfile is not None:
        textfile = SharedFile(asked.textfile)
        textfile.check()
    if asked.discovery is not None and listener is not None:
        published = SharedFile(asked.discovery), entry(listener, session.host, session_labels(session))
        published[0].check()
    return Exporter(stream, listener, textfile, published)


def _listen(address: str, port: int) -> socket.socket:
    try:
        family, _, _, _, found = socket.getaddrinfo(address, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        return socket.create_server(found[:2], family=family, backlog=_BACKLOG)
    except OSError as error:
        shown = f"[{address}]" if ":" in address else address
        raise refused(Why.METRICS_ADDRESS, f"{shown}:{port}", error) from None
