"""Reads the lines about allocators that TensorFlow logs, from the files in which the probe keeps them."""

import asyncio
import re
from contextlib import suppress
from pathlib import Path

from tfmemtop.engine.sources.source import Source, read_from
from tfmemtop.engine.stream import Stream
from tfmemtop.events import AllocatorLine, Event, HookEnd, Probe, ProbeState
from tfmemtop.events.damage import Damaged
from tfmemtop.tensorflow_text import lines_of_exhaustion
from tfmemtop.units import MIB

SUFFIX = ".lines"
PACE_S = 0.5
LARGEST = MIB
"""The most bytes of a process's file that are read. The probe writes no more."""

_LINE = re.compile(r"(\d{1,18}) (.+)")  # the time in ns of CLOCK_MONOTONIC, and the text


class AllocatorLines(Source):
    """Publishes the lines in the files in *folder*. Create it in the running event loop."""

    def __init__(self, stream: Stream, folder: Path) -> None:
        super().__init__(stream)
        self._folder = folder
        self._done: dict[int, int] = {}  # by process with the probe: the bytes that have been read

    def drain(self) -> None:
        """Publish the lines that are in the files, so that the end of a run is published after them."""
        for pid in self._done:
            self._read(pid)

    def on_event(self, event: Event) -> None:
        """Handle an event of the stream."""
        if isinstance(event, Probe) and event.state is ProbeState.LOADED:
            self._done.setdefault(event.pid, 0)
            if not self._tasks:
                self._keep_doing(self._read_on())
        elif isinstance(event, HookEnd):
            # Later: what is published here would reach some readers before this event.
            asyncio.get_running_loop().call_soon(self._end, event.pid)

    async def _read_on(self) -> None:
        while True:
            await asyncio.sleep(PACE_S)
            self.drain()

    def _end(self, pid: int) -> None:
        if pid in self._done:
            self._read(pid)
            del self._done[pid]
            with suppress(OSError):
                self._path(pid).unlink(missing_ok=True)

    def _path(self, pid: int) -> Path:
        return self._folder / f"{pid}{SUFFIX}"

    def _read(self, pid: int) -> None:
        done = self._done[pid]
        try:
            data = read_from(self._folder, self._path(pid).name, done, LARGEST - done)
        except (OSError, Damaged):
            return  # most processes have no such file
        whole = data[: data.rfind(b"\n") + 1]
        self._done[pid] += len(whole)
        for line in whole.decode("utf-8", "replace").split("\n"):
            if found := _LINE.fullmatch(line):
                at = self._stream.since_start(int(found[1]) / 1e9)
                for told in lines_of_exhaustion("", found[2] + "\n"):
                    self._stream.publish(AllocatorLine(t=self._stream.now(), pid=pid, at=at, **told._asdict()))
