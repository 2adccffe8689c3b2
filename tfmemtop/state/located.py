"""Finds the allocations of the variables and tensors that a census has listed, by the addresses of their buffers. Pure.

A buffer lies in one chunk, and a chunk has one owner: variables come first, since a tensor may be a view of one.
Nothing is found in a census without addresses.

A training moves the values of its variables about: an optimizer may write each step's into memory of its own. So there
is a census as a window is opened: it is right for what is older than the window. Another is taken as the window is
closed. It may come a step too late. Then some of the buffers that it lists are in no allocation of their size, and it
counts for no variable of that size.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Container, Iterator
from itertools import islice
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from tfmemtop import events
from tfmemtop.events.allocations import FOREVER
from tfmemtop.events.machine import is_cpu
from tfmemtop.state.holdings import TENSORS
from tfmemtop.state.model import Hooked
from tfmemtop.state.windows import WindowCourse, unpacked
from tfmemtop.units import MIB

_WAITING = events.CensusMoment.WAITING
_OTHER = 0.1  # of a window's operations, the most that another window of the same model may lack
_NEAR_S = 1.0
"""Seconds. Memory may have been used again in a longer time: then only a buffer as large as the allocation is found."""


FRESH_S = 20.0
"""Seconds. An older look at the tensors does not belong to the moment: TensorFlow tries for 10 s before it fails."""


class Listed(msgspec.Struct, frozen=True):
    """A variable, or tensors with one holder, in a census; ``kind`` is the census's word for them.

    ``bytes`` are those of each tensor, 0 if they differ; ``whole`` are those of all. ``more`` is the number of those
    whose addresses are not known.
    """

    name: str
    kind: str
    shape: tuple[int, ...] | None
    dtype: str
    bytes: int
    addresses: tuple[int, ...]
    more: int = 0
    whole: int = 0


class Sources(NamedTuple):
    """The censuses for one window: those taken as it opened and closed, else the two nearest; and the nearest look."""

    censuses: tuple[events.Census, ...]
    look: events.Census | None

    def variables(self, pool: str) -> list[Listed]:
        """Return the variables in the pool of the logical device *pool*, by the latest census."""
        return listed_variables(self.latest, pool) if self.latest else []

    @property
    def latest(self) -> events.Census | None:
        """The latest of the censuses; ``None`` if there is none."""
        return max(self.censuses, key=lambda one: one.t, default=None)


def sources(window: events.Holders, hooked: Hooked) -> Sources:
    """Return the censuses from which the owners in *window* are known."""
    known = hooked.failure.look if hooked.failure else None, hooked.look, hooked.census, *hooked.at_peak
    found = list({id(one): one for one in known if one is not None}.values())
    found.sort(key=lambda one: _apart_s(one, window))
    newest: dict[events.CensusMoment, events.Census] = {}
    for census in hooked.of_windows:
        if census.window == window.window:
            newest.pop(census.moment, None)
            newest[census.moment] = census
    own = tuple(newest.values())
    looks = [one for one in (*reversed(own), *found) if one.tensors is not None]
    if waiting := hooked.waiting:  # meanwhile there was no room for anything new
        looks = [replace(one, t=min(one.t, waiting.t)) if one.moment is _WAITING else one for one in looks]
    near = [one for one in looks if _apart_s(one, window) <= FRESH_S]
    look = max(near, key=lambda one: (one.found_by_path, -_apart_s(one, window)), default=next(iter(looks), None))
    if all(one.moment is not events.CensusMoment.CLOSED for one in own):
        # At the window's opening most variables may not have been made, and at the script's end some may have gone.
        own = (*own, *(one for one in found[:2] if one not in own))
    return Sources(own, look)


def _apart_s(census: events.Census, window: events.Holders) -> float:
    return max(window.began - census.t, census.t - window.ended, 0.0)


def located(window: events.Holders, course: WindowCourse, found: Sources) -> Iterator[tuple[int, Listed]]:
    """Yield pairs of a span's index and the variable or tensors whose buffer lies in it. Each span comes once."""
    taken: set[int] = set()
    for census in found.censuses:
        by_size: dict[int, list[Listed]] = {}
        for one in listed_variables(census, window.device):
            if one.addresses:
                by_size.setdefault(one.bytes, []).append(one)
        older = census.moment is events.CensusMoment.OPENED
        for size, variables in by_size.items():
            wanted = {address: one for one in variables for address in one.addresses}
            there = _places(course, size, wanted)
            if older:
                there = [place for place in there if _is_older(window, course, place)]
            else:
                # The last step may have failed. XLA then frees what it was given, also variables.
                failed = census.moment is events.CensusMoment.END
                there = [one for one in there if course.ends[one] == FOREVER or (failed and course.begins[one] < 0)]
                there = list({course.addresses[one]: one for one in there}.values())  # at each address the last
            for place in there if older or len(there) == len(wanted) else []:
                if place not in taken:
                    taken.add(place)
                    yield place, wanted[course.addresses[place]]
    if found.look is not None:
        yield from _of_tensors(window, course, found.look, taken)


