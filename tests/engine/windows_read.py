"""What readers find in the events of a window's file, for tests; and windows with many allocations."""

import random
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

from tests.engine.window_files import Allocator, Chunk, told, training_step
from tfmemtop.engine.sources.window_events import Known, events_of
from tfmemtop.engine.sources.window_file import file_name, read_window
from tfmemtop.events import Holders, Holding, Trace, Window
from tfmemtop.events.allocations import WindowAllocations, unpack


class Span(NamedTuple):
    """An allocation of a window, as in :class:`WindowAllocations`."""

    holding: int
    address: int
    begin: int
    end: int


class Unpacked:
    """The contents of an event, as a reader unpacks them."""

    def __init__(self, event: Holders) -> None:
        self.event = event
        found = unpack(event.packed, WindowAllocations)
        self.names, self.holdings, self.times = found.names, found.kinds, found.times
        self.spans = [*map(Span, found.holdings, found.addresses, found.begins, found.ends)]

    def alive(self, at: int) -> list[Span]:
        """Return the allocations that are alive after event *at*."""
        return [span for span in self.spans if span.begin <= at and (span.end < 0 or span.end > at)]

    def total(self, at: int) -> int:
        """Return the bytes that are alive after event *at*."""
        return sum(self.holdings[span.holding].size for span in self.alive(at))

    def course(self) -> list[int]:
        """Return the bytes that are alive before the first event and after each event."""
        changes = [0] * (len(self.times) + 1)
        for span in self.spans:
            changes[span.begin + 1] += self.holdings[span.holding].size
            if span.end >= 0:
                changes[span.end + 1] -= self.holdings[span.holding].size
        return list(accumulate(changes))

    def name(self, span: Span) -> str | None:
        """Return the operation of an allocation."""
        operation = self.holdings[span.holding].operation
        return None if operation is None else self.names[operation]

    def holding(self, span: Span) -> Holding:
        return self.holdings[span.holding]


def made(folder: Path, data: bytes, known: Known | None = None, window: Window | None = None) -> list[Holders | Trace]:
    """Return the events of a file."""
    window = window or told(data)
    (folder / file_name(window.pid, window.window)).write_bytes(data)
    file = read_window(folder, file_name(window.pid, window.window), window.bytes)
    return [*events_of(window, file, known or Known(), lambda monotonic: monotonic - 5.0, t=9.0)]


def holders(folder: Path, data: bytes, known: Known | None = None, window: Window | None = None) -> Unpacked:
    """Return the contents of the only :class:`Holders` event of a file."""
    (event,) = (event for event in made(folder, data, known, window) if isinstance(event, Holders))
    return Unpacked(event)


def a_window(allocations: int = 60, seed: int = 0) -> bytes:
    """Return the file of a window with a step."""
    allocator = Allocator()
    allocator.allocate(5000, "weight")
    window = allocator.window().step()
    training_step(allocator, allocations, seed)
    window.end_step()
    return window.file()


def large(allocations: int, names: int = 10**9) -> bytes:
    """Return the file of a window with *allocations*, all different, many of which are alive at once."""
    allocator = Allocator()
    window = allocator.window()
    chance = random.Random(1)
    alive: list[Chunk] = []
    ids = {number: number + 1 for number in range(min(names, allocations))}
    allocator.strings += [f"operation {number:06} {chance.random()}" for number in ids]
    for number in range(allocations):
        alive.append(allocator.allocate(chance.randrange(1, 1 << 24)))
        row = list(allocator.records[-1])
        row[6] = ids[number % len(ids)]
        allocator.records[-1] = tuple(row)
        allocator.now_ns += chance.randrange(10**6)
        while chance.random() < 0.49 + 0.02 * (number > allocations / 2) and alive:
            allocator.free(alive.pop(chance.randrange(len(alive))))
    return window.file()
