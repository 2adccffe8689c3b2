"""A reader of window files, for tests. ``tfmemtop/probe/window.h`` describes their format."""

import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple


class Pool(NamedTuple):
    in_use: int
    pool: int
    at_ns: int
    rest: int


class Chunk(NamedTuple):
    address: int
    size: int
    requested: int
    pool: int


class Record(NamedTuple):
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


class Call(NamedTuple):
    at_ns: int
    run: int
    thread: int


@dataclass
class WindowFile:
    """The content of a file, in its order.

    ``strings`` are numbered from 0 on. Number 0 is the empty string and means that there is no string.
    """

    began_ns: int
    pools: list[Pool] = field(default_factory=list)
    chunks: list[Chunk] = field(default_factory=list)
    records: list[Record] = field(default_factory=list)
    steps: list[tuple[int, int]] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    strings: list[str] = field(default_factory=lambda: [""])
    lost: int = 0

    def replay(self, pool: int = 0) -> tuple[int, int]:
        """Return the bytes in use at the end and at the peak, computed only from the pool's chunks and records.

        Raises:
            AssertionError: after a record, the bytes in use differ from those that the allocator reported.
        """
        standing = {chunk.address: chunk.size for chunk in self.chunks if chunk.pool == pool}
        in_use = peak = sum(standing.values())
        assert in_use == self.pools[pool].in_use
        for record in self.records:
            if record.pool != pool:
                continue
            if record.size > 0:
                assert record.address not in standing
                standing[record.address] = record.size
            else:
                assert standing.pop(record.address) == -record.size
            in_use += record.size
            assert in_use == record.in_use
            peak = max(peak, in_use)
        return in_use, peak


def read_window(path: Path, size: int | None = None) -> WindowFile:
    """Parse the first *size* bytes of the file, or all of it."""
    content = path.read_bytes()[:size]
    magic, header, record_size, chunk_size, pools, began_ns, _ = struct.unpack_from("<8s4I2q", content)
    assert (magic, header, record_size, chunk_size) == (b"TFMWIN2\0", 64, 64, 32)
    found = WindowFile(began_ns)
    at = header
    while at < len(content):
        kind, count, length = struct.unpack_from("<IIQ", content, at)
        payload = content[at + 16 : at + 16 + length]
        assert len(payload) == length and length % 8 == 0
        at += 16 + length
        if kind == 1:
            found.pools += map(Pool._make, struct.iter_unpack("<4q", payload))
            assert len(found.pools) == count == pools
        elif kind == 2:
            found.chunks += (Chunk(*row[:4]) for row in struct.iter_unpack("<QqqHHI", payload))
        elif kind == 3:
            place = 0
            for _ in range(count):
                (size,) = struct.unpack_from("<I", payload, place)
                found.strings.append(payload[place + 4 : place + 4 + size].decode())
                place += 4 + size
        elif kind == 4:
            for row in struct.iter_unpack("<qQqqqIIIHBBq", payload):
                names = (found.strings[row[6]], found.strings[row[7]])
                found.records.append(Record._make((*row[:6], *names, *row[8:])))
        elif kind == 5:
            found.steps = [*struct.iter_unpack("<qq", payload)]
        elif kind == 7:
            found.calls = [Call(*row[:3]) for row in struct.iter_unpack("<qqII", payload)]
        else:
            assert kind == 6 and not payload
            found.lost += count
    return found
