"""The script's output: drained at full speed, kept whole in a file, shown as far as a screen can use it."""

import asyncio
import codecs
import os
from pathlib import Path

from tfmemtop.engine.stream import Stream
from tfmemtop.engine.terminal import PseudoTerminal
from tfmemtop.events import Output

TICK_S = 0.05
CHUNK = 16 * 1024
"""Bytes of one Output event."""

_BURST = 256 * 1024  # up to here a burst is told in full, a little later; beyond, only its newest end
_READS_A_TURN = 64
_READ = 16 * 1024  # the kernel hands out a quarter of that at once
_INPUT = 64 * 1024


class OutputPump:
    """Reads the pty of a session and writes to it."""

    def __init__(self, stream: Stream, terminal: PseudoTerminal, path: Path) -> None:
        self._stream = stream
        self._master = terminal.master
        self._path: Path | None = path  # None once it has been given up
        self._file: int | None = None
        self._unwritten = bytearray()
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
        while self._read():
            pass
        if self._tick is not None:
            self._tick.cancel()
            self._tick = None
        while self._pending or self._skipped:
            self._publish()
        self._flush_file()

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
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _readable(self) -> None:
        for _ in range(_READS_A_TURN):
            if not self._read():
                break
        if self._tick is None:
            self._on_tick()

    def _read(self) -> bool:
        try:
            count = os.readv(self._master, (self._buffer,))
        except BlockingIOError:
            return False
        data = self._view[:count]
        if self._path is not None:
            self._unwritten += data
            if len(self._unwritten) > _BURST:
                self._flush_file()
        self._pending += data
        if len(self._pending) > _BURST:
            self._skip_to_newest()
        return True

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
        self._flush_file()
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

    def _flush_file(self) -> None:
        if not self._unwritten or self._path is None:
            return
        try:
            if self._file is None:
                # Not before there is something to keep: who only watches leaves no empty file.
                self._file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
            while self._unwritten:
                del self._unwritten[: os.write(self._file, self._unwritten)]
        except OSError as error:
            self._give_up_file(error)

    def _give_up_file(self, error: OSError) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None
        self._path = None
        self._unwritten.clear()
        self._stream.notice(
            "output_file",
            "warning",
            f"the script's output is no longer kept in a file: {error.strerror or error}",
            "make room on the disk; the screen still shows it",
        )
