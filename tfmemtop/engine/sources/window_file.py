"""Reads a window file: a process's allocations of a short time, as its probe recorded them.

``probe/window.h`` describes the layout. An invalid file raises :class:`Damaged`, which is a :class:`ValueError`.
"""

import struct
from collections.abc import Iterator
from itertools import chain, starmap
from pathlib import Path
from typing import NamedTuple, TypeAlias

import msgspec

from tfmemtop.engine.sources.source import read_beginning
from tfmemtop.events import Damage
from tfmemtop.events.damage import Damaged
from tfmemtop.units import MIB

SUFFIX = ".window"

LARGEST = 64 * MIB
"""The most bytes of a file. The 200 000 events of the longest window take 13 MB."""
_POOLS, _CHUNKS, _STRINGS, _STEPS, _CALLS = 256, 250_000, 2**18, 2**16, 2**16  # at most
_RECORDS = 2**19  # at most; a first window has 200,000 allocations at most, and their frees
_TEXT = 512  # bytes kept of a string

_AT_ONCE = 2048  # records or chunks that are unpacked by one call, which holds Python's lock
_MOST = 2**62  # bytes; addresses are below twice that
_AWAY_NS = 24 * 3600 * 10**9
"""A window lasts an hour at most. No time in it is this far from its beginning, even if the machine's clock was set."""
_UPTIME_NS = 5 * 10**17  # 15 years
_HEADER, _SECTION = struct.Struct("<8sIIIIqq24x"), struct.Struct("<IIQ")
_MAGIC = b"TFMWIN2\0"
_POOL, _CHUNK = struct.Struct("<qqq8x"), struct.Struct("<QqqH6x")
_RECORD, _STEP, _CALL = struct.Struct("<qQqqqIIIHBBq"), struct.Struct("<qq"), struct.Struct("<qqI4x")
_PYTHON = struct.Struct("<qqII")


class PoolStart(NamedTuple):
    """A pool when its chunks were read, at ``at_ns`` nanoseconds of CLOCK_REALTIME. The sizes are in bytes."""

    in_use: int
    pool: int
    at_ns: int


class CallStart(NamedTuple):
    """A thread starts a run of a function or session, and waits for its end; ``at_ns`` is by CLOCK_REALTIME."""

    at_ns: int
    run: int
    thread: int


class PythonRun(NamedTuple):
    """A thread runs an operation that calls Python, by CLOCK_REALTIME; ``operation`` is a place in the strings."""

    begin_ns: int
    end_ns: int
    thread: int
    operation: int


class ChunkInUse(NamedTuple):
    """A chunk in use as the window began. Its ``size`` may be more than what was ``requested``. Both are in bytes."""

    address: int
    size: int
    requested: int
    pool: int


Record: TypeAlias = tuple[int, int, int, int, int, int, int, int, int, int, int, int]
"""An allocation, or a free if its size is negative.

The fields: time (ns of CLOCK_REALTIME), address, bytes requested, size in bytes, the allocator's bytes in use after it,
thread, operation and shape (places in the file's strings), pool, region (a number of the layout), type (a number of
TensorFlow), run (TensorFlow's number of the run of a function or session that allocates). It is a plain tuple so that
Python's garbage collector need not look at hundreds of thousands of them.
"""

AT_NS, SIZE, IN_USE, POOL = 0, 3, 4, 8
"""The places of these fields in a record."""


class WindowFile(msgspec.Struct):
    """The content of a file. ``records`` are in the order of the file. The first of ``strings`` is the empty one.

    ``realtime_ns`` and ``monotonic_ns`` are the same moment by two clocks. All other times are by CLOCK_REALTIME.
    """

    realtime_ns: int
    monotonic_ns: int
    pools: list[PoolStart] = msgspec.field(default_factory=list)
    chunks: list[ChunkInUse] = msgspec.field(default_factory=list)
    strings: list[str] = msgspec.field(default_factory=lambda: [""])
    records: list[Record] = msgspec.field(default_factory=list)
    steps: list[tuple[int, int]] = msgspec.field(
        default_factory=list
    )  # beginning and end of calls of the step's function
    calls: list[CallStart] = msgspec.field(default_factory=list)
    python: list[PythonRun] = msgspec.field(default_factory=list)

    def monotonic(self, realtime_ns: int) -> float:
        """Convert a time of CLOCK_REALTIME to seconds of the machine's monotonic clock."""
        return (realtime_ns - self.realtime_ns + self.monotonic_ns) / 1e9


def file_name(pid: int, window: int) -> str:
    """Return the name of the file of a process's window."""
    return f"{pid}.{window}{SUFFIX}"


def read_window(folder: Path, name: str, size: int) -> WindowFile:
    """Return the window in the first *size* bytes of a file.

    Raises:
        OSError: the file is not there, or cannot be read.
        Damaged: the file is damaged, cut short, or larger than any window.
    """
    if not _HEADER.size <= size <= LARGEST:
        raise Damaged(Damage.TOO_LARGE)
    data = read_beginning(folder, name, size)
    try:
        return _parsed(memoryview(data))
    except (struct.error, OverflowError):
        raise Damaged(Damage.CUT_SHORT) from None


