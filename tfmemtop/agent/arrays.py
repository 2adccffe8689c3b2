"""NumPy's arrays that a search for paths meets on its way. Python's garbage collector does not list them."""

import sys
from itertools import compress
from typing import TYPE_CHECKING, Any

from .messenger import encoded
from .objects import Flat, Step, facts, identity, text_of, without_result
from .views import class_dict, name_and_module

if TYPE_CHECKING:
    from collections.abc import Iterator

LARGE = 16 << 20
"""Bytes from which on an array is noted."""
SENT = 20
_MOST = 64
_NAME = 200  # characters
_NOTHING = identity(None)
_FACTS = "nbytes", "shape", "dtype", "base"


class Arrays:
    """The large arrays that were met. Views of the memory of one array count once, and only where it was not met."""

    def __init__(self) -> None:
        numpy: Any = sys.modules["numpy"]  # which TensorFlow has imported
        of_array, of_dtype = class_dict(numpy.ndarray), class_dict(numpy.dtype)
        self.kind: Any = numpy.ndarray
        """The class of arrays."""
        self.found: dict[int, tuple[str, str, str, int]] = {}
        """By the identity of what has the memory: path, shape, type and bytes."""
        self._size, self._shape, self._dtype, self._base = (of_array[name].__get__ for name in _FACTS)
        self._kind_of = of_dtype["type"].__get__

    def sizes(self, step: Step, found: "Iterator[Any]", values: Flat, chosen: bytearray) -> "list[int]":
        """Return the bytes of each of the *chosen* of these *values*, which are arrays."""
        return [size for _, size in facts(step, found, values, chosen, self._size)]

    def note(self, step: Step, found: "Iterator[Any]", values: Flat, chosen: bytearray, paths: "list[str]") -> None:
        """Note the *chosen* of these *values*, which are large arrays. Their paths are *paths*."""
        box = step.box()
        read = step.read(
            without_result(map(box.extend, (compress(values(found), chosen),))),
            map(identity, box),
            map(identity, map(self._base, box)),
            map(self._shape, box),
            map(self._kind_of, map(self._dtype, box)),
            map(self._size, box),
        )
        number = len(read) // 5
        if number != len(paths):
            return  # the container has changed meanwhile
        for at, path in enumerate(paths):
            item, base, shape, kind, size = read[at::number]
            owner = item if base == _NOTHING else base
            if owner == item or (owner not in self.found and len(self.found) < _MOST):
                # numpy.bool_ is the class of bool
                self.found[owner] = path, text_of(shape), name_and_module(kind)[0].rstrip("_"), size

    def rows(self) -> "list[str]":
        """Return the arrays as they are sent, the largest first."""
        found = sorted(self.found.values(), key=lambda one: -one[3])[:SENT]
        return [f"[{encoded(path[:_NAME])}, {shape}, {encoded(dtype)}, {size}]" for path, shape, dtype, size in found]
