"""Window files for tests, laid out as in ``probe/window.h``, of an allocator in which every byte is known."""

import random
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field

from tfmemtop.events import Closed, Opened, Window

BASE = 1 << 45
ZERO_NS = 1_700_000_000_000_000_000  # CLOCK_REALTIME at the moment when CLOCK_MONOTONIC is MONOTONIC_NS
MONOTONIC_NS = 5_000_000_000


@dataclass(slots=True)
class Chunk:
    """An allocation of the allocator below: its operation, and the events at which it began and ended."""

    address: int
    requested: int
    size: int
    operation: str
    began: int
    ended: int | None = None


@dataclass
class Allocator:
    """Hands out addresses and records all that it does. Its clock advances by 10 µs with each event."""

    now_ns: int = ZERO_NS
    in_use: int = 0
    alive: dict[int, Chunk] = field(default_factory=dict)
    records: list[tuple[int, ...]] = field(default_factory=list)
    strings: list[str] = field(default_factory=lambda: [""])
    made: list[Chunk] = field(default_factory=list)
    calls: list[tuple[int, int, int]] = field(default_factory=list)
    run: int = 0  # in which the next allocations are made
    figures: list[int] = field(default_factory=list)  # in use after each event
    _ids: dict[str, int] = field(default_factory=lambda: {"": 0})
    _free: dict[int, list[int]] = field(default_factory=dict)
    _next: int = BASE

    def allocate(
        self,
        requested: int,
        operation: str = "",
        shape: str = "",
        dtype: int = 1,
        thread: int = 7,
        region: int = 1,  # output
    ) -> Chunk:
        """Allocate, at the address that was freed last among those of the same size."""
        size = max(256, -(-requested // 256) * 256)
        free = self._free.get(size)
        if free:
            address = free.pop()
        else:
            address, self._next = self._next, self._next + size
        chunk = Chunk(address, requested, size, operation, len(self.figures))
        self.alive[address] = chunk
        self.made.append(chunk)
        self._record(chunk, size, thread, self._string(operation), self._string(shape), dtype, region)
        return chunk

    def call(self, run: int, thread: int = 7) -> None:
        """Let *thread* begin the *run* of a function. The next allocations are made in it, until *run* is changed."""
        self.calls.append((self.now_ns + 1, run, thread))
        self.run = run

    def free(self, chunk: Chunk, thread: int = 7) -> None:
        """Free *chunk*."""
        chunk.ended = len(self.figures)
        del self.alive[chunk.address]
        self._free.setdefault(chunk.size, []).append(chunk.address)
        self._record(chunk, -chunk.size, thread, 0, 0, 0, 0)

    def _string(self, text: str) -> int:
        number = self._ids.setdefault(text, len(self.strings))
        if number == len(self.strings):
            self.strings.append(text)
        return number

    def _record(
        self, chunk: Chunk, size: int, thread: int, operation: int, shape: int, dtype: int, region: int
    ) -> None:
        self.now_ns += 10_000
        self.in_use += size
        self.figures.append(self.in_use)
        figures = self.now_ns, chunk.address, chunk.requested, size, self.in_use, thread
        self.records.append((*figures, operation, shape, 0, region, dtype, self.run if size > 0 else 0))

    def window(self) -> "Recording":
        """Begin to record. The allocations that are alive now are the window's chunks."""
        self.records.clear()
        self.figures.clear()
        self.made.clear()
        self.calls.clear()
        return Recording(self)


class Recording:
    """A window that has begun."""

    def __init__(self, allocator: Allocator) -> None:
        self._allocator = allocator
        self.before = allocator.in_use
        self.at_ns = allocator.now_ns + 1
        self.chunks = [(chunk.address, chunk.size, chunk.requested) for chunk in allocator.alive.values()]
        self.steps: list[tuple[int, int]] = []

    def step(self) -> "Recording":
        """Begin a step. An earlier step that was not ended keeps 0 as its end."""
        self.steps.append((self._allocator.now_ns + 1, 0))
        return self

    def end_step(self) -> None:
        """End the step."""
        begin, _ = self.steps[-1]
        self.steps[-1] = begin, self._allocator.now_ns + 1

    def file(self, records: list[tuple[int, ...]] | None = None, pieces: int = 1) -> bytes:
        """Return the file, with the records until now or with *records*, split into *pieces* sections."""
        rows = self._allocator.records if records is None else records
        parts = [header(), section(1, 1, struct.pack("<qqqq", self.before, 1 << 30, self.at_ns, 0))]
        parts.append(
            section(2, len(self.chunks), b"".join(struct.pack("<QqqHHI", *row, 0, 0, 0) for row in self.chunks))
        )
        texts = [text.encode() for text in self._allocator.strings[1:]]
        parts.append(section(3, len(texts), b"".join(struct.pack("<I", len(text)) + text for text in texts)))
        length = max(1, -(-len(rows) // pieces))
        for at in range(0, len(rows), length):
            piece = rows[at : at + length]
            parts.append(section(4, len(piece), b"".join(struct.pack("<qQqqqIIIHBBq", *row) for row in piece)))
        parts.append(section(5, len(self.steps), b"".join(struct.pack("<qq", *step) for step in self.steps)))
        calls = self._allocator.calls
        parts.append(section(7, len(calls), b"".join(struct.pack("<qqII", *call, 0) for call in calls)))
        return b"".join(parts)


def header(pools: int = 1) -> bytes:
    """Return the header of a file."""
    return struct.pack("<8sIIIIqq24x", b"TFMWIN2\0", 64, 64, 32, pools, ZERO_NS, MONOTONIC_NS)


def section(kind: int, count: int, payload: bytes) -> bytes:
    """Return a section, padded to 8 bytes."""
    payload += bytes(-len(payload) % 8)
    return struct.pack("<IIQ", kind, count, len(payload)) + payload


def told(data: bytes, number: int = 1, opened: Opened = Opened.INTERVAL, **changes: object) -> Window:
    """Return what a hook reports of a file with *data*."""
    fields: dict[str, object] = {"pid": 7, "window": number, "opened": opened, "closed": Closed.STEP, "last": True}
    fields |= {"bytes": len(data), "pools": ["GPU:0"], "function": "train_step"}
    return Window(**(fields | changes))  # type: ignore[arg-type]


KINDS = (
    "convolution/convolution",
    "batch_norm/moments/SquaredDifference",
    "batch_norm/batchnorm/mul_1",
    "Relu",
    "BiasAdd",
)


def training_step(allocator: Allocator, allocations: int, seed: int = 0) -> None:
    """Make a step of a deep network, with names like Keras's.

    Half of *allocations* belong to the forward pass. Most of these are kept until the backward pass.
    """
    chance = random.Random(seed)
    kept: list[Chunk] = []
    names = _names()
    for number in range(allocations // 2):
        side, channels = 112 >> number * 10 // allocations, 64 << number * 10 // allocations
        size = 4 * 8 * side * side * channels
        kept.append(allocator.allocate(size, next(names), f"[8,{side},{side},{channels}]"))
        if chance.random() < 0.3:
            allocator.free(kept.pop(chance.randrange(len(kept))), thread=9)
        allocator.now_ns += chance.randrange(200_000)
    for number in range(allocations - allocations // 2):
        name = f"gradient_tape/{next(names)}/Conv2DBackpropFilter"
        channels = 2048 >> number * 10 // allocations
        gradient = allocator.allocate(4 * 9 * 64 * channels, name, f"[3,3,64,{channels}]", thread=9)
        allocator.now_ns += chance.randrange(200_000)
        if kept:
            allocator.free(kept.pop())
        allocator.free(gradient)
    for chunk in kept:
        allocator.free(chunk)


def _names() -> Iterator[str]:
    number = 0
    while True:
        block, part = divmod(number, 12)
        kind = KINDS[number % len(KINDS)]
        yield f"StatefulPartitionedCall/resnet50_1/conv{block // 16}_block{block % 16}_{part}_1/{kind}"
        number += 1
