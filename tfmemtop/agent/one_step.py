"""Reads of the script's objects that no other thread comes between, that keep nothing alive and run no code of its.

Each read is one call of a C function, which goes from an object that lives anyway down to what is looked at, tells
identities, classes and plain keys, and lets go of all else before it returns: our thread is never the last to hold
an object of the script's, whose finalizer would then run in it. Only methods of Python's own types are called, never
those that a class of the script's has put in their place.
"""

import gc
from _weakref import ref
from itertools import chain, compress, count, repeat, starmap
from typing import TYPE_CHECKING, Any, Callable, NamedTuple, Optional

if TYPE_CHECKING:
    from collections.abc import Iterator

MOST, MOST_KEYS = 200_000, 50_000
"""Items of a sequence and of a dict that are looked at; one with more is left out. So many take about 40 ms."""

Way = Callable[["Iterator[Any]"], "Iterator[Any]"]
"""From an object to one that it holds, each the only one of its iterator; nothing is fetched before it is read."""

identity = object.__hash__
"""Tells objects that are alive at the same time; unlike ``id``, no audit hook of the script's hears of it."""

PLAIN = {identity(kind) for kind in (str, int, float, bool, bytes, type(None))}
"""Classes, by identity, of keys that are no more than their value."""

_DICT: Any = dict
_MAPPING: Any = type(type.__dict__)


def alive(choose: "Callable[[list[Any]], Iterator[bool]]") -> "list[ref[Any]]":
    """Weak references to all objects that *choose* says true of, among those that Python's garbage collector lists.

    *choose* gets an empty list, and goes through it once the objects are in it. It may call C functions only.

    Not by ``gc.get_referrers``, though it lists only those of a class: on Python 3.11 it crashes where an object that
    it visits has a dict made for that, as pybind11's have, and this sets off a collection.
    """
    everything: list[Any] = []
    chosen = choose(everything)
    # One step of the interpreter from filling the list to emptying it, in which no other thread can take its
    # turn: what the script lets go of is never held by us.
    found: list[Any] = list(
        chain(
            map(everything.extend, starmap(gc.get_objects, ((),))),
            map(ref, compress(everything, chosen)),
            starmap(everything.clear, ((),)),
        )
    )
    return found[1:-1]


class Container(NamedTuple):
    """How to look into a kind of container; ``keys`` is ``None`` for a sequence, ``item`` for a mapping."""

    length: "Callable[[Any], int]"
    values: "Callable[[Any], Any]"
    keys: "Optional[Callable[[Any], Any]]" = None
    item: "Optional[Callable[[Any, int], Any]]" = None

    @property
    def most(self) -> int:
        """Items that are looked at."""
        return MOST if self.keys is None else MOST_KEYS

    def way(self, position: int) -> Way:
        """To the value at *position*."""
        item, values = self.item, self.values
        if item is not None:
            return lambda found: map(item, found, repeat(position))
        # Not by its key: to look that up would ask the script's other keys whether they are equal.
        # To the end of the values, else an iterator would hold them.
        return lambda found: compress(
            chain.from_iterable(map(values, found)), chain(repeat(False, position), (True,), repeat(False))
        )


MAPPING = Container(_DICT.__len__, _DICT.values, _DICT.keys)
CLASS = Container(_MAPPING.__len__, _MAPPING.values, _MAPPING.keys)
LIST = Container(list.__len__, list.__iter__, None, list.__getitem__)
TUPLE = Container(tuple.__len__, tuple.__iter__, None, tuple.__getitem__)


def only(found: "Iterator[Any]", passes: Way) -> "Iterator[Any]":
    """The same, if *passes* makes something true of it."""
    box: list[Any] = []
    return chain(
        filter(None, map(box.append, found)),  # nothing: this only fills the box
        compress(box, passes(iter(box))),
        filter(None, starmap(box.clear, ((),))),
    )


class Rows(NamedTuple):
    """What a container holds, in its order; ``keys`` has the plain ones by position.

    Classes may be kept: they die only in collections, and none runs in our thread.
    """

    whole: int
    items: "list[int]"
    kinds: "list[type]"
    keys: "dict[int, Any]"


def through(getter: "Callable[[Any], Any]") -> Way:
    """By a C function of the object."""
    return lambda found: map(getter, found)


def number(found: "Iterator[Any]", container: Container) -> int:
    """How many items the container that is *found* has; -1 if it is not there."""
    box: list[Any] = []
    told: list[Any] = list(chain(map(box.append, found), map(container.length, box), starmap(box.clear, ((),))))
    return told[1] if len(told) == 3 else -1


def rows(found: "Callable[[], Iterator[Any]]", container: Container) -> Optional[Rows]:
    """What the container that is *found* holds; ``None`` if it is too large, or is not there.

    Raises what Python raises where something on the way to it has gone.
    """
    box: list[Any] = []
    if not 0 <= number(found(), container) <= container.most:
        return None
    each = container.values
    parts: list[Iterator[Any]] = [
        map(box.append, found()),
        map(identity, box),
        map(container.length, box),
        map(identity, _all(each, box)),
        map(type, _all(each, box)),
    ]
    if container.keys is not None:
        plain = map(PLAIN.__contains__, map(identity, map(type, _all(container.keys, box))))
        parts.append(compress(zip(count(), _all(container.keys, box)), plain))
    parts.append(starmap(box.clear, ((),)))
    told = list(chain(*parts))
    if len(told) < 4:
        return None
    middle = 3 + told[2]
    end = middle + told[2]
    return Rows(told[1], told[3:middle], told[middle:end], dict(told[end:-1]))


class Inner(NamedTuple):
    """What each of many containers holds: how many in each, all of them in order, and their plain keys by position."""

    lengths: "list[int]"
    items: "list[int]"
    keys: "dict[int, Any]"


def inner(found: "Callable[[], Iterator[Any]]", outer: Container, way: Way, each: Container) -> Optional[Inner]:
    """What is in the containers that one *outer* container holds, each by that *way*; ``None`` if that is too much."""
    box: list[Any] = []

    def flat(view: "Callable[[Any], Any]") -> "Iterator[Any]":
        return chain.from_iterable(map(view, way(_all(outer.values, box))))

    def lengths() -> "Iterator[Any]":
        return map(each.length, way(_all(outer.values, box)))

    counted = list(chain(map(box.append, found()), lengths(), starmap(box.clear, ((),))))[1:-1]
    total = sum(counted)
    if total > each.most:
        return None
    parts = [map(box.append, found()), lengths(), map(identity, flat(each.values))]
    if each.keys is not None:
        plain = map(PLAIN.__contains__, map(identity, map(type, flat(each.keys))))
        parts.append(compress(zip(count(), flat(each.keys)), plain))
    parts.append(starmap(box.clear, ((),)))
    told = list(chain(*parts))
    middle = 1 + len(counted)
    end = middle + total
    if told[1:middle] != counted or len(told) <= end:
        return None
    return Inner(counted, told[middle:end], dict(told[end:-1]))


def single(found: "Iterator[Any]") -> "Optional[tuple[int, type]]":
    """Identity and class of the one object that is *found*; ``None`` if there is none."""
    box: list[Any] = []
    parts: Any = map(box.append, found), map(identity, box), map(type, box), starmap(box.clear, ((),))
    told = list(chain(*parts))
    return (told[1], told[2]) if len(told) == 4 else None


def _all(each: "Callable[[Any], Any]", box: "list[Any]") -> "Iterator[Any]":
    return chain.from_iterable(map(each, box))
