"""Writes the stream to a recording. A failure ends the recording, but never the run."""

import asyncio
import errno
import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from tfmemtop.engine.own_thread import WAIT_S, OwnThread
from tfmemtop.engine.stream.line_queue import LineQueue
from tfmemtop.engine.stream.stream import Line, Stream, line_of
from tfmemtop.engine.stream.thinner import Thinner
from tfmemtop.events import Event, Level, NoticeKind
from tfmemtop.events.recording import RecordingError, Trouble, Writer
from tfmemtop.units import MIB

_MOST = 16 * MIB
"""Bytes of readings, and of output, that may wait for the file system before the oldest are left out."""

LEAST_FREE = 128 * MIB
"""Bytes of the disk that a recording leaves free if the user did not ask for it."""


class Recorder:
    """Passes every event, or what a :class:`Thinner` leaves of it, to a :class:`Writer`. A notice reports a failure.

    With a *thinner*, the user did not request this recording. It then stays small, and leaves room on the disk.

    The writer is opened and used in a thread, since its file system may not answer. The lines wait in a queue.
    """

    def __init__(self, stream: Stream, opened: Callable[[], Writer], thinner: Thinner | None = None) -> None:
        """*opened* returns the writer; it may raise a :class:`RecordingError`."""
        self._stream = stream
        self._opened = opened
        self._writer: Writer | None = None
        self._thinner = thinner
        self._queue = LineQueue(stream, _MOST, _MOST)
        self._thread = OwnThread("recording")
        self._task: asyncio.Task[None] | None = None
        self._closing = asyncio.Event()
        self.trouble: RecordingError | None = None
        """Why the recording is incomplete, or ``None``."""

    def begin(self) -> None:
        """Write the events of the backlog, and every event from now on. Needs the running loop."""
        self._loop = asyncio.get_running_loop()
        for event in self._stream.backlog.events():
            self._take(line_of(event))
        self._stream.listen_to_lines(self._take)
        self._task = self._loop.create_task(self._write())

    async def close(self) -> None:
        """Write the rest and close the file. A file system that does not answer is waited for a few seconds."""
        self._stream.forget(self._take)
        self._closing.set()
        if self._task is not None:
            _, late = await asyncio.wait([self._task], timeout=WAIT_S)
            for unfinished in late:
                unfinished.cancel()
                self._give_up_late()

    async def _write(self) -> None:
        try:
            opened = self._loop.run_in_executor(self._thread, self._opened)
        except RuntimeError as error:  # no more threads are allowed
            self._give_up(RecordingError(Trouble.STOPPED, "its file", str(error)))
            return
        try:
            self._writer = writer = await opened
            last = False
            while not last:
                with suppress(asyncio.TimeoutError):
                    await asyncio.wait_for(self._closing.wait(), writer.flush_s)
                last = self._closing.is_set()
                lines = self._queue.take()
                # Here and not in the thread, so that it is known as of the last of these lines.
                known = self._stream.backlog.events() if writer.full else None
                await self._loop.run_in_executor(self._thread, self._put, writer, lines, known)
            await self._loop.run_in_executor(self._thread, writer.close)
        except RecordingError as error:
            self._give_up(error)
            if self._writer is not None:
                with suppress(RecordingError):  # the first error is reported
                    await self._loop.run_in_executor(self._thread, self._writer.close)

    def _put(self, writer: Writer, lines: list[Line], known: list[Event] | None) -> None:
        for event, line in lines:
            writer.write(event, line)
        writer.flush()
        if known is not None:
            writer.begin_chunk(known)
        if self._thinner is not None:
            self._keep_small(writer, self._thinner)

    def _keep_small(self, writer: Writer, thinner: Thinner) -> None:
        if not thinner.grown(writer.size):
            raise RecordingError(Trouble.TOO_LARGE, writer.path, count=thinner.limit >> 20)
        try:
            free = shutil.disk_usage(writer.path.parent).free
        except OSError:
            return  # if the disk cannot be written to, the next write reports it
        if free < LEAST_FREE:
            raise RecordingError(Trouble.DISK_FULL, writer.path, count=LEAST_FREE >> 20)

    def _take(self, line: Line) -> None:
        kept = line.event if self._thinner is None else self._thinner(line.event)
        if kept is not None:
            self._queue.push(line if kept is line.event else line_of(kept))
        if self._queue.overflows:
            self._give_up_late()

    def _give_up_late(self) -> None:
        """Give up because the file system does not answer."""
        path: Path | str = "its file"
        if self._writer is not None:
            self._writer.abandon()
            path = self._writer.path
        self._give_up(RecordingError(Trouble.STOPPED, path, os.strerror(errno.ETIMEDOUT)))

    def _give_up(self, error: RecordingError) -> None:
        if self.trouble is not None:
            return
        self.trouble = error
        self._stream.forget(self._take)
        level = Level.ERROR if self._thinner is None else Level.INFO
        self._stream.notice("recording", NoticeKind.RECORDING_ENDED, level, error.text)
