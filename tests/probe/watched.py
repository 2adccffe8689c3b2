"""A script with the probe in its process, and the windows of allocations that it records."""

import subprocess
from pathlib import Path
from typing import NamedTuple

from tests.forked import Forked
from tests.hooked import Event, Monitor
from tfmemtop.engine.sources.window_file import WindowFile, file_name, read_window
from tfmemtop.probe.cache import checksum_of


class Record(NamedTuple):
    """An allocation, or a free if its size is negative, with the names of its operation and shape."""

    at_ns: int
    address: int
    requested: int
    size: int
    in_use: int
    thread: int
    operation: str
    shape: str
    pool: int
    region: int
    dtype: int
    run: int


class RecordedWindow:
    """The content of a window's *file*, whose chunks and records are of one pool."""

    def __init__(self, file: WindowFile) -> None:
        self.pools, self.chunks, self.steps, self.calls = file.pools, file.chunks, file.steps, file.calls
        text = file.strings
        self.records = [Record(*row[:6], text[row[6]], text[row[7]], *row[8:]) for row in file.records]

    def before(self) -> dict[int, int]:
        """Return what was in use before the first record: size by address. Some records are older than the chunks."""
        standing = {chunk.address: chunk.size for chunk in self.chunks}
        assert sum(standing.values()) == self.pools[0].in_use
        for record in reversed([record for record in self.records if record.at_ns <= self.pools[0].at_ns]):
            if record.size > 0:
                del standing[record.address]
            else:
                standing[record.address] = -record.size
        return standing

    def replay(self) -> tuple[int, int]:
        """Return the bytes in use at the end and at the peak, computed only from the chunks and records.

        Raises:
            AssertionError: after a record, the bytes in use differ from those that the allocator reported.
        """
        standing = self.before()
        in_use = peak = sum(standing.values())
        for record in self.records:
            if record.size > 0:
                assert record.address not in standing
                standing[record.address] = record.size
            else:
                assert standing.pop(record.address) == -record.size
            in_use += record.size
            assert in_use == record.in_use
            peak = max(peak, in_use)
        return in_use, peak


class Watched:
    """A script with the hook and the probe in its process, and the windows that they report."""

    def __init__(
        self, monitor: Monitor, process: "Forked | subprocess.Popen[str]", library: Path, folder: Path
    ) -> None:
        self.monitor = monitor
        self.folder = folder
        self.process = process
        monitor.wait_for(lambda event: event["type"] == "hook" and event["pid"] == self.pid)
        self.say({"do": "load", "path": str(library), "checksum": checksum_of(library.read_bytes())})

    @property
    def pid(self) -> int:
        return self.process.pid

    def say(self, message: Event) -> None:
        self.monitor.say(self.pid, message)

    def until(self, opened: str, count: int = 1) -> Event:
        """Return the event of the *count*-th window that was opened for the reason *opened* and has ended.

        It may be the window of the start, which goes on, and was completed for that reason.
        """
        ended = 0

        def is_last(event: Event) -> bool:
            nonlocal ended
            ended += self._has_ended(event, opened)
            return ended == count

        return self.monitor.wait_for(is_last)

    def ended(self, opened: str) -> int:
        """Return the number of such windows."""
        return sum(self._has_ended(event, opened) for event in self.monitor.of("window"))

    def _has_ended(self, event: Event, opened: str) -> bool:
        if event["type"] != "window" or event["pid"] != self.pid:
            return False
        return event.get("reading") == opened or (event["opened"] == opened and bool(event["last"]))

    def ask(self) -> Event:
        before = self.ended("asked")
        self.say({"do": "holders"})
        return self.until("asked", before + 1)

    def read(self, window: Event) -> RecordedWindow:
        return RecordedWindow(read_window(self.folder, file_name(self.pid, window["window"]), window["bytes"]))

    def line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def go_on(self, how: str = "") -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(how + "\n")
        self.process.stdin.flush()


def inside(window: RecordedWindow, step: int) -> list[Record]:
    """Return the records of one of the window's steps."""
    begin, end = window.steps[step]
    return [record for record in window.records if begin <= record.at_ns <= end]
