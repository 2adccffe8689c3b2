"""Finds the allocations of the variables and tensors that a census has listed, by the addresses of their buffers. Pure.

A buffer lies in one chunk, and a chunk has one owner: variables come first, since a tensor may be a view of one.
"""

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

from tfmemtop import events
from tfmemtop.events.allocations import FOREVER
from tfmemtop.events.device_names import is_cpu
from tfmemtop.state.holdings import TENSORS
from tfmemtop.state.model import Hooked
from tfmemtop.state.step_course import WindowCourse


@dataclass(frozen=True, slots=True)
class Listed:
    """A variable, or tensors with one holder, in a census at ``t`` seconds; ``kind`` is the census's word for them.

    ``bytes`` are those of each tensor, 0 if they differ.
    """

    name: str
    kind: str
    shape: tuple[int, ...] | None
    dtype: str
    bytes: int
    addresses: tuple[int, ...]
    t: float


def listed_variables(window: events.Holders, hooked: Hooked) -> list[Listed]:
    """Return the variables in the pool of *window*, by the census nearest to it."""
    windows = hooked.windows.get(window.device)
    census = (windows.censuses.get(window.window) if windows else None) or hooked.census
    return _single(census, window.device, variables=True)


def listed_tensors(window: events.Holders, hooked: Hooked) -> list[Listed]:
    """Return the tensors that Python holds in the pool of *window*, by the look nearest to it, groups first."""
    windows = hooked.windows.get(window.device)
    look = (windows.looks.get(window.window) if windows else None) or hooked.look
    if look is None:
        return []
    groups = [
        Listed(
            group.holder,
            TENSORS,
            None if group.shape is None else tuple(group.shape),
            group.dtype,
            0 if group.shape is None else group.bytes // group.count,
            group.addresses,
            look.t,
        )
        for group in look.alike
        if _lies_in(group.device, window.device) and group.kind == TENSORS
    ]
    return groups + _single(look, window.device, variables=False)


def located(window: events.Holders, course: WindowCourse, listed: list[Listed]) -> Iterator[tuple[int, Listed]]:
    """Yield pairs of a span's index and the one of *listed* whose buffer lies in it. Each span comes once.

    The spans are those in use at the census's time, or at the end of the window that is nearer to it.
    """
    taken: set[int] = set()
    chunks: dict[float, tuple[list[int], list[int]]] = {}  # by time: addresses, rising, and the spans there
    for one in listed:
        if one.t not in chunks:
            places = sorted(course.alive(_event_at(window, course, one.t)), key=course.addresses.__getitem__)
            chunks[one.t] = [course.addresses[place] for place in places], places
        addresses, places = chunks[one.t]
        for address in one.addresses:
            at = bisect_right(addresses, address) - 1
            if at < 0 or places[at] in taken:
                continue
            place = places[at]
            room = course.sizes[place] - (address - addresses[at])
            if addresses[at] and room > 0 and one.bytes <= room:
                taken.add(place)
                yield place, one


def other_values(course: WindowCourse, variables: list[tuple[int, Listed]]) -> Iterator[tuple[int, Listed]]:
    """Yield the spans with the values that *variables* have before or after, in pairs as of :func:`located`.

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
        if not name or (name.isalpha() and name[0].isupper() and not name.startswith("Assign")):
            continue  # run eagerly, an operation has no name but that of its class
        found = [one for one in alike[name, holding.requested] if follows(place, one) or follows(one, place)]
        if len(found) == 1:
            yield found[0], variable


def _event_at(window: events.Holders, course: WindowCourse, t: float) -> int:
    """Return the number of the last event before *t* seconds of the session, -1 before the window."""
    return bisect_right(course.times, (t - window.began) * 1e6) - 1


def _lies_in(device: str, pool: str) -> bool:
    """Return whether memory on *device* lies in the pool of *pool*: all logical CPUs of TensorFlow share one pool."""
    return device == pool or (is_cpu(device) and is_cpu(pool))


def _single(census: events.Census | None, pool: str, variables: bool) -> list[Listed]:
    if census is None:
        return []
    return [
        Listed(one.name, one.kind, tuple(one.shape), one.dtype, one.bytes, _addresses(one), census.t)
        for one in (*census.largest, *census.others)
        if (one.kind != TENSORS) is variables and _lies_in(one.device, pool)
    ]


def _addresses(one: events.Variable) -> tuple[int, ...]:
    return (one.address,) if one.address else ()
