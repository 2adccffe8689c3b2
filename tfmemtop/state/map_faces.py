"""The map of a pool with faces: the kind of holder in each cell, and the allocation at an address.

The map is newer than the window. An allocation that outlives the window is assumed to be still at its address. Where
the map has more in use, it is assumed to be what the window's step last had there: each step uses the same places.
"""

from bisect import bisect_right
from collections.abc import Iterator

import msgspec

from tfmemtop import events
from tfmemtop.events.allocations import FOREVER
from tfmemtop.state.attribution import Kind, Owner, attribution
from tfmemtop.state.holders import ORDER
from tfmemtop.state.model import Hooked
from tfmemtop.state.pool_views import PoolMap, RegionView
from tfmemtop.state.windows import times_us, unpacked

FREE = 0
"""The face of a cell in which nothing is in use. Other faces are 1 + the index of a kind in ``ORDER``."""
_FULL = 255
_CODE = {kind: 1 + place for place, kind in enumerate(ORDER)}


def kind_of(face: int) -> Kind:
    """Return the kind that *face* stands for; *face* is not :data:`FREE`."""
    return ORDER[face - 1]


class Lies(msgspec.Struct, frozen=True):
    """An allocation of ``size`` bytes at ``address``, made at session second ``since``, ``None`` if before the window.

    ``window`` is the number of the window in which it was allocated, 0 if in none that is known. ``stays`` if it
    outlived the window; else it is the last that the window's step had there.
    """

    owner: Owner
    address: int
    size: int
    since: float | None
    window: int
    stays: bool


class Faces:
    """The allocations of one window by their addresses."""

    def __init__(self, window: events.Holders, hooked: Hooked) -> None:
        self.window = window
        self._course = course = unpacked(window)
        self._owners = attribution(window, hooked)
        self._times = times_us(window)
        last: dict[int, int] = {}
        for place, address in enumerate(course.addresses):
            known = last.get(address)
            if known is None or _later(course.ends[place], course.ends[known]):
                last[address] = place
        stays = sorted((address, place) for address, place in last.items() if course.ends[place] == FOREVER)
        went = sorted((address, place) for address, place in last.items() if course.ends[place] != FOREVER)
        self._places = [[place for _, place in group] for group in (stays, went)]
        self._addresses = [[address for address, _ in group] for group in (stays, went)]

    def cells(self, region: RegionView) -> bytes:
        """Return a face for each cell of *region*: that of the kind with most bytes in use there."""
        count = len(region.cells)
        if not count:
            return b""
        held: list[list[dict[Kind, int]]] = [[{} for _ in range(count)] for _ in (0, 1)]
        for group in (0, 1):
            for place in self._within(group, region.address, region.address + region.size):
                begin = max(0, self._course.addresses[place] - region.address)
                end = min(region.size, begin + self._course.sizes[place])
                kind = self._owners.of[place].kind
                first, last = begin * count // region.size, (end - 1) * count // region.size
                for cell in range(first, min(last, count - 1) + 1):
                    low, high = region.size * cell // count, region.size * (cell + 1) // count
                    size = min(end, high) - max(begin, low)
                    in_cell = held[group][cell]
                    in_cell[kind] = in_cell.get(kind, 0) + max(0, size)
        faces = bytearray(count)
        for cell, share in enumerate(region.cells):
            if share:
                whole = region.size * (cell + 1) // count - region.size * cell // count
                faces[cell] = _CODE[_most(whole * share // _FULL, held[0][cell], held[1][cell])]
        return bytes(faces)

    def at(self, address: int) -> Lies | None:
        """Return the allocation at *address*; ``None`` if the window has none there."""
        for group in (0, 1):
            before = bisect_right(self._addresses[group], address)
            if before:
                found = self._lies(group, before - 1)
                if address < found.address + found.size:
                    return found
        return None

    def in_cell(self, region: RegionView, cell: int) -> Lies | None:
        """Return the largest allocation in a cell of *region*, first of those that outlived the window."""
        count = len(region.cells)
        low = region.address + region.size * cell // count
        high = region.address + region.size * (cell + 1) // count
        found = [self._lies(group, number) for group in (0, 1) for number in self._numbers(group, low, high)]

        def within(one: Lies) -> tuple[bool, int]:
            return one.stays, min(high, one.address + one.size) - max(low, one.address)

        return max(found, key=within, default=None)

    def neighbours(self, region: RegionView, address: int) -> tuple[Lies | None, Lies | None]:
        """Return the allocations next below and next above a free *address* of *region* that outlived the window."""
        at = bisect_right(self._addresses[0], address)
        below = self._lies(0, at - 1) if at else None
        above = self._lies(0, at) if at < len(self._addresses[0]) else None
        end = region.address + region.size
        return (
            below if below is not None and below.address >= region.address else None,
            above if above is not None and above.address < end else None,
        )

    def _numbers(self, group: int, low: int, high: int) -> range:
        """Return the numbers of a group's spans that overlap the addresses from *low* to *high*."""
        addresses = self._addresses[group]
        first = max(0, bisect_right(addresses, low) - 1)
        if first < len(addresses):
            place = self._places[group][first]
            if self._course.addresses[place] + self._course.sizes[place] <= low:
                first += 1
        return range(first, bisect_right(addresses, high - 1))

    def _within(self, group: int, low: int, high: int) -> Iterator[int]:
        for number in self._numbers(group, low, high):
            yield self._places[group][number]

    def _lies(self, group: int, number: int) -> Lies:
        place = self._places[group][number]
        begin = self._course.begins[place]
        since = self.window.began + self._times[begin] / 1e6 if 0 <= begin < len(self._times) else None
        size = self._course.sizes[place]
        window = self._course.kinds[self._course.holdings[place]].window
        return Lies(self._owners.of[place], self._course.addresses[place], size, since, window, group == 0)


def _later(end: int, other: int) -> bool:
    """Return whether *end* is later than *other*."""
    return other != FOREVER and (end == FOREVER or end > other)


def _most(used: int, stays: dict[Kind, int], went: dict[Kind, int]) -> Kind:
    """Return the kind of most of the *used* bytes of a cell; bytes without a known holder are ``UNKNOWN``."""
    sizes = dict(stays)
    left = max(0, used - sum(stays.values()))
    of_step = sum(went.values())
    if left and of_step:
        known = min(left, of_step)
        for kind, size in went.items():
            sizes[kind] = sizes.get(kind, 0) + size * known // of_step
        left -= known
    if left:
        sizes[Kind.UNKNOWN] = sizes.get(Kind.UNKNOWN, 0) + left
    return max(sizes, key=lambda kind: sizes[kind], default=Kind.UNKNOWN)


def faces_in(window: events.Holders, hooked: Hooked) -> Faces:
    """Return the faces of *window*, cached for as long as its owners are the same."""
    return attribution(window, hooked).once("faces", lambda: Faces(window, hooked))


def faces_of(view: PoolMap, faces: Faces) -> dict[int, bytes]:
    """Return the faces of all cells, by the region's address."""
    return {region.address: faces.cells(region) for region in view.regions if region.cells}
