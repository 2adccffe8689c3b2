"""Writes the stream to a recording. A failure ends the recording, but never the run."""

import asyncio
import shutil

from tfmemtop.engine.stream.stream import Line, Stream, line_of
from tfmemtop.engine.stream.thinner import Thinner
from tfmemtop.events import Event, Level, NoticeKind
from tfmemtop.events.recording import RecordingError, Trouble, Writer
from tfmemtop.units import MIB

LEAST_FREE = 128 * MIB
"""Bytes of the disk that a recording leaves free if the user did not ask for it."""

MOST_CURVES = 48
"""With more curves than this in the backlog, a recording does not repeat the events so far.

To write them would delay the readings.
"""


class Recorder:
    """Passes every event, or what a :class:`Thinner` leaves of it, to a :class:`Writer`. A notice reports a failure.

    With a *thinner*, the user did not request this recording. It then stays small, and leaves room on the disk.
    """

    def __init__(self, stream: Stream, writer: Writer, thinner: Thinner | None = None) -> None:
        self._stream = stream
        self._writer = writer
        self._writer.so_far = self._so_far
        self._thinner = thinner
        self._task: asyncio.Task[None] | None = None
        self.trouble: RecordingError | None = None
        """Why the recording is incomplete, or ``None``."""

    def begin(self) -> None:
        """Write the events of the backlog, and every event from now on. Needs the running loop."""
        for event in self._stream.backlog.events():
            self._take(line_of(event))
        self._stream.listen_to_lines(self._take)
        self._task = asyncio.ensure_future(self._flush())

    def close(self) -> None:
        """Write the rest and close the file."""
        self._stream.forget(self._take)
        if self._task is not None:
            self._task.cancel()
        try:
            self._writer.close()
        except RecordingError as error:
            self._give_up(error)

    async def _flush(self) -> None:
        while self.trouble is None:
            await asyncio.sleep(self._writer.flush_s)
            try:
                self._writer.flush()
                if self._thinner is not None:
                    self._keep_small(self._thinner)
            except RecordingError as error:
                self._give_up(error)

    def _keep_small(self, thinner: Thinner) -> None:
        if not thinner.grown(self._writer.size):
            raise RecordingError(Trouble.TOO_LARGE, self._writer.path, count=thinner.limit >> 20)
        try:
            free = shutil.disk_usage(self._writer.path.parent).free
        except OSError:
            return  # if the disk cannot be written to, the next write reports it
        if free < LEAST_FREE:
            raise RecordingError(Trouble.DISK_FULL, self._writer.path, count=LEAST_FREE >> 20)

    def _so_far(self) -> list[Event] | None:
        backlog = self._stream.backlog
        return backlog.events() if backlog.curves <= MOST_CURVES else None

    def _take(self, line: Line) -> None:
        event, text = line
        kept = event if self._thinner is None else self._thinner(event)
        try:
            if kept is not None:
                self._writer.write(kept, text if kept is event else None)
        except RecordingError as error:
            self._give_up(error)

    def _give_up(self, error: RecordingError) -> None:
        if self.trouble is not None:
            return
        self.trouble = error
        self._stream.forget(self._take)
        try:
            self._writer.close()
        except RecordingError:
            pass  # the first error is reported below
        if self._thinner is None:
            self._stream.notice("recording", NoticeKind.RECORDING_ENDED, Level.ERROR, str(error))
        else:
            session_unrecorded(self._stream, error)


_UNRECORDED = {
    Trouble.TOO_LARGE: NoticeKind.SESSION_TOO_LARGE,
    Trouble.DISK_FULL: NoticeKind.SESSION_DISK_FULL,
    Trouble.TAKEN: NoticeKind.SESSION_FILE_TAKEN,
    Trouble.FOREIGN: NoticeKind.SESSION_FILE_TAKEN,
    Trouble.NO_FILE_TO_WRITE: NoticeKind.SESSION_FILE_TAKEN,
}


def session_unrecorded(stream: Stream, error: OSError | RecordingError) -> None:
    """Publish a notice that the session is no longer recorded, and why."""
    kind, detail, count = NoticeKind.SESSION_UNRECORDED, str(error), None
    if isinstance(error, RecordingError) and error.trouble in _UNRECORDED:
        kind, detail, count = _UNRECORDED[error.trouble], str(error.path), error.count
    stream.notice("recording", kind, Level.INFO, detail, count=count)
