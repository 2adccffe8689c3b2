"""Writes the stream to a recording; that this fails never stops a run."""

import asyncio

from tfmemtop.engine.stream import Stream
from tfmemtop.events import AnyEvent
from tfmemtop.recording import RecordingError, Writer

FLUSH_S = 0.2


class Recorder:
    """Hands every event to a :class:`Writer` until that fails, and then says so once."""

    def __init__(self, stream: Stream, writer: Writer) -> None:
        self._stream = stream
        self._writer = writer
        self._task: asyncio.Task[None] | None = None
        self.trouble: str | None = None
        """Why the recording is not complete."""

    def begin(self) -> None:
        """Write what has happened, and from now on what happens; needs the running loop."""
        for event in self._stream.backlog.events():
            self._take(event)
        self._stream.listen(self._take)
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
            await asyncio.sleep(FLUSH_S)
            try:
                self._writer.flush()
            except RecordingError as error:
                self._give_up(error)

    def _take(self, event: AnyEvent) -> None:
        try:
            self._writer.write(event)
        except RecordingError as error:
            self._give_up(error)

    def _give_up(self, error: RecordingError) -> None:
        if self.trouble is None:
            self.trouble = str(error)
            self._stream.forget(self._take)
            self._stream.notice("recording", "error", f"the recording has ended: {error}", "the run goes on")
