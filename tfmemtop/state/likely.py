"""Finds likely owners of the nameless allocations of a failing step, by the newest recorded step that fits. Pure.

A step that fails with a larger batch, or in a function that was traced anew, began before its window. But it does the
same as the step before. Up to the failure it has made the same allocations; those that depend on the batch are larger,
all by the same factor.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import NamedTuple

from tfmemtop.events import Holders, Opened
from tfmemtop.events.courses import FOREVER
from tfmemtop.state.attribution import Kind, Owner, attribution
from tfmemtop.state.census_matching import known_variables
from tfmemtop.state.holder_choice import told
from tfmemtop.state.model import Hooked
from tfmemtop.state.owners import Guess
from tfmemtop.state.step_course import unpacked

_LEAST = 1024  # the least bytes of an allocation that is considered
_LARGEST = 4  # how many sizes of nameless allocations are compared, the largest first
_TRIED = 64  # with how many sizes of the step they are compared; each pair gives a scale
_FOLLOWED = 8  # how many of these scales are tried over the whole step
_ENOUGH = 0.8  # the share of the nameless bytes that must fit
_NOTEWORTHY = 0.1  # the share of memory in use; if less than this has no name, no owners are searched
_FAILS_S = 15.0  # the time after the window within which the step fails: TensorFlow tries for 10 s
_PIECES = 2  # the least number of allocations that must fit: a single size fits some step at some scale


@dataclass(frozen=True, slots=True)
class Likely:
    """Owners of a window's nameless spans, by the spans' indices: those of a step, ``scale`` times as large.

    ``basis`` identifies the result: two results for one window with the same ``basis`` are equal.
    """

    owners: dict[int, Owner]
    scale: Fraction
    basis: tuple[int | None, ...]


class _Made(NamedTuple):
    """An allocation of the step: its requested bytes, and whether a larger batch makes it larger (``grows``)."""

    begin: int
    end: int
    requested: int
    grows: bool
    owner: Owner

    def size(self, scale: Fraction) -> int:
        return self.requested * scale.numerator // scale.denominator if self.grows else self.requested


def likely(window: Holders, hooked: Hooked) -> Likely | None:
    """Return likely owners of the nameless allocations at the end of a *window* that a wait opened.

    Return ``None`` for other windows, and if no recorded step fits.
    """
    windows = hooked.windows.get(window.device)
    if window.opened is not Opened.WAITING or windows is None:
        return None
    owners, asked = attribution(window, hooked), _asked(window, hooked)
    steps = [one for one in told(windows) if one.steps and one.began < window.began]
    key = "likely", asked, *(step.window for step in steps)
    return owners.once(key, lambda: next(_all_likely(window, steps, hooked, asked), None))


def _all_likely(window: Holders, steps: list[Holders], hooked: Hooked, asked: int | None) -> Iterator[Likely]:
    for step in reversed(steps):
        found = _likely(window, step, hooked, asked)
        if found is not None:
            yield found


def _asked(window: Holders, hooked: Hooked) -> int | None:
    """Return the bytes of the tensor for which the waiting step failed, if that is known."""
    error = hooked.failure.error if hooked.failure else None
    of_it = error is not None and error.device == window.device and window.began <= error.t <= window.ended + _FAILS_S
    return error.requested if error is not None and of_it else None


def _likely(waiting: Holders, step: Holders, hooked: Hooked, asked: int | None) -> Likely | None:
    course, owners = unpacked(waiting), attribution(waiting, hooked)
    nameless: dict[int, list[int]] = defaultdict(list)
    for place in course.alive(course.events - 1):
        requested = course.kinds[course.holdings[place]].requested
        if owners.of[place].kind in (Kind.BEFORE, Kind.UNKNOWN) and requested >= _LEAST:
            nameless[requested].append(place)
    have = Counter({size: len(places) for size, places in nameless.items()})
    whole = sum(size * count for size, count in have.items())
    if whole < _NOTEWORTHY * sum(course.sizes[place] for place in course.alive(course.events - 1)):
        return None
    made = list(_made(step, hooked))
    changes = sorted(
        (change for one in made for change in ((one.begin, 1, one), (one.end, -1, one))), key=lambda change: change[:2]
    )
    best: tuple[int, Fraction, int] | None = None
    for scale in _scales(have, made):
        if asked is not None and all(one.size(scale) != asked for one in made):
            continue
        fits, event = _furthest(have, changes, scale)
        if fits > _ENOUGH * whole and (best is None or fits > best[0]):
            best = fits, scale, event
    if best is None:
        return None
    _, scale, event = best
    found: dict[int, Owner] = {}
    for one in made:
        places = nameless.get(one.size(scale))
        if places and one.begin <= event < one.end:
            found[places.pop()] = replace(one.owner, shape=_grown(one, scale), guess=Guess.STEP)
    return Likely(found, scale, (step.window, asked)) if len(found) >= _PIECES else None


def _made(step: Holders, hooked: Hooked) -> Iterator[_Made]:
    course, owners = unpacked(step), attribution(step, hooked)
    fixed = {(variable.shape, variable.dtype) for variable in known_variables(hooked, step.device)}
    for place, (begin, end) in enumerate(zip(course.begins, course.ends, strict=True)):
        requested, owner = course.kinds[course.holdings[place]].requested, owners.of[place]
        if begin >= 0 and requested >= _LEAST:
            grows = owner.kind not in (Kind.OPTIMIZER, Kind.VARIABLES) and (owner.shape, owner.dtype) not in fixed
            yield _Made(begin, course.events if end == FOREVER else end, requested, grows, owner)


def _scales(have: Counter[int], made: list[_Made]) -> list[Fraction]:
    """Return the factors by which the step's allocations may have grown.

    The best is first: with it, most nameless bytes have a size that occurs in the step.
    """
    largest = sorted(have, key=lambda size: -size * have[size])[:_LARGEST]
    firsts: dict[int, int] = {}  # the first dimension of a shape, by requested bytes
    for one in made:
        if one.grows and one.owner.shape:
            firsts.setdefault(one.requested, one.owner.shape[0])
    tried = sorted(firsts, key=lambda size: -size)[:_TRIED]
    scales = {Fraction(size, before) for size in largest for before in tried}
    scales = {scale for scale in scales if any((scale * firsts[before]).denominator == 1 for before in tried)}
    alike = list({(one.requested, one.grows): one for one in made}.values())
    covered = {}
    for scale in scales:
        sizes = {one.size(scale) for one in alike}
        covered[scale] = sum(size * count for size, count in have.items() if size in sizes)
    # Of two scales that cover the same bytes, the one closer to 1 is more likely.
    return sorted(scales, key=lambda scale: (-covered[scale], abs(scale - 1)))[:_FOLLOWED]


def _furthest(have: Counter[int], changes: list[tuple[int, int, _Made]], scale: Fraction) -> tuple[int, int]:
    """Return the best match of the step's allocations in use with the nameless ones, and the event where it is reached.

    The match is the bytes in use that fit the nameless allocations, less those that do not. Of several events with the
    best match, it is the first.
    """
    stands: Counter[int] = Counter()
    fits, best, at = 0, 0, -1
    for event, sign, one in changes:
        size = one.size(scale)
        within = stands[size] < have[size] if sign > 0 else stands[size] <= have[size]
        stands[size] += sign
        fits += sign * (size if within else -size)
        if fits > best:
            best, at = fits, event
    return best, at


def _grown(one: _Made, scale: Fraction) -> tuple[int, ...] | None:
    """Return the shape of *one* in the failing step, if its first dimension is the batch; ``None`` if not sure."""
    shape = one.owner.shape
    if not one.grows or not shape or (scale * shape[0]).denominator != 1:
        return None if one.grows else shape
    return int(scale * shape[0]), *shape[1:]
