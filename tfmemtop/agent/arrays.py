"""NumPy's arrays that a search for paths meets on its way. Python's garbage collector does not list them."""

import sys
from itertools import compress, starmap
from typing import Any, Callable

from .messenger import encoded
from .objects import Flat, Step, called, identity, text_of, without_result
from .views import class_dict, name_and_module

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