def _places(course: WindowCourse, size: int, addresses: Container[int]) -> list[int]:
    """Return the spans of *size* requested bytes at *addresses*."""
    return [
        place
        for place, (address, holding) in enumerate(zip(course.addresses, course.holdings, strict=True))
        if address in addresses and course.kinds[holding].requested == size
    ]


def _is_older(window: events.Holders, course: WindowCourse, place: int) -> bool:
    """Return whether the span at *place* was there as the window was opened, which is some time before its step."""
    return course.begins[place] < 0 and course.kinds[course.holdings[place]].window != window.window


def _of_tensors(
    window: events.Holders, course: WindowCourse, look: events.Census, taken: set[int]
) -> Iterator[tuple[int, Listed]]:
    """Yield the spans of tensors, but for those *taken*, of those in use at the look or at the end nearer to it."""
    at = bisect_right(course.times, (look.t - window.began) * 1e6) - 1
    places = sorted(course.alive(at), key=course.addresses.__getitem__)
    addresses = [course.addresses[place] for place in places]
    near = _apart_s(look, window) < _NEAR_S
    for one in listed_tensors(look, window.device):
        made, left = Counter[int](), one.whole
        for address in one.addresses:
            found = bisect_right(addresses, address) - 1
            if found < 0 or places[found] in taken or not addresses[found]:
                continue
            place = places[found]
            room = course.sizes[place] - (address - addresses[found])
            requested = course.kinds[course.holdings[place]].requested
            alone = not one.bytes and address == addresses[found] and requested <= left
            if 0 < room >= one.bytes if near else one.bytes == requested or alone:
                left -= requested
                taken.add(place)
                made[course.holdings[place]] += 1
                yield place, one
        if one.more and sum(made.values()) * 2 > len(one.addresses):
            # Of a large collection not all addresses are listed. The others were made by the same operation.
            alike = (place for place in places if course.holdings[place] in made and place not in taken)
            for place in list(islice(alike, one.more)):
                taken.add(place)
                yield place, one


def other_values(course: WindowCourse, variables: list[tuple[int, Listed]]) -> Iterator[tuple[int, Listed]]:
    """Yield the spans with the values that *variables* have before and after, in pairs as of :func:`located`.

    A step that assigns a new value to a variable makes it with the same operation as the step before. The old value is
    freed once there is the new one.
    """
    alike: dict[tuple[str, int], list[int]] = {}
    for place, number in enumerate(course.holdings):
        holding = course.kinds[number]
        alike.setdefault((course.name(holding), holding.requested), []).append(place)

    def follows(new: int, old: int) -> bool:
        end = course.ends[old]
        return course.begins[old] < course.begins[new] and end != FOREVER and course.begins[new] <= end

    for place, variable in variables:
        holding = course.kinds[course.holdings[place]]
        name = course.name(holding)
        if not _is_own(name):
            continue
        values = alike[name, holding.requested]
        now = place
        while len(found := [one for one in values if follows(one, now)]) == 1:
            (now,) = found
            yield now, variable
        now = place
        while len(found := [one for one in values if follows(now, one)]) == 1:
            (now,) = found
            yield now, variable


