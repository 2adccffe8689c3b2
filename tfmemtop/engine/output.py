"""The script's output: drained at full speed, kept in a file, told to screens as far as they can use it."""

import asyncio
import codecs
import os
from pathlib import Path

from tfmemtop.engine.kept_output import KeptOutput
from tfmemtop.engine.stream import Stream
from tfmemtop.engine.terminal import PseudoTerminal
from tfmemtop.events import Output

TICK_S = 0.05
CHUNK = 16 * 1024
"""Bytes of one Output event."""

_BURST = 256 * 1024  # up to here a burst is told in full, a little later; beyond, only its newest end
_READS_A_TURN = 64
_READ = 16 * 1024  # the kernel hands out a quarter of that at once
_LAST_TURNS = 4  # more than a terminal holds; what a run left behind may go on writing for ever
_INPUT = 64 * 1024


class OutputPump:
    """Reads the pty of a session and writes to it."""

    def __init__(self, stream: Stream, terminal: PseudoTerminal, path: Path | None) -> None:
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
        self.run = 1

    def begin(self) -> None:
        """Start reading; needs the running loop."""
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._master, self._readable)

    def drain(self) -> None:
        """Read and publish all that is there now, so that the end of a run comes after its output."""
        for _ in range(_LAST_TURNS):
            if not self._read():
                break
        if self._tick is not None:
            self._tick.cancel()
            self._tick = None
        while self._pending or self._skipped:
            self._publish()

    def write(self, text: str) -> None:
        """Type *text*; what the script does not take at once waits, up to a bound."""
        typed = text.encode()
        if len(self._input) + len(typed) > _INPUT:
            self._stream.notice("input", "warning", "the script does not read its input: what was typed is lost")
            return
        if not self._input:
            self._loop.add_writer(self._master, self._writable)
        self._input += typed

    def close(self) -> None:
        """Publish the rest and close the file."""
        self._loop.remove_reader(self._master)
        self._loop.remove_writer(self._master)
        self.drain()
        self._kept.close()

    def _readable(self) -> None:
        if self._read() and self._tick is None:
            self._on_tick()

    def _read(self) -> bool:
        """Take in what is there, up to a bound; false if that is nothing.

        It is in the file before anything else is done, so that a kill of the engine loses the least.
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
            text = f"the script's output is not kept in a file: {self._trouble}" if self._trouble else ""
            remedy = "make room on the disk; the screen still shows it" if self._trouble else ""
            self._stream.notice("output_file", "warning", text, remedy)

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
            self._skip_to_newest()  # behind already: a screen has no use for what comes before the newest
        if self._pending:
            self._publish()
            self._tick = self._loop.call_later(TICK_S, self._on_tick)

    def _publish(self) -> None:
        text = self._decoder.decode(bytes(self._pending[:CHUNK]))
        del self._pending[:CHUNK]
        skipped, self._skipped = self._skipped, 0
        if text or skipped:
            self._stream.publish(Output(t=0.0, run=self.run, text=text, skipped=skipped))

    def _writable(self) -> None:
        try:
            written = os.write(self._master, self._input)
        except BlockingIOError:
            return
        del self._input[:written]
        if not self._input:
            self._loop.remove_writer(self._master)