def _parsed(data: memoryview) -> WindowFile:
    magic, header, record, chunk, pools, realtime_ns, monotonic_ns = _HEADER.unpack_from(data)
    if magic != _MAGIC:
        raise Damaged(Damage.OTHER_FORM)
    if (header, record, chunk) != (_HEADER.size, _RECORD.size, _CHUNK.size):
        raise Damaged(Damage.OTHER_FORM)
    if not 0 <= realtime_ns < _MOST or not 0 <= monotonic_ns < _UPTIME_NS:
        raise Damaged(Damage.OUT_OF_BOUNDS)
    found = WindowFile(realtime_ns, monotonic_ns)
    named = 0  # the highest number of a string that a record refers to
    for kind, count, payload in _sections(data[header:]):
        match kind:
            case 1:
                found.pools += starmap(PoolStart, _each(_POOL, payload, count, _POOLS - len(found.pools)))
            case 2:
                for part in _parts(_CHUNK, payload, count, _CHUNKS - len(found.chunks)):
                    found.chunks += starmap(ChunkInUse, part)
            case 3:
                _add_strings(found.strings, payload, count)
            case 4:
                for part in _parts(_RECORD, payload, count, _RECORDS - len(found.records)):
                    named = max(named, _check(part, pools, realtime_ns))
                    found.records += part  # type: ignore[arg-type]
            case 5:
                found.steps = [(begin, end) for begin, end in _each(_STEP, payload, count, _STEPS)]
            case 7:
                found.calls = [*starmap(CallStart, _each(_CALL, payload, count, _CALLS))]
            case 8:
                found.python += starmap(PythonRun, _each(_PYTHON, payload, count, _CALLS - len(found.python)))
    _check_whole(found, pools, max([named, *(run.operation for run in found.python)]))
    return found


def _sections(data: memoryview) -> Iterator[tuple[int, int, memoryview]]:
    """Yield kind, count and payload of each section."""
    at = 0
    while at < len(data):
        kind, count, size = _SECTION.unpack_from(data, at)
        at += _SECTION.size
        if size > len(data) - at or size % 8:
            raise Damaged(Damage.CUT_SHORT)
        yield kind, count, data[at : at + size]
        at += size


def _each(form: struct.Struct, payload: memoryview, count: int, most: int) -> Iterator[tuple[int, ...]]:
    if count > most:
        raise Damaged(Damage.TOO_LARGE)
    if not count * form.size <= len(payload) < count * form.size + 8:
        raise Damaged(Damage.CUT_SHORT)
    return form.iter_unpack(payload[: count * form.size])


def _parts(form: struct.Struct, payload: memoryview, count: int, most: int) -> Iterator[list[tuple[int, ...]]]:
    """Yield what :func:`_each` returns, in lists of limited length."""
    _each(form, payload, count, most)
    whole = payload[: count * form.size]
    for at in range(0, len(whole), _AT_ONCE * form.size):
        yield [*form.iter_unpack(whole[at : at + _AT_ONCE * form.size])]


def _add_strings(strings: list[str], payload: memoryview, count: int) -> None:
    if len(strings) + count > _STRINGS:
        raise Damaged(Damage.TOO_LARGE)
    at = 0
    for _ in range(count):
        length = int.from_bytes(payload[at : at + 4], "little")
        at += 4 + length
        if at > len(payload):
            raise Damaged(Damage.CUT_SHORT)
        strings.append(bytes(payload[at - length : at][:_TEXT]).decode(errors="replace"))


def _check(records: list[tuple[int, ...]], pools: int, began_ns: int) -> int:
    """Check that the figures of *records* are possible, and return the highest number of a string in them.

    The window began at *began_ns*.

    Raises:
        Damaged: a figure is out of bounds.
    """
    at_ns, address, requested, size, in_use, _, operation, shape, pool, *_ = zip(*records, strict=True)
    if max(address) >= 2 * _MOST or max(requested) >= _MOST or min(requested) < 0 or max(pool) >= pools:
        raise Damaged(Damage.OUT_OF_BOUNDS)
    if max(in_use) >= _MOST or min(in_use) < 0 or not -_MOST < min(size) <= max(size) < _MOST or 0 in size:
        raise Damaged(Damage.OUT_OF_BOUNDS)
    if not began_ns - _AWAY_NS < min(at_ns) <= max(at_ns) < began_ns + _AWAY_NS:
        raise Damaged(Damage.OUT_OF_BOUNDS)
    return int(max(*operation, *shape))


def _check_whole(found: WindowFile, pools: int, named: int) -> None:
    if len(found.pools) != pools or not pools:
        raise Damaged(Damage.INCOMPLETE)
    if any(not (0 <= start.in_use < _MOST and 0 <= start.pool < _MOST) for start in found.pools):
        raise Damaged(Damage.OUT_OF_BOUNDS)
    times = [
        *(start.at_ns for start in found.pools),
        *chain.from_iterable(found.steps),
        *(call.at_ns for call in found.calls),
        *chain.from_iterable((run.begin_ns, run.end_ns) for run in found.python),
    ]
    if any(abs(at_ns - found.realtime_ns) >= _AWAY_NS for at_ns in times):
        raise Damaged(Damage.OUT_OF_BOUNDS)
    for chunk in found.chunks:
        if not (chunk.address < 2 * _MOST and 0 < chunk.size < _MOST and 0 <= chunk.requested <= chunk.size):
            raise Damaged(Damage.OUT_OF_BOUNDS)
        if chunk.pool >= pools:
            raise Damaged(Damage.INCOMPLETE)
    if named >= len(found.strings):
        raise Damaged(Damage.INCOMPLETE)
