"""Finds what lived in a pool during a window: its allocations, each from its beginning to its end.

The chunks that were in use as the window was opened, and TensorFlow's records before and since, are replayed. Each
record contains the bytes in use after it. So a missing record is detected: the bytes in use before the next record are
not those that were in use after the last one.
"""

from bisect import bisect_left, insort
from collections.abc import Callable, Iterator
from typing import NamedTuple

import msgspec

from tfmemtop.engine.sources.window_file import AT_NS, IN_USE, SIZE, Record
from tfmemtop.events.allocations import FOREVER

_AHEAD = 64  # records among which the one that follows is searched for
_SAME_NS = 20_000  # two records that are no further apart may be in the wrong order
_GAPS = 64  # gaps, at most, for which missing frees are worked out
_AGREEING = 32  # records that must agree with the chunks
_NEAR = 512  # records before and after the moment of the chunks, among which the first after the chunks is searched for


class Alike(NamedTuple):
    """What allocations that are alike have in common. ``requested`` and ``size`` are bytes.

    ``shape`` is as TensorFlow writes it. ``window`` is the window in which they were recorded, 0 if unknown.
    """

    operation: str
    shape: str
    dtype: int
    region: int
    requested: int
    size: int
    window: int


class Life(msgspec.Struct, eq=False):
    """An allocation. It is in use from after event ``begin``, -1 if it was there before, until event ``end``."""

    alike: Alike
    address: int
    begin: int
    end: int = FOREVER
    thread: int = 0
    freed_by: int | None = None  # the thread, if the free was recorded
    run: int = 0  # TensorFlow's number of the run that has made it, 0 if it is not known

    def at(self, event: int) -> bool:
        """Return whether it is in use after event *event*."""
        return self.begin <= event and (self.end == FOREVER or self.end > event)


def surplus(lives: list[Life], excess: int) -> list[Life]:
    """Return those of *lives* that are taken to be freed, as *excess* bytes more than these are in use.

    Which allocations were freed without a record is not known. The largest that fit into the excess are taken first. If
    it is larger than all of these, the smallest of the others is taken too.
    """
    found: list[Life] = []
    other: Life | None = None
    for life in sorted(lives, key=lambda life: -life.alike.size):
        if life.alike.size <= excess:
            found.append(life)
            excess -= life.alike.size
        else:
            other = life
    return [*found, other] if excess > 0 and other is not None else found


class PoolCourse(msgspec.Struct):
    """The events of one pool in their order: their times, and the bytes in use after each.

    ``before`` are the bytes in use before the first event. ``lives`` are in the order of their beginnings. ``gaps`` are
    the numbers of events before which other events are missing.
    """

    before: int
    lives: list[Life]
    at_ns: list[int] = msgspec.field(default_factory=list)
    in_use: list[int] = msgspec.field(default_factory=list)
    gaps: list[int] = msgspec.field(default_factory=list)

    def lost(self, first: int = 0, last: int | None = None) -> int:
        """Return the number of events that are known to be missing from event *first* to before event *last*.

        More than these may be missing.
        """
        return sum(first <= gap and (last is None or gap < last) for gap in self.gaps)


def replay(before: int, there: list[Life], records: list[Record], alike: Callable[[Record], Alike]) -> PoolCourse:
    """Replay *records*, which are sorted by time, and return the course of the pool.

    *there* is what is in use as the records begin, *before* are its bytes by TensorFlow's count. *alike* returns what
    the allocation of a record has in common with others.
    """
    course = PoolCourse(before, there)
    alive = {life.address: life for life in there}
    overlaps: _Overlaps | None = None
    in_use = before
    lives, times, after = course.lives, course.at_ns, course.in_use
    for number, record in enumerate(in_order(before, records)):
        at_ns, address, _, size, now, thread, _, _, _, _, _, run = record
        if now - size != in_use:
            course.gaps.append(number)
            overlaps = overlaps or _Overlaps(alive)
        in_use = now
        times.append(at_ns)
        after.append(now)
        known = alive.pop(address, None)
        if known is not None:
            known.end = number
            if size < 0:
                known.freed_by = thread
        if overlaps is not None:
            overlaps.end(address, size, number)
        if size > 0:
            life = Life(alike(record), address, number, FOREVER, thread, run=run)
            lives.append(life)
            alive[address] = life
            if overlaps is not None:
                overlaps.begin(address)
    if course.gaps:
        _end_what_is_too_much(course)
    return course


def after_chunks(records: list[Record], there: list[Life], in_use: int, at_ns: int) -> list[Record]:
    """Return those of *records*, which are sorted by time, that are later than the chunks *there*.

    The chunks had *in_use* bytes at *at_ns*. That time is not exact, because the clock is not read at the same moment
    as the chunks. So the result begins with the record nearest to that time that follows from *in_use* and from the
    addresses of the chunks. If there is none, the time decides.
    """
    first = bisect_left(records, at_ns, key=lambda record: record[AT_NS])
    near = sorted(range(max(0, first - _NEAR), min(len(records), first + _NEAR)), key=lambda at: abs(at - first))
    addresses = {life.address for life in there}
    for at in near:
        fits = _follows(records[at], in_use) and _agrees(addresses, records[at : at + _AGREEING])
        if fits and _lead_to(addresses, records[first:at]):
            return records[at:]
    return records[first:]


