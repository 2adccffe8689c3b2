"""Packs and unpacks the courses of windows and traces: many small whole numbers, and lists of names.

A number takes as few bytes as it needs: seven bits a byte, the lowest first; the eighth bit is set if more bytes
follow. All packed data is compressed by zlib; ``b""`` stands for an empty list. The size of unpacked data is limited
too, so that a few bytes cannot fill the memory. What cannot be unpacked raises :class:`Damaged`, and nothing else.
"""

import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Annotated, TypeVar

import msgspec

from tfmemtop.bounds import Few, Name, Size, Some, Text
from tfmemtop.events.damage import Damage, Damaged
from tfmemtop.events.holders import Holding

T = TypeVar("T")

FOREVER = -1
"""The end of an allocation that is not freed in the window or trace."""

MOST_EVENTS = 50_000
"""The most events of a window that one event of the stream describes."""

_LARGEST = 2**22  # bytes of what was packed
_BITS = 63  # of a number
_LEVEL = 9  # the best compression: at a window a minute, the windows of a day take much space


@dataclass(frozen=True, slots=True)
class Span:
    """An allocation of a window: in use from after event ``begin`` until event ``end``.

    ``begin`` is -1 if it was in use before the window. ``end`` is :data:`FOREVER` if it is not freed in the window.
    """

    holding: int  # its index in the event's list of holdings
    address: int
    begin: int
    end: int


@dataclass(frozen=True, slots=True)
class Allocated:
    """An event of a trace: ``thread`` allocates ``requested`` bytes for an operation.

    ``operation`` is the index of the operation's name, ``None`` if TensorFlow gave no name. Allocations are numbered in
    their order, from 0 on.
    """

    thread: int
    requested: int
    operation: int | None


@dataclass(frozen=True, slots=True)
class Freed:
    """An event of a trace: ``thread`` frees the allocation with the number ``allocation``."""

    thread: int
    allocation: int


def numbers(packed: bytes) -> Iterator[int]:
    """Yield the numbers that :func:`pack` packed.

    Raises:
        Damaged: the last number is cut off, a number is longer than nine bytes (63 bits), or there are too many.
    """
    number = shift = 0
    for byte in _unpacked(packed):
        number |= (byte & 0x7F) << shift
        if byte & 0x80:
            shift += 7
            if shift >= _BITS:
                raise Damaged(Damage.OUT_OF_BOUNDS)
        else:
            yield number
            number = shift = 0
    if shift:
        raise Damaged(Damage.CUT_SHORT)


def pack(values: Iterable[int]) -> bytes:
    """Return *values*, none of them negative, as bytes."""
    packed = bytearray()
    for value in values:
        while value > 0x7F:
            packed.append(value & 0x7F | 0x80)
            value >>= 7
        packed.append(value)
    return zlib.compress(packed, _LEVEL) if packed else b""


def pack_names(names: list[str]) -> bytes:
    """Return *names* as bytes, in their order."""
    return zlib.compress(msgspec.json.encode(names), _LEVEL) if names else b""


def unpack_names(packed: bytes) -> list[str]:
    """Return the names that :func:`pack_names` packed.

    Raises:
        Damaged: *packed* was not made by :func:`pack_names`, or is out of its bounds.
    """
    return _decoded(_names, packed) if packed else []


def pack_holdings(holdings: list[Holding]) -> bytes:
    """Return *holdings* as bytes, in their order: a column for each field, because similar values compress well.

    An operation is packed as its distance from the one before. A size is packed as the bytes that it has beyond the
    requested size, rounded up to whole 256 bytes as BFC does.
    """
    if not holdings:
        return b""
    operations: list[int | None] = []
    last = 0
    for holding in holdings:
        operations.append(None if holding.operation is None else holding.operation - last)
        last = last if holding.operation is None else holding.operation
    rest = [(each.shape, each.dtype, each.region, each.requested, each.window) for each in holdings]
    sizes = [each.size - _rounded(each.requested) for each in holdings]
    return zlib.compress(msgspec.json.encode([operations, sizes, *zip(*rest, strict=True)]), _LEVEL)


