"""The objects that a search for paths has met, in columns: one container for each would make the collector due.

NumPy's arrays are noted apart, since Python's garbage collector does not list them.
"""

import sys
from itertools import compress, starmap
from typing import TYPE_CHECKING, Any, Callable

from .messenger import encoded
from .objects import Flat, Step, attribute, called, globals_of, identity, text_of, without_result
from .views import CLOSURE, View, class_dict, name_and_module

if TYPE_CHECKING:
    from collections.abc import Iterator


LARGE = 16 << 20
"""Bytes from which on an array is noted."""
SENT = 20
_MOST, _MANY = 64, 8
_NAME = 200  # characters
_NOTHING = identity(None)
_FACTS = "nbytes", "shape", "dtype", "base"


class Arrays:
    """The large arrays that were met, and containers of many that are large together.

    Views of the memory of one array count once, and only where it was not met.
    """

    def __init__(self) -> None:
        numpy: Any = sys.modules["numpy"]  # which TensorFlow has imported
        of_array, of_dtype = class_dict(numpy.ndarray), class_dict(numpy.dtype)
        self.kind: Any = numpy.ndarray
        """The class of arrays."""
        self.found: dict[int, tuple[str, str, str, int]] = {}
        """By the identity of what has the memory: path, shape, type and bytes."""
        self._size, self._shape, self._dtype, self._base = (of_array[name].__get__ for name in _FACTS)
        self._kind_of = of_dtype["type"].__get__

    def note(self, step: Step, values: Flat, chosen: bytearray, path_of: "Callable[[int], str]") -> None:
        """Note those of these *values* that are large; the *chosen* are arrays.

        *path_of* returns the path of the value at a position.
        """
        box, large = step.box(), step.box()
        own = compress(map(self._size, box), map(_NOTHING.__eq__, map(identity, map(self._base, box))))
        are_large = map(LARGE.__le__, map(self._size, box))
        number, total, *read = step.read(
            step.filled(box, values, chosen),
            called(box.__len__),
            starmap(sum, ((own,),)),
            map(LARGE.__le__, map(self._size, box)),
            without_result(map(large.extend, (compress(box, are_large),))),
            map(identity, large),
            map(identity, map(self._base, large)),
            map(self._shape, large),
            map(self._kind_of, map(self._dtype, large)),
            map(self._size, large),
        )
        if number != sum(chosen):
            return  # the container has changed meanwhile
        path = path_of(chosen.index(True))
        if number >= _MANY and total >= LARGE and path.endswith("]"):
            self.found[-1 - len(self.found)] = f"{path.rpartition('[')[0]}[*]", f"[{number}]", "", total
        places = list(compress(compress(range(len(chosen)), chosen), read[:number]))
        for place, at in enumerate(places):
            item, base, shape, kind, size = read[number + place :: len(places)]
            owner = item if base == _NOTHING else base
            if owner == item or (owner not in self.found and len(self.found) < _MOST):
                # numpy.bool_ is the class of bool
                self.found[owner] = path_of(at), text_of(shape), name_and_module(kind)[0].rstrip("_"), size

    def rows(self) -> "list[str]":
        """Return the arrays as they are sent, the largest first."""
        found = sorted(self.found.values(), key=lambda one: -one[3])[:SENT]
        return [f"[{encoded(path[:_NAME])}, {shape}, {encoded(dtype)}, {size}]" for path, shape, dtype, size in found]


ITEM, NUMBERED, LIBRARY = 1, 2, 4  # marks: one of many; its key is a number, or is not plain; in a library


class Nodes:
    """Of each node: its parent, the view and position there, identity and class, piece of the path, marks, depth.

    A root has the parent -1. Nothing is kept of the objects themselves but their classes.
    """

    def __init__(self) -> None:
        self.parents: list[int] = []
        self.views: list[View] = []
        self.positions: list[int] = []
        self.items: list[int] = []
        self.kinds: list[type] = []
        self.texts: list[str] = []
        self.marks: list[int] = []
        self.depths: list[int] = []
        self.threads: dict[int, int] = {}  # of a node that is a frame

    def add(self, parent: int, view: View, position: int, item: int, kind: type, text: str, mark: int) -> int:
        """Add a node, and return its number."""
        self.parents.append(parent)
        self.views.append(view)
        self.positions.append(position)
        self.items.append(item)
        self.kinds.append(kind)
        self.texts.append(text)
        self.marks.append(mark)
        self.depths.append(0 if parent < 0 else self.depths[parent] + 1)
        return len(self.parents) - 1

    def line(self, node: int) -> "list[int]":
        """Return the nodes from the root to *node*."""
        line = []
        while node >= 0:
            line.append(node)
            node = self.parents[node]
        return line[::-1]

    def found(self, step: Step, node: int) -> "Iterator[Any]":
        """Yield the object of *node*, if it is still held by its path."""
        root, *line = self.line(node)
        if root in self.threads:
            found = step.frame(self.threads[root], self.items[root])
        else:
            found = globals_of(self.texts[root] or "__main__")
        for each in line:
            view = self.views[each]
            found = _at(step, view, found)
            found = found if view.container is None else view.container.at(self.positions[each], found)
        return step.same(self.items[node], found) if line and self.items[node] else found

    def held(self, step: Step, node: int, view: View) -> "Iterator[Any]":
        """Yield what *node* has at *view*: a container, or another object."""
        found = self.found(step, node)
        if view is CLOSURE:
            return filter(None, attribute(view.attribute, found))  # a function without one has ``None``
        return _at(step, view, found)


def _at(step: Step, view: View, found: "Iterator[Any]") -> "Iterator[Any]":
    if view.hidden:
        return step.referents(found)
    return attribute(view.attribute, found) if view.attribute else found
