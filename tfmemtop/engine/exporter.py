"""Exports the session's metrics to Prometheus, in threads, so that the readings do not wait for it.

The event loop only appends the stream's events to a queue. A thread folds them into a state once a second, another
writes the file, and others answer Prometheus. If one of them fails, a notice reports it, and the run goes on. No thread
has a lower priority: on a busy machine, such a thread would hold Python's lock while it waits for a processor.
"""

import asyncio
import errno
import os
import socket
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any

from tfmemtop.engine.metrics.files import (
    can_be_replaced,
    draft_of,
    entry,
    publish,
    remove,
    replace,
    session_labels,
    withdraw,
)
from tfmemtop.engine.own_thread import WAIT_S, OwnThread
from tfmemtop.engine.process.alerts import Failed
from tfmemtop.engine.process.launch import Export
from tfmemtop.engine.stream.stream import Stream
from tfmemtop.events import Event, NoticeKind, Output, Session, Trace
from tfmemtop.events.unstarted import StartError, Unstarted, Why
from tfmemtop.failure import facts_of

if TYPE_CHECKING:
    from tfmemtop.engine.metrics.page import Page
    from tfmemtop.engine.metrics.state import MetricsState

FOLD_S = 1.0
"""Seconds between two folds. What is newer is folded before each answer."""

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
        textfile: tuple[str, str] | None,
        published: tuple[str, str] | None,
    ) -> None:
        """*textfile* is the path of a file and that of its draft, *published* the path of a file and its text."""
        self._stream = stream
        self._listener = listener
        self._textfile = textfile
        self._published = published
        self._new: deque[Event] = deque()
        self._thread, self._file_thread = OwnThread("metrics"), OwnThread("metrics file")
        self._tasks: list[asyncio.Task[None]] = []
        self._page: Page | None = None
        self._trouble = ""  # of the file
        self._ended = False
        self.failed: list[Failed] = []

    def begin(self) -> None:
        """Export the stream from its beginning, and write the file for Prometheus. Needs the running loop.

        Raises:
            StartError: that file cannot be written.
        """
        self._loop = asyncio.get_running_loop()
        if self._published is not None:
            try:
                publish(*self._published, draft_of(self._published[0]))
            except OSError as error:
                raise _refused(Why.METRICS_FILE, self._published[0], error) from None
        for event in self._stream.backlog.events():
            self._take(event)
        self._stream.listen(self._take)
        self._loading = self._loop.run_in_executor(self._thread, self._load)
        self._tasks.append(self._task(self._export))

    async def close(self) -> None:
        """Write the file for the last time, remove the one for Prometheus, and close the port."""
        self._stop()
        writing, withdrawing = self._task(self._write_last), self._task(self._withdraw)
        last: list[asyncio.Future[Any]] = [self._loading, writing, withdrawing]
        _, late = await asyncio.wait(last, timeout=WAIT_S)
        if writing in late:
            self._tell_of_file(_NO_ANSWER)
        if withdrawing in late:
            self._tell_of_discovery(_NO_ANSWER)
        for unfinished in late:
            unfinished.cancel()
        self._close_port()
        for thread in (self._thread, self._file_thread):
            thread.shutdown(cancel_futures=True)

    def _take(self, event: Event) -> None:
        if not isinstance(event, UNUSED):
            self._new.append(event)

    def _task(self, work: Callable[[], Awaitable[None]]) -> "asyncio.Task[None]":
        return self._loop.create_task(self._guard(work))

    async def _guard(self, work: Callable[[], Awaitable[None]]) -> None:
        try:
            await work()
        except Exception as error:
            self._end_by(error)

    async def _export(self) -> None:
        watched, self._page = await asyncio.shield(self._loading)
        if self._page is not None:
            Thread(target=self._serve, args=(self._page,), name="metrics page", daemon=True).start()
        if self._textfile is not None:
            self._tasks.append(self._task(partial(self._keep_file, watched)))
        while True:
            await asyncio.sleep(FOLD_S)
            await self._loop.run_in_executor(self._thread, watched.fold)

    async def _keep_file(self, watched: "MetricsState") -> None:
        from tfmemtop.engine.metrics.state import WRITE_S

        while True:
            late = self._loop.call_later(WAIT_S, self._tell_of_file, _NO_ANSWER)
            try:
                await self._write(watched, last=False)
            finally:
                late.cancel()
            await asyncio.sleep(WRITE_S)

    async def _write_last(self) -> None:
        if self._textfile is not None and not self._ended:
            watched, _ = await asyncio.shield(self._loading)
            await self._write(watched, last=True)

    async def _write(self, watched: "MetricsState", *, last: bool) -> None:
        try:
            await self._loop.run_in_executor(self._file_thread, self._write_now, watched, last)
        except OSError as error:
            self._tell_of_file(error.strerror or str(error))
        else:
            self._tell_of_file("")

    async def _withdraw(self) -> None:
        if self._published is not None:
            try:
                await self._loop.run_in_executor(self._thread, withdraw, *self._published)
            except OSError as error:
                self._tell_of_discovery(error.strerror or str(error))

    def _end_by(self, error: Exception) -> None:
        """End the export because of an unforeseen *error*. The file for Prometheus stays until the session ends."""
        if not self._ended:
            self._ended = True
            self._stop()
            self._close_port()
            self._fail(NoticeKind.EXPORTER_ENDED, facts_of(error))

    def _stop(self) -> None:
        self._stream.forget(self._take)
        for task in self._tasks:
            task.cancel()

    def _close_port(self) -> None:
        if self._page is not None:
            self._page.close()
        elif self._listener is not None:
            self._listener.close()

    def _tell_of_file(self, trouble: str) -> None:
        """Report *trouble* with the file, or that there is none any more. Each is reported once."""
        if trouble == self._trouble:
            return
        self._trouble = trouble
        if trouble:
            self._fail(NoticeKind.METRICS_FILE_FAILED, trouble)
        else:
            self._stream.withdraw(NoticeKind.METRICS_FILE_FAILED.value)

    def _tell_of_discovery(self, trouble: str) -> None:
        assert self._published is not None
        self._fail(NoticeKind.METRICS_SD_LEFT, f"{self._published[0]}: {trouble}")

    def _fail(self, kind: NoticeKind, detail: str) -> None:
        self.failed.append(Failed(kind, detail, None))
        self._stream.notice(kind.value, kind, detail=detail)

    # These run in threads:

    def _load(self) -> "tuple[MetricsState, Page | None]":
        from tfmemtop.engine.metrics.state import MetricsState  # imported here, as it takes a while

        watched = MetricsState(self._new)
        if self._listener is None:
            return watched, None
        from tfmemtop.engine.metrics.page import Page

        return watched, Page(self._listener, watched, self._failed)

    def _serve(self, page: "Page") -> None:
        try:
            page.serve()
        except Exception as error:
            self._failed(error)

    def _failed(self, error: Exception) -> None:
        with suppress(RuntimeError):  # the loop has ended, and with it the session
            self._loop.call_soon_threadsafe(self._end_by, error)

    def _write_now(self, watched: "MetricsState", last: bool) -> None:
        from tfmemtop.engine.metrics.families import text_of

        assert self._textfile is not None
        path, draft = self._textfile
        if watched.has_begun:
            replace(path, text_of(watched.look_for_file(last=last)), draft)