def unpack_holdings(packed: bytes) -> list[Holding]:
    """Return the holdings that :func:`pack_holdings` packed.

    Raises:
        Damaged: *packed* was not made by :func:`pack_holdings`, or is out of its bounds.
    """
    if not packed:
        return []
    columns = _decoded(_columns, packed)
    if len({len(column) for column in columns}) != 1:
        raise Damaged(Damage.INCOMPLETE)
    rows = []
    last = 0
    for operation, size, shape, dtype, region, requested, window in zip(*columns, strict=True):
        last += operation or 0
        rows.append(
            (None if operation is None else last, shape, dtype, region, requested, size + _rounded(requested), window)
        )
    try:
        return msgspec.convert(rows, _Holdings)
    except msgspec.ValidationError:
        raise Damaged(Damage.OUT_OF_BOUNDS) from None


def _rounded(size: int) -> int:
    return max(256, -(-size // 256) * 256)


_Holdings = Annotated[list[Holding], Some]
_Column = Annotated[list[int], Some]
_names = msgspec.json.Decoder(Annotated[list[Text], Some])
_columns = msgspec.json.Decoder(
    tuple[
        Annotated[list[int | None], Some],
        _Column,
        Annotated[list[Annotated[list[Size], Few] | None], Some],
        Annotated[list[Name], Some],
        Annotated[list[Name], Some],
        _Column,
        _Column,
    ]
)


def _decoded(decoder: "msgspec.json.Decoder[T]", packed: bytes) -> T:
    text = _unpacked(packed)
    try:
        return decoder.decode(text)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raise Damaged(Damage.OTHER_FORM) from None


def _unpacked(packed: bytes) -> bytes:
    if not packed:
        return b""
    unpack = zlib.decompressobj()
    try:
        found = unpack.decompress(packed, _LARGEST)
    except zlib.error:
        raise Damaged(Damage.OTHER_FORM) from None
    if not unpack.eof:
        raise Damaged(Damage.TOO_LARGE if len(found) == _LARGEST else Damage.CUT_SHORT)
    return found


def pack_spans(spans: list[Span]) -> bytes:
    """Return *spans*, in the order of their beginnings, as bytes: a column for each field, which compresses well."""
    addresses = sorted({span.address for span in spans})
    place = {address: number for number, address in enumerate(addresses)}
    steps = [now - before for before, now in pairwise([0, *addresses])]
    kinds = [_unsigned(now - before) for before, now in pairwise([0, *(span.holding for span in spans)])]
    places = [place[span.address] for span in spans]
    begins = [now - before for before, now in pairwise([-1, *(span.begin for span in spans)])]
    lives = [0 if span.end == FOREVER else span.end - span.begin for span in spans]
    return pack([len(addresses), *steps, *kinds, *places, *begins, *lives])


def unpack_spans(packed: bytes, holdings: list[Holding]) -> list[Span]:
    """Return the spans that :func:`pack_spans` packed.

    Raises:
        Damaged: *packed* was not made by :func:`pack_spans`, or refers to a holding that is not among *holdings*.
    """
    return [Span(*each) for each in zip(*unpack_columns(packed, holdings), strict=True)]


def unpack_columns(packed: bytes, holdings: list[Holding]) -> tuple[list[int], list[int], list[int], list[int]]:
    """Return what :func:`pack_spans` packed as columns: the spans' holdings, addresses, beginnings and ends.

    Raises:
        Damaged: on the same conditions as :func:`unpack_spans`.
    """
    found = _all_numbers(packed)
    first = found[0] + 1 if found else 0
    addresses = list(accumulate(found[1:first]))
    count, uneven = divmod(len(found) - first, 4)
    if count < 0 or uneven:
        raise Damaged(Damage.CUT_SHORT)
    columns = [found[first + count * column : first + count * (column + 1)] for column in range(4)]
    kinds = list(accumulate(map(_signed, columns[0])))
    if kinds and not (min(kinds) >= 0 and max(kinds) < len(holdings) and max(columns[1]) < len(addresses)):
        raise Damaged(Damage.INCOMPLETE)
    begins = list(accumulate(columns[2], initial=-1))[1:]
    ends = [begin + life if life else FOREVER for begin, life in zip(begins, columns[3], strict=True)]
    return kinds, [addresses[place] for place in columns[1]], begins, ends


def _all_numbers(packed: bytes) -> list[int]:
    """Return the same as :func:`numbers`, as a list, in half the time: a window has hundreds of thousands of them."""
    found: list[int] = []
    number = shift = 0
    for byte in _unpacked(packed):
        if byte < 0x80:
            found.append(number | byte << shift if shift else byte)
            number = shift = 0
        else:
            number |= (byte & 0x7F) << shift
            shift += 7
            if shift >= _BITS:
                raise Damaged(Damage.OUT_OF_BOUNDS)
    if shift:
        raise Damaged(Damage.CUT_SHORT)
    return found


def _unsigned(number: int) -> int:
    """Map a signed number to an unsigned one, small to small: 0, -1, 1, -2, … become 0, 1, 2, 3, …"""
    return ~(number << 1) if number < 0 else number << 1


def _signed(number: int) -> int:
    return ~(number >> 1) if number & 1 else number >> 1


def pack_trace(events: Iterable[Allocated | Freed], allocations: int = 0) -> bytes:
    """Return one part of a trace as bytes; the parts before it had *allocations* allocations."""
    values: list[int] = []
    for event in events:
        if isinstance(event, Allocated):
            name = 0 if event.operation is None else event.operation + 1
            values += event.thread << 1, event.requested, name
            allocations += 1
        else:
            values += event.thread << 1 | 1, allocations - event.allocation - 1
    return pack(values)


def unpack_trace(packed: bytes, allocations: int = 0) -> list[Allocated | Freed]:
    """Return the events that :func:`pack_trace` packed.

    Raises:
        Damaged: *packed* was not made by :func:`pack_trace`, or frees an allocation before the first one.
    """
    found = numbers(packed)
    events: list[Allocated | Freed] = []
    try:
        for first in found:
            if first & 1:
                allocation = allocations - next(found) - 1
                if allocation < 0:
                    raise Damaged(Damage.INCOMPLETE)
                events.append(Freed(first >> 1, allocation))
            else:
                requested, name = next(found), next(found)
                events.append(Allocated(first >> 1, requested, name - 1 if name else None))
                allocations += 1
    except StopIteration:
        raise Damaged(Damage.CUT_SHORT) from None
    return events


def pack_scratch(found: list[int], allocations: int = 0) -> bytes:
    """Return *found*, numbers of allocations in their order, none less than *allocations*, packed as distances."""
    return pack([now - before for before, now in pairwise([allocations, *found])])


def unpack_scratch(packed: bytes, allocations: int = 0) -> list[int]:
    """Return the numbers that :func:`pack_scratch` packed.

    Raises:
        Damaged: *packed* was not made by :func:`pack_scratch`.
    """
    return [*accumulate(_all_numbers(packed), initial=allocations)][1:]


@dataclass(frozen=True, slots=True)
class Call:
    """``thread`` calls a function or a session, just before event ``event`` of the trace, and waits until it has ended.

    Calls are numbered in their order, from 0 on. The number of a call is also that of its run.
    """

    thread: int
    event: int


def pack_calls(calls: Iterable[Call], event: int = 0) -> bytes:
    """Return the *calls* of one part of a trace as bytes. They are in their order; the part begins at *event*."""
    values: list[int] = []
    for call in calls:
        values += call.thread, call.event - event
        event = call.event
    return pack(values)


def unpack_calls(packed: bytes, event: int = 0) -> list[Call]:
    """Return the calls that :func:`pack_calls` packed.

    Raises:
        Damaged: *packed* was not made by :func:`pack_calls`.
    """
    found = _all_numbers(packed)
    if len(found) % 2:
        raise Damaged(Damage.CUT_SHORT)
    events = [*accumulate(found[1::2], initial=event)][1:]
    return [Call(thread, at) for thread, at in zip(found[::2], events, strict=True)]


def pack_runs(runs: Iterable[int | None]) -> bytes:
    """Return for each allocation of one part of a trace the number of its run as bytes; ``None`` if it is in no run."""
    values: list[int] = []
    last = 0
    for run in runs:
        values.append(0 if run is None else _unsigned(run - last) + 1)
        last = last if run is None else run
    return pack(values) if any(values) else b""


def unpack_runs(packed: bytes) -> list[int | None]:
    """Return the numbers that :func:`pack_runs` packed. Allocations at the end that are in no run may be left out.

    Raises:
        Damaged: *packed* was not made by :func:`pack_runs`.
    """
    found: list[int | None] = []
    last = 0
    for value in _all_numbers(packed):
        last += _signed(value - 1) if value else 0
        if last < 0:
            raise Damaged(Damage.OUT_OF_BOUNDS)
        found.append(last if value else None)
    return found