def before_records(records: list[Record], there: list[Life], in_use: int) -> tuple[int, list[Life]]:
    """Return the bytes in use before *records*, and what it was, from what is *there* after them, *in_use* bytes.

    There are such records where TensorFlow has recorded before the probe was there to read the chunks.
    """
    alive = {life.address: life for life in there}
    for _, address, requested, size, now, *_ in reversed(records):
        in_use = now - size
        if size > 0:
            alive.pop(address, None)
        else:
            alive[address] = Life(Alike("", "", 0, 0, requested, -size, 0), address, -1)
    return in_use, [*alive.values()]


def _agrees(addresses: set[int], records: list[Record]) -> bool:
    """Return whether the frees in *records* are of what is there, and the allocations are where nothing is.

    *addresses* is what is there before the records.
    """
    freed: set[int] = set()
    allocated: set[int] = set()
    for _, address, _, size, *_ in records:
        is_there = address in allocated or (address in addresses and address not in freed)
        if is_there == (size > 0):
            return False
        if size > 0:
            allocated.add(address)
            freed.discard(address)
        else:
            allocated.discard(address)
            freed.add(address)
    return True


def _lead_to(addresses: set[int], records: list[Record]) -> bool:
    """Return whether *addresses* contains what *records* leave alive, and nothing that they leave freed."""
    alive = {address: size > 0 for _, address, _, size, *_ in records}
    return all((address in addresses) == is_alive for address, is_alive in alive.items())


def in_order(in_use: int, records: list[Record]) -> Iterator[Record]:
    """Yield *records*, which are sorted by time, in the order in which their bytes in use follow one another.

    This order can differ from that of the times: two threads may read the same time, and the clocks of two processors
    may differ a little. *in_use* are the bytes in use before the first record.
    """
    waiting: list[Record] = []
    for record in records:
        if not waiting and record[IN_USE] - record[SIZE] == in_use:
            in_use = record[IN_USE]
            yield record
            continue
        waiting.append(record)
        while waiting and (
            _follows(waiting[0], in_use) or record[AT_NS] > waiting[0][AT_NS] + _SAME_NS or len(waiting) > _AHEAD
        ):
            following = _take(waiting, in_use)
            in_use = following[IN_USE]
            yield following
    while waiting:
        following = _take(waiting, in_use)
        in_use = following[IN_USE]
        yield following


def _take(waiting: list[Record], in_use: int) -> Record:
    until = waiting[0][AT_NS] + _SAME_NS
    for at, record in enumerate(waiting):
        if record[AT_NS] > until:
            break
        if _follows(record, in_use):
            return waiting.pop(at)
    return waiting.pop(0)


def _follows(record: Record, in_use: int) -> bool:
    return record[IN_USE] - record[SIZE] == in_use


class _Overlaps:
    """Ends allocations that must have been freed, because another one has their place now.

    This is needed only where records are missing.
    """

    def __init__(self, alive: dict[int, Life]) -> None:
        self._alive = alive
        self._addresses = sorted(alive)

    def end(self, address: int, size: int, number: int) -> None:
        """Note that event *number* allocates *size* bytes at *address*, or frees that place if *size* is negative.

        Allocations that the new one overlaps end at that event.
        """
        at = bisect_left(self._addresses, address)
        if at < len(self._addresses) and self._addresses[at] == address:
            del self._addresses[at]
        if size < 0:
            return
        if at and self._reaches(self._addresses[at - 1], address):
            at -= 1
        while at < len(self._addresses) and self._addresses[at] < address + size:
            self._alive.pop(self._addresses.pop(at)).end = number

    def begin(self, address: int) -> None:
        insort(self._addresses, address)

    def _reaches(self, address: int, other: int) -> bool:
        return address + self._alive[address].alike.size > other


def _end_what_is_too_much(course: PoolCourse) -> None:
    """End allocations whose free is missing, at the gaps, until no more bytes live than are in use.

    Those whose free was recorded later were not freed at a gap.
    """
    count = len(course.in_use)
    changes = [0] * (count + 2)  # of the bytes that are known to live; at place 0: what lived before
    doubtful: list[Life] = []
    for life in course.lives:
        changes[life.begin + 1] += life.alike.size
        if life.end != FOREVER:
            changes[life.end + 1] -= life.alike.size
        if life.freed_by is None:
            doubtful.append(life)
    known, gaps = changes[0], {*course.gaps[:_GAPS]}
    for number in range(count):
        known += changes[number + 1]
        excess = known - course.in_use[number]
        if excess <= 0 or number not in gaps:
            continue
        here = [life for life in doubtful if life.begin < number and life.at(number)]
        for life in surplus(here, excess):
            doubtful.remove(life)
            if life.end != FOREVER:
                changes[life.end + 1] += life.alike.size
            life.end = number
            known -= life.alike.size