def values_by_name(course: WindowCourse, newest: events.Holders, hooked: Hooked) -> Iterator[tuple[int, Listed]]:
    """Yield pairs of a span's index in *course* and the variable whose value the span's operation makes in *newest*.

    A census is most often of the *newest* window. By then, a variable may lie elsewhere than at an earlier peak. An
    operation counts if all that it makes there are values of one variable, and if both windows are of the same model:
    another model's operations have other layers in their names.
    """
    there = unpacked(newest)
    if len(set(there.names) - set(course.names)) > _OTHER * len(there.names):
        return
    pairs = [(place, one) for place, one in located(newest, there, sources(newest, hooked)) if one.kind != TENSORS]
    known = dict((*pairs, *other_values(there, pairs)))
    made: dict[tuple[str, int], set[Listed | None]] = {}
    for place, number in enumerate(there.holdings):
        holding = there.kinds[number]
        if _is_own(name := there.name(holding)):
            made.setdefault((name, holding.requested), set()).add(known.get(place))
    for place, number in enumerate(course.holdings):
        holding = course.kinds[number]
        values = made.get((course.name(holding), holding.requested), ())
        variable = next(iter(values), None)
        if variable is not None and len(values) == 1:
            yield place, variable


def _is_own(operation: str) -> bool:
    """Return whether the name is that of one operation. Run eagerly, one has no name but that of its class."""
    is_class = operation.isalpha() and operation[0].isupper() and not operation.startswith("Assign")
    return bool(operation) and not is_class


def listed_variables(census: events.Census, pool: str) -> list[Listed]:
    """Return the variables of *census* in the pool of the logical device *pool*."""
    return _single(census, pool, variables=True)


def unlisted(census: events.Census, pool: str) -> dict[str, int]:
    """Return the bytes of the variables in that *pool* that *census* counts, and has no room to list, by their kind."""
    left: Counter[str] = Counter()
    for device, sizes in census.kinds.items():
        if lies_in(device, pool):
            left.update({kind: size for kind, size in sizes.items() if kind != TENSORS})
    for one in listed_variables(census, pool):
        left[one.kind] -= one.bytes
    return {kind: size for kind, size in left.items() if size >= MIB}


def listed_tensors(look: events.Census, pool: str) -> list[Listed]:
    """Return the tensors of *look* in the pool of the logical device *pool*: those with a path first, groups before."""
    groups = [
        Listed(
            group.holder,
            TENSORS,
            None if group.shape is None else tuple(group.shape),
            group.dtype,
            0 if group.shape is None else group.bytes // max(1, group.count),
            group.addresses,
            group.count - len(group.addresses) if group.addresses and group.shape is not None else 0,
            group.bytes,
        )
        for group in look.alike
        if lies_in(group.device, pool) and group.kind == TENSORS
    ]
    return sorted(groups + _single(look, pool, variables=False), key=lambda one: not one.name)


def lies_in(device: str, pool: str) -> bool:
    """Return whether memory on *device* lies in the pool of *pool*: all logical CPUs of TensorFlow share one pool."""
    return device == pool or (is_cpu(device) and is_cpu(pool))


def _single(census: events.Census, pool: str, variables: bool) -> list[Listed]:
    return [
        Listed(one.name, one.kind, tuple(one.shape), one.dtype, one.bytes, (one.address,) if one.address else ())
        for one in (*census.largest, *census.others)
        if (one.kind != TENSORS) is variables and lies_in(one.device, pool)
    ]