def open_exporter(stream: Stream, asked: Export, session: Session) -> Exporter:
    """Return the exporter that *asked* describes. It listens, and its files can be written, but are not there yet.

    Raises:
        StartError: the address cannot be used, or a file cannot be written.
    """
    listener = _listen(asked) if asked.port is not None else None
    published = textfile = None
    if asked.textfile is not None:
        textfile = asked.textfile, draft_of(asked.textfile)
        _check_folder(*textfile)
    if asked.discovery is not None and listener is not None:
        published = asked.discovery, entry(listener, session.host, session_labels(session))
        _check_folder(asked.discovery, draft_of(asked.discovery))
    return Exporter(stream, listener, textfile, published)


def _listen(asked: Export) -> socket.socket:
    assert asked.port is not None
    shown = f"[{asked.address}]" if ":" in asked.address else asked.address
    name = f"{shown}:{asked.port}"
    try:
        family, _, _, _, address = socket.getaddrinfo(
            asked.address, asked.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        return socket.create_server(address[:2], family=family, backlog=_BACKLOG)
    except OSError as error:
        raise _refused(Why.METRICS_ADDRESS, name, error) from None


def _check_folder(path: str, draft: str) -> None:
    """Check that *path* is a file or missing, and that its *draft* can be written beside it.

    Raises:
        StartError: *path* is something other than a file, or no file can be written in its folder.
    """
    try:
        if Path(path).is_dir():
            raise IsADirectoryError(errno.EISDIR, "")
        if not can_be_replaced(path):
            raise StartError(Unstarted(Why.METRICS_NO_FILE, path))
        replace(draft, b"", f"{draft}.")
        remove(draft)
    except OSError as error:
        raise _refused(Why.METRICS_FILE, path, error) from None


def _refused(why: Why, name: str, error: OSError) -> StartError:
    # Python adds its own words to some of the system's messages, so the message is taken from the system.
    known = error.errno is not None and error.errno in errno.errorcode
    said = os.strerror(error.errno or 0) if known else error.strerror or str(error)
    return StartError(Unstarted(why, name, said.lower()))
