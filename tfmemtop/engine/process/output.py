"""Drains the script's output at full speed, keeps it in a file, and publishes as much as screens can use."""

import asyncio
import codecs
import os
from pathlib import Path

from tfmemtop.engine.process.kept_output import KeptOutput
from tfmemtop.engine.process.terminal import PseudoTerminal
from tfmemtop.engine.stream.stream import Stream
from tfmemtop.events import Event, NoticeKind, Output, Run

TICK_S = 0.05
CHUNK = 16 * 1024
"""Bytes of one Output event."""

_BURST = 256 * 1024  # a larger burst is published as its newest end only
_READS_A_TURN = 64
_READ = 16 * 1024  # the Linux kernel returns a quarter of that at once
_LAST_TURNS = 4  # this reads more than a terminal holds; a process that a run left behind may write for ever
_INPUT = 64 * 1024


class OutputPump:
    """Reads the pty of a session and writes to it. Create it in the running loop."""

    def __init__(self, stream: Stream, terminal: PseudoTerminal, path: Path | None) -> None:
        self._loop = asyncio.get_running_loop()
        self._stream = stream
        self._master = terminal.master
        self._kept = KeptOutput(path or os.devnull)
        self._trouble = ""
        self._buffer = bytearray(_READ)
        self._view = memoryview(self._buffer)
        self._pending = bytearray()
        self._skipped = 0
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._tick: asyncio.TimerHandle | None = None
        self._input = bytearray()
        self._run = 1

    def begin(self) -> None:
        """Start reading."""
        self._loop.add_reader(self._master, self._readable)
        self._stream.listen(self._follow)

    def drain(self) -> None:
        """Read and publish all output that is there now, so that the end of a run is published after its output."""
        for _ in range(_LAST_TURNS):
            if not self._read():
                break
        if self._tick is not None:
            self._tick.cancel()
            self._tick = None
        while self._pending or self._skipped:
            self._publish()

    def write(self, text: str) -> None:
        """Type *text*. Input that the script does not read at once waits; if too much waits, *text* is dropped."""
        typed = text.encode()
        if len(self._input) + len(typed) > _INPUT:
            self._stream.notice("input", NoticeKind.INPUT_LOST)
            return
        if not self._input:
            self._loop.add_writer(self._master, self._writable)
        self._input += typed

    def close(self) -> None:
        """Publish the rest of the output and close the file."""
        self._stream.forget(self._follow)
        self._loop.remove_reader(self._master)
        self._loop.remove_writer(self._master)
        self.drain()
        self._kept.close()

    def _follow(self, event: Event) -> None:
        if isinstance(event, Run):
            self._run = event.run

    def _readable(self) -> None:
        if self._read() and self._tick is None:
            self._on_tick()

    def _read(self) -> bool:
        """Read the output that is there, up to a bound. Return false if there is none.

        The output is written to the file first, so that as little as possible is lost if the engine is killed.
        """
        news = bytearray()
        for _ in range(_READS_A_TURN):
            try:
                count = os.readv(self._master, (self._buffer,))
            except BlockingIOError:
                break
            news += self._view[:count]
        if news:
            self._keep(news)
            self._pending += news
            if len(self._pending) > _BURST:
                self._skip_to_newest()
        return bool(news)

    def _keep(self, news: bytearray) -> None:
        self._kept.write(news)
        if self._kept.trouble != self._trouble:
            self._trouble = self._kept.trouble
            if self._trouble:
                self._stream.notice("output_file", NoticeKind.OUTPUT_FILE_FAILED, detail=self._trouble)
            else:
                self._stream.withdraw("output_file")

    def _skip_to_newest(self) -> None:
        cut = len(self._pending) - CHUNK
        line = self._pending.find(b"\n", cut, cut + CHUNK // 4)
        if line >= 0:
            cut = line + 1
        while cut < len(self._pending) and self._pending[cut] & 0xC0 == 0x80:
            cut += 1  # not in the middle of a character
        del self._pending[:cut]
        self._skipped += cut
        self._decoder.reset()

    def _on_tick(self) -> None:
        self._tick = None
        if self._skipped and len(self._pending) > CHUNK:
            self._skip_to_newest()  # output was skipped already: a screen needs only the newest
        if self._pending:
            self._publish()
            self._tick = self._loop.call_later(TICK_S, self._on_tick)

    def _publish(self) -> None:
        text = self._decoder.decode(bytes(self._pending[:CHUNK]))
        del self._pending[:CHUNK]
        skipped, self._skipped = self._skipped, 0
        if text or skipped:
            self._stream.publish(Output(t=self._stream.now(), run=self._run, text=text, skipped=skipped))

    def _writable(self) -> None:
        try:
            written = os.write(self._master, self._input)
        except BlockingIOError:
            return
        del self._input[:written]
        if not self._input:
            self._loop.remove_writer(self._master)
