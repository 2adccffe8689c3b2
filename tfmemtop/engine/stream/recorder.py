"""Writes the stream to a recording. A failure ends the recording, but never the run.

The recording that is kept of every session has almost everything while it is small. Readings without anything new are
left out. Once the recording has half of the size that it may have, the time between two recorded readings of one thing
grows step by step, and output is cut short. Readings that are higher than any before are still recorded. The next
recorded reading of an allocator has the highest use of those left out before it as its ``high``. At its limit, the
recording ends.
"""

import asyncio
import errno
import os
import shutil
from collections.abc import Callable, Hashable
from contextlib import suppress
from pathlib import Path

import msgspec

from tfmemtop.engine.own_thread import WAIT_S, OwnThread
from tfmemtop.engine.stream import Line, LineQueue, Stream, line_of
from tfmemtop.events import Allocator, Event, Level, NoticeKind, Output
from tfmemtop.events.base import Curve
from tfmemtop.events.recording import RecordingError, Writer
from tfmemtop.events.recording.lines import stopped
from tfmemtop.units import MIB

LIMIT = 64 * MIB
"""Bytes that a recording may have: more than a day of a script on one GPU with ten readings a second."""

SAME_AGAIN_S = 10.0
"""A reading that equals the one before is recorded only after this many seconds."""

_FIRST_SPACING_S, _WIDER = 1.0, 4.0
_OUTPUT_BURST = 256 * 1024
_OUTPUT_A_SECOND = 4096
_KEYS = 10_000


class Thinner:
    """A callable that takes each event and returns what is to be recorded of it."""

    def __init__(self, limit: int = LIMIT) -> None:
        self.limit = limit
        self.spacing_s = 0.0
        """Least time between two recorded readings of one thing."""
        self._widen_at = limit // 2
        self._taken: dict[Hashable, Event] = {}
        self._highest: dict[Hashable, int] = {}
        self._left_out: dict[Hashable, int] = {}
        """The highest use, in bytes, of the readings of an allocator that were left out since the last recorded one."""
        self._output = _Budget()

    def grown(self, size: int) -> bool:
        """Take the present *size* of the recording in bytes. Return whether it may grow further."""
        while size >= self._widen_at and self._widen_at < self.limit - 1:
            self.spacing_s = self.spacing_s * _WIDER or _FIRST_SPACING_S
            self._widen_at = self.limit - (self.limit - self._widen_at) // 2
        return size < self.limit

    def __call__(self, event: Event) -> Event | None:
        """Return what to record of *event*; ``None`` if nothing."""
        if isinstance(event, Output):
            return self._output.take(event, 1 + self.spacing_s)
        if not event.droppable:
            return event
        key = type(event), event.keep.key(event)
        if self._tells_news(key, event):
            return self._with_high(key, event) if isinstance(event, Allocator) else event
        if isinstance(event, Allocator):
            self._left_out[key] = max(_use(event), self._left_out.get(key, 0))
        return None

    def _with_high(self, key: Hashable, event: Allocator) -> Allocator:
        high = self._left_out.pop(key, 0)
        return msgspec.structs.replace(event, high=high) if high > _use(event) else event

    def _tells_news(self, key: Hashable, event: Event) -> bool:
        last, rises = self._taken.get(key), self._rises(key, event)
        if last is not None and not rises:
            age = event.t - last.t
            if age < self.spacing_s or (age < SAME_AGAIN_S and msgspec.structs.replace(event, t=last.t) == last):
                return False
        if len(self._taken) > _KEYS:
            self._taken.clear()
            self._highest.clear()
            self._left_out.clear()
        self._taken[key] = event
        return True

    def _rises(self, key: Hashable, event: Event) -> bool:
        """Return whether *event* is a reading of a curve and higher than all before it."""
        if not isinstance(event.keep, Curve):
            return False
        level = event.keep.height(event)
        if level <= self._highest.get(key, -1):
            return False
        self._highest[key] = level
        return True


def _use(reading: Allocator) -> int:
    """Return the most bytes in use since the reading before, as far as it is known."""
    return max(reading.in_use or 0, reading.high or 0)


class _Budget:
    """Limits the output that is recorded: a first amount at once, and then an amount for each second."""

    def __init__(self) -> None:
        self._left = float(_OUTPUT_BURST)
        self._t = 0.0
        self._skipped = 0  # bytes left out since the last output that was recorded

    def take(self, event: Output, thrift: float) -> Output | None:
        """Return *event* with the number of bytes left out before it; ``None`` if it must be left out too.

        A larger *thrift* (1 or more) allows less output for each second.
        """
        self._left = min(self._left + (event.t - self._t) * _OUTPUT_A_SECOND / thrift, _OUTPUT_BURST)
        self._t = event.t
        size = len(event.text.encode(errors="replace"))
        if size > self._left:
            self._skipped += size + event.skipped
            return None
        self._left -= size
        skipped, self._skipped = self._skipped, 0
        return msgspec.structs.replace(event, skipped=event.skipped + skipped) if skipped else event


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
            self._give_up(stopped("its file", str(error)))
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
                    await self._loop.run_in_executor(self._thread, self._end, self._writer, self._queue.take())

    def _end(self, writer: Writer, lines: list[Line]) -> None:
        """Write the last *lines*, which say why there are no more, if the disk takes them."""
        for event, line in lines:
            writer.write(event, line)
        writer.close()

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
            grown = f"it has grown to {thinner.limit >> 20} MiB"
            raise stopped(writer.path, f"{grown}; --record FILE has no limit")
        try:
            free = shutil.disk_usage(writer.path.parent).free
        except OSError:
            return  # if the disk cannot be written to, the next write reports it
        if free < LEAST_FREE:
            raise stopped(writer.path, f"less than {LEAST_FREE >> 20} MiB are free on the disk")

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
        self._give_up(stopped(path, os.strerror(errno.ETIMEDOUT)))

    def _give_up(self, error: RecordingError) -> None:
        if self.trouble is not None:
            return
        self.trouble = error
        level = Level.ERROR if self._thinner is None else Level.WARNING
        self._stream.notice("recording", NoticeKind.RECORDING_ENDED, level, str(error))
        self._stream.forget(self._take)
