"""The lines that the probe keeps become events. A file of nonsense does no harm."""

import asyncio
import time
from pathlib import Path

import pytest

from tests.engines import eventually
from tests.patience import PATIENCE_S
from tfmemtop.engine.sources.allocator_lines import LARGEST, AllocatorLines
from tfmemtop.engine.stream import Stream
from tfmemtop.events import AllocatorLine, Event, HookEnd, HookEnding, Probe, ProbeState, decode_event, encode

LINE = b"Allocator (bfc) ran out of memory trying to allocate 632.81MiB (rounded to 663552000)requested by op "
SCRATCH = b"Allocator (bfc) ran out of memory trying to allocate 2.25GiB with freed_by_count=0. "
SCRATCH += b"The caller indicates that this is not a failure, but this may mean that there could be performance gains."


class Desk:
    """A folder with the file of a process, and the events that are published of it."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "7.lines"
        self.stream = Stream()
        self.events: list[Event] = []
        self.stream.listen(self.events.append)
        self.lines = AllocatorLines(self.stream, folder)
        self.lines.begin()
        self.stream.publish(Probe(t=0.0, pid=7, state=ProbeState.LOADED))

    def append(self, text: bytes) -> list[AllocatorLine]:
        """Append *text* to the file, and return the events that are published of it."""
        with self.file.open("ab") as file:
            file.write(text)
        return self.read()

    def read(self) -> list[AllocatorLine]:
        """Return the events that are published now."""
        before = len(self.events)
        self.lines.drain()
        return [event for event in self.events[before:] if isinstance(event, AllocatorLine)]


@pytest.fixture
async def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


async def test_each_line_is_published_once_it_is_whole(desk: Desk) -> None:
    assert not desk.read()
    now = b"%d " % time.monotonic_ns()
    (named,) = desk.append(now + LINE + b"AddV2\n" + now + LINE)
    assert (named.pid, named.allocator, named.size, named.operation) == (7, "bfc", 663552000, "AddV2")
    assert 0 <= named.t - named.at < PATIENCE_S and decode_event(encode(named)) == named
    (nameless,) = desk.append(b"\n")
    assert (nameless.size, nameless.operation, nameless.harmless) == (663552000, None, False)
    (scratch,) = desk.append(now + SCRATCH + b"\n")
    assert (scratch.size, scratch.harmless) == (int(2.25 * 2**30), True)
    assert not desk.read()


async def test_the_file_is_read_while_the_process_goes_on_and_deleted_at_its_end(desk: Desk) -> None:
    heard = asyncio.Event()
    desk.stream.listen(lambda event: heard.set() if isinstance(event, AllocatorLine) else None)
    desk.file.write_bytes(b"1 " + LINE + b"AddV2\n")
    await asyncio.wait_for(heard.wait(), PATIENCE_S)
    with desk.file.open("ab") as file:
        file.write(b"1 " + LINE + b"MatMul\n")
    desk.stream.publish(HookEnd(t=0.0, pid=7, reason=HookEnding.LOST))
    await eventually(lambda: not desk.file.exists())
    assert [event.operation for event in desk.events if isinstance(event, AllocatorLine)] == ["AddV2", "MatMul"]


async def test_what_else_may_be_in_the_file_does_no_harm(desk: Desk) -> None:
    assert not desk.append(b"\xff\n\n1\n" + b"9" * 99 + b" " + LINE + b"\n" + LINE + b"\nx" * 9 + b"\n")
    assert desk.append(b"9" * 18 + b" " + LINE + b"\xff\n")
    assert not desk.append(b"1 " + b"x" * LARGEST + b"\n") and not desk.append(b"1 " + LINE + b"\n")
