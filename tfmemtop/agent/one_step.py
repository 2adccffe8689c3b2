"""Reads the script's objects: no other thread runs during a read, nothing is kept alive, no code of the script's runs.

Each read is one call of a C function. It goes from an object that is alive anyway down to the objects of interest. It
returns identities, classes and plain keys, and releases all else before it returns. So the agent's thread is never the
last to hold an object of the script's, whose finalizer would then run in it. Only methods of Python's own types are
called, never those that a class of the script's has put in their place.
"""

import gc
from _weakref import ref
from itertools import chain, compress, count, repeat, starmap
from typing import TYPE_CHECKING, Any, Callable, NamedTuple, Optional

if TYPE_CHECKING:
    from collections.abc import Iterator

MOST, MOST_KEYS = 200_000, 50_000
"""The most items of a sequence, and of a dict, that are read; one with more is left out. So many take about 40 ms."""

Way = Callable[["Iterator[Any]"], "Iterator[Any]"]
"""From an iterator of one object to an iterator of one that it holds; nothing is fetched before the latter is read."""

identity = object.__hash__
"""Returns a number that differs for objects alive at the same time. Unlike ``id``, it calls no audit hook."""

PLAIN = {identity(kind) for kind in (str, int, float, bool, bytes, type(None))}
"""The identities of the classes whose instances are plain values: only keys of these classes are read."""

_DICT: Any = dict
_MAPPING: Any = type(type.__dict__)


def alive(choose: "Callable[[list[Any]], Iterator[bool]]") -> "list[ref[Any]]":
    """Return weak references to those objects that Python's garbage collector lists and *choose* is true for.

    *choose* gets an empty list, and returns an iterator that goes through it once the objects are in it. It may call C
    functions only.

    ``gc.get_referrers`` is not used, though it lists only the objects of a class: on Python 3.11 it crashes where an
    object that it visits gets its dict made for that, as pybind11's objects do, and this starts a collection.
    """
    everything: list[Any] = []
    chosen = choose(everything)
    # From filling the list to emptying it is one step of the interpreter, in which no other thread can run. So no
    # object that the script releases is held here.
    found: list[Any] = list(
        chain(
            map(everything.extend, starmap(gc.get_objects, ((),))),
            map(ref, compress(everything, chosen)),
            starmap(everything.clear, ((),)),
        )
    )
    return found[1:-1]


class Container(NamedTuple):
    """The functions that read a kind of container; ``keys`` is ``None`` for a sequence, ``item`` for a mapping."""

    length: "Callable[[Any], int]"
    values: "Callable[[Any], Any]"
    keys: "Optional[Callable[[Any], Any]]" = None
    item: "Optional[Callable[[Any, int], Any]]" = None

    @property
    def most(self) -> int:
        """The most items that are read."""
        return MOST if self.keys is None else MOST_KEYS

    def way(self, position: int) -> Way:
        """Return the way to the value at *position*."""
        item, values = self.item, self.values
        if item is not None:
            return lambda found: map(item, found, repeat(position))
        # Not by its key: a look-up would compare it with the script's other keys, in code of the script's.
        # The values are read to their end, else an iterator would hold them.
        return lambda found: compress(
            chain.from_iterable(map(values, found)), chain(repeat(False, position), (True,), repeat(False))
        )


MAPPING = Container(_DICT.__len__, _DICT.values, _DICT.keys)
CLASS = Container(_MAPPING.__len__, _MAPPING.values, _MAPPING.keys)
LIST = Container(list.__len__, list.__iter__, None, list.__getitem__)
TUPLE = Container(tuple.__len__, tuple.__iter__, None, tuple.__getitem__)


def only(found: "Iterator[Any]", passes: Way) -> "Iterator[Any]":
    """Yield the same object, if the value that *passes* makes of it is true."""
    box: list[Any] = []
    return chain(
        filter(None, map(box.append, found)),  # nothing: this only fills the box
        compress(box, passes(iter(box))),
        filter(None, starmap(box.clear, ((),))),
    )


class Rows(NamedTuple):
    """What a container holds, in its order; ``keys`` has the plain keys by position.

    Classes may be kept: only the collector deletes them, and it never runs in the agent's thread.
    """

    whole: int
    items: "list[int]"
    kinds: "list[type]"
    keys: "dict[int, Any]"


def through(getter: "Callable[[Any], Any]") -> Way:
    """Return the way that calls the C function *getter* with the object."""
    return lambda found: map(getter, found)


def number(found: "Iterator[Any]", container: Container) -> int:
    """Return how many items the container that is *found* has; -1 if it is not there."""
    box: list[Any] = []
    told: list[Any] = list(chain(map(box.append, found), map(container.length, box), starmap(box.clear, ((),))))
    return told[1] if len(told) == 3 else -1


def rows(found: "Callable[[], Iterator[Any]]", container: Container) -> Optional[Rows]:
    """Return what the container that is *found* holds; ``None`` if it is too large, or is not there.

    If something on the way to it has gone, this raises what Python raises there.
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
    """Return what is in the containers that one *outer* container holds; ``None`` if that is too much, or has changed.

    *way* leads from each object in the outer container to the inner container.
    """
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
    """Return identity and class of the one object that is *found*; ``None`` if there is none."""
    box: list[Any] = []
    parts: Any = map(box.append, found), map(identity, box), map(type, box), starmap(box.clear, ((),))
    told = list(chain(*parts))
    return (told[1], told[2]) if len(told) == 4 else None


def _all(each: "Callable[[Any], Any]", box: "list[Any]") -> "Iterator[Any]":
    return chain.from_iterable(map(each, box))
