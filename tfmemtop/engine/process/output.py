"""Publishes as much of the script's output as screens can use, and passes on what is typed.

The keeper reads the terminal and keeps the output in a file. The engine asks it for the newest output, at its own pace.
"""

import asyncio
import codecs
import errno
import os
import select
import time
from contextlib import suppress

from tfmemtop.engine.own_thread import WAIT_S
from tfmemtop.engine.process.keeper import BURST, CHUNK, Keeper
from tfmemtop.engine.process.pseudo_terminal import PseudoTerminal
from tfmemtop.engine.stream import Stream
from tfmemtop.events import Event, NoticeKind, Output, Run

TICK_S = 0.05

_LAST_TURNS = BURST // CHUNK + 4  # more than there can be; a process that a run left behind may write for ever
_LAST_S = 1.0  # for a keeper that is stopped
_INPUT = 64 * 1024


class OutputPump:
    """Reads the output of a session from its keeper, and writes to its terminal. Create it in the running loop."""

    def __init__(self, stream: Stream, terminal: PseudoTerminal, keeper: Keeper) -> None:
        self._loop = asyncio.get_running_loop()
        self._stream = stream
        self._master = terminal.master
        self._keeper = keeper
        self._trouble = ""
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._tick: asyncio.TimerHandle | None = None
        self._input = bytearray()
        self._run = 1

    def begin(self) -> None:
        """Start reading."""
        self._loop.add_reader(self._keeper.line, self._readable)
        self._stream.listen(self._follow)
        self._keeper.ask()

    def drain(self) -> None:
        """Read and publish all output that is there now, so that the end of a run is published after its output.

        By then, the output is in the file too, if the file system answers.
        """
        waiting, until = select.poll(), time.monotonic() + _LAST_S
        waiting.register(self._keeper.line, select.POLLIN)
        for _ in range(_LAST_TURNS):
            self._keeper.ask_for_all()
            if not waiting.poll(max(0.0, until - time.monotonic()) * 1000) or self._take():
                break
        self._keeper.ask()

    def write(self, text: str) -> None:
        """Type *text*. Input that the script does not read at once waits; if too much waits, *text* is dropped."""
        typed = text.encode()
        if len(self._input) + len(typed) > _INPUT:
            self._stream.notice("input", NoticeKind.INPUT_LOST)
            return
        if not self._input:
            self._loop.add_writer(self._master, self._writable)
        self._input += typed

    async def close(self) -> None:
        """Publish the rest of the output, and wait until it is in the file."""
        self._stream.forget(self._follow)
        self._loop.remove_writer(self._master)
        self._loop.remove_reader(self._keeper.line)
        if self._tick is not None:
            self._tick.cancel()
        self.drain()
        self._keeper.end()
        try:
            await asyncio.wait_for(self._keeper_has_ended(), WAIT_S)
        except asyncio.TimeoutError:
            self._tell_trouble(os.strerror(errno.ETIMEDOUT))

    async def _keeper_has_ended(self) -> None:
        with suppress(ConnectionError):
            while await self._loop.sock_recv(self._keeper.line, 1):
                pass

    def _follow(self, event: Event) -> None:
        if isinstance(event, Run):
            self._run = event.run

    def _readable(self) -> None:
        self._take()
        if self._tick is None:
            self._tick = self._loop.call_later(TICK_S, self._on_tick)

    def _on_tick(self) -> None:
        self._tick = None
        self._keeper.ask()

    def _take(self) -> bool:
        """Publish the next packet. Return whether it was the last of those that were asked for all."""
        try:
            packet = self._keeper.receive()
        except BlockingIOError:
            return False
        if packet is None:  # the keeper was killed, and with it the terminal
            self._loop.remove_reader(self._keeper.line)
            return True
        if packet.skipped:
            self._decoder.reset()
        text = self._decoder.decode(packet.data)
        if text or packet.skipped:
            self._stream.publish(Output(t=self._stream.now(), run=self._run, text=text, skipped=packet.skipped))
        self._tell_trouble(packet.trouble)
        return packet.all

    def _tell_trouble(self, trouble: str) -> None:
        if trouble != self._trouble:
            self._trouble = trouble
            if trouble:
                self._stream.notice("output_file", NoticeKind.OUTPUT_FILE_FAILED, detail=trouble)
            else:
                self._stream.withdraw("output_file")

    def _writable(self) -> None:
        try:
            written = os.write(self._master, self._input)
        except BlockingIOError:
            return
        del self._input[:written]
        if not self._input:
            self._loop.remove_writer(self._master)
