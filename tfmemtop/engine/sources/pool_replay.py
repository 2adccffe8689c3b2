"""What lived in a pool during a window: its allocations, each from its beginning to its end.

The chunks that were in use as the window began, and TensorFlow's records since, are replayed. Each record says what is
in use after it, so a record that is missing shows: what is in use before the next one is not what it was.
"""

from bisect import bisect_left, insort
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from tfmemtop.engine.sources.window_file import AT_NS, IN_USE, SIZE, Record
from tfmemtop.events.courses import FOREVER

_AT_ONCE = 1024  # records between two breaths
_AHEAD = 64  # records that are looked through for the one that follows
_SAME_NS = 20_000  # apart by no more, two records may be in a wrong order
_GAPS = 64  # at which it is worked out what must have been freed
_AGREEING = 32  # records that must agree with the chunks
_NEAR = 512  # records around the moment of the chunks among which the first after them is looked for


class Alike(NamedTuple):
    """What allocations that are alike have in common; ``shape`` as TensorFlow writes it, ``window`` 0 if unknown."""

    operation: str
    shape: str
    dtype: int
    region: int
    requested: int
    size: int
    window: int


@dataclass(slots=True, eq=False)
class Life:
    """An allocation: in use from after event ``begin``, -1 for what was there before, until event ``end``."""

    alike: Alike
    address: int
    begin: int
    end: int = FOREVER
    thread: int = 0
    freed_by: int | None = None  # the thread, where its end was recorded


@dataclass(slots=True)
class Course:
    """The events of one pool in their order: their times, and what was in use after each.

    ``lives`` are in the order of their beginnings. ``before`` was in use as they began. ``gaps`` are the events before
    which others are missing, ``strays`` frees of what was not known.
    """

    before: int
    lives: list[Life]
    at_ns: list[int] = field(default_factory=list)
    in_use: list[int] = field(default_factory=list)
    gaps: list[int] = field(default_factory=list)
    strays: int = 0

    @property
    def lost(self) -> int:
        """Events that are known to be missing; at least so many are."""
        return len(self.gaps) + self.strays


def replay(
    before: int, there: list[Life], records: list[Record], alike: Callable[[Record], Alike], breathe: Callable[[], None]
) -> Course:
    """Replay *records*, which are in order and all later than *there*: what is in use as they begin."""
    course = Course(before, there)
    alive = {life.address: life for life in there}
    overlaps: _Overlaps | None = None
    in_use = before
    lives, times, after = course.lives, course.at_ns, course.in_use
    for number, record in enumerate(in_order(before, records)):
        if number % _AT_ONCE == 0:
            breathe()
        at_ns, address, _, size, now, thread, _, _, _, _, _ = record
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
        elif size < 0:
            course.strays += 1
        if overlaps is not None:
            overlaps.end(address, size, number)
        if size > 0:
            life = Life(alike(record), address, number, FOREVER, thread)
            lives.append(life)
            alive[address] = life
            if overlaps is not None:
                overlaps.begin(address)
    if course.gaps:
        _end_what_is_too_much(course)
    return course


def after_chunks(records: list[Record], there: list[Life], in_use: int, at_ns: int) -> list[Record]:
    """Those of *records*, which are sorted by time, that are later than the chunks *there*, *in_use* bytes at *at_ns*.

    The clock is read beside the chunks and not with them. So the nearest record decides that follows from *in_use*,
    and from where the chunks are.
    """
    first = bisect_left(records, at_ns, key=lambda record: record[AT_NS])
    near = sorted(range(max(0, first - _NEAR), min(len(records), first + _NEAR)), key=lambda at: abs(at - first))
    addresses = {life.address for life in there}
    for at in near:
        fits = _follows(records[at], in_use) and _agrees(addresses, records[at : at + _AGREEING])
        if fits and _lead_to(addresses, records[first:at]):
            return records[at:]
    return records[first:]


def _agrees(addresses: set[int], records: list[Record]) -> bool:
    """Whether these frees are of what is there, and allocations where nothing is."""
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
    """Whether what these records leave alive is there, and what they free is not."""
    alive = {address: size > 0 for _, address, _, size, *_ in records}
    return all((address in addresses) == is_alive for address, is_alive in alive.items())


def in_order(in_use: int, records: list[Record]) -> Iterator[Record]:
    """*records*, sorted by time, in the order in which their figures follow one another.

    Two threads may get the same time, and the clocks of two processors may differ a little.
    """
    waiting: list[Record] = []
    for record in records:
        if not waiting and record[IN_USE] - record[SIZE] == in_use:
            in_use = record[IN_USE]
            yield record
            continue
        waiting.append(record)
        while waiting and (_follows(waiting[0], in_use) or record[AT_NS] > waiting[0][AT_NS] + _SAME_NS):
            following = _take(waiting, in_use)
            in_use = following[IN_USE]
            yield following
        if len(waiting) > _AHEAD:
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
    """Ends what must have been freed, because something else lies there now. Needed only where records are missing."""

    def __init__(self, alive: dict[int, Life]) -> None:
        self._alive = alive
        self._addresses = sorted(alive)

    def end(self, address: int, size: int, number: int) -> None:
        """Something of *size* bytes begins at *address*, or ends there if *size* is negative."""
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


def _end_what_is_too_much(course: Course) -> None:
    """End, at the gaps, allocations whose free is missing: until no more lives than is in use.

    Which ones were freed is not known. Those whose free was recorded later were not; of the others the largest that
    fits goes first.
    """
    count = len(course.in_use)
    changes = [0] * (count + 2)  # of what is known to live; at place 0 what lived before
    doubtful: list[Life] = []
    for life in course.lives:
        changes[life.begin + 1] += life.alike.size
        if life.end != FOREVER:
            changes[life.end + 1] -= life.alike.size
        if life.freed_by is None:
            doubtful.append(life)
    doubtful.sort(key=lambda life: -life.alike.size)
    known, gaps = changes[0], {*course.gaps[:_GAPS]}
    for number in range(count):
        known += changes[number + 1]
        excess = known - course.in_use[number]
        if excess <= 0 or number not in gaps:
            continue
        here = [life for life in doubtful if life.begin < number and (life.end == FOREVER or life.end > number)]
        while excess > 0 and here:
            life = next((life for life in here if life.alike.size <= excess), here[-1])
            here.remove(life)
            doubtful.remove(life)
            if life.end != FOREVER:
                changes[life.end + 1] += life.alike.size
            life.end = number
            known -= life.alike.size
            excess -= life.alike.size
