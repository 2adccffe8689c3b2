"""Notices the data sets of tf.data that keep elements: buffers to shuffle, caches, batches that are made ahead.

Sizes are computed as a data set is made, from its arguments and from the shapes of its input. Only weak references are
kept.
"""

import _operator as operator
from _weakref import ref
from typing import Any, NamedTuple, Optional

from .messenger import encoded
from .views import name_and_module

SENT = 20
_KINDS = {
    **{"_ShuffleDataset": "shuffle", "CacheDataset": "cache", "_PrefetchDataset": "prefetch"},
    **{"_BatchDataset": "batch", "_ParallelBatchDataset": "batch"},
}
_GENERATOR = "_GeneratorDataset"
_NO_SIZE = {"string", "resource", "variant"}


class _Buffer(NamedTuple):
    """A data set: the most elements that it keeps, and the bytes of each; ``None`` where that is not known."""

    kind: str
    elements: Optional[int]
    each: Optional[int]


class Datasets:
    """The data sets that keep elements and are alive."""

    def __init__(self) -> None:
        self._buffers: dict[Any, _Buffer] = {}  # by weak reference; each goes with its data set
        self._generators = 0  # data sets that were made of Python generators
        self.made = 0

    def add(self, dataset: Any, arguments: "tuple[Any, ...]", named: "dict[str, Any]") -> None:
        """Note *dataset*, which TensorFlow is making with these arguments, if it is of a kind that keeps elements."""
        name = name_and_module(type(dataset))[0]
        if name == _GENERATOR:
            self._generators += 1
        kind = _KINDS.get(name)
        if kind is None:
            return
        self.made += 1
        given = dict(zip(("input_dataset", "size"), arguments))
        given.update(named)
        if kind == "cache" and given.get("filename", given.get("size")):
            return  # in a file
        size = given.get("size", given.get("buffer_size", given.get("batch_size")))
        elements = _number(size) if kind != "cache" else None
        each = self._each(given["input_dataset"])
        self._buffers[ref(dataset, self._buffers.pop)] = _Buffer(kind, elements, each)

    def _each(self, source: Any) -> Optional[int]:
        """Return the bytes of one element of the data set *source*."""
        if not name_and_module(type(source))[1].startswith("tensorflow."):
            return None  # its shapes would be found by code of the script's
        total = 0
        for shape, dtype in zip(source._flat_shapes, source._flat_types):
            count = shape.num_elements()
            if count is None or dtype.name in _NO_SIZE:
                break
            total += count * dtype.size
        else:
            return total
        before = self._buffers.get(ref(source))
        if before is None or before.each is None:
            return None
        return before.each if before.kind != "batch" else before.elements and before.elements * before.each

    def rows(self) -> "list[str]":
        """Return the data sets that are alive as they are sent, the largest first."""
        kept = list(self._buffers.values())
        kept.sort(key=lambda one: -((one.elements or 1) * (one.each or 0)))
        rows = [f"[{encoded(one.kind)}, {encoded(one.elements)}, {encoded(one.each)}]" for one in kept[:SENT]]
        return [*rows, f'["generator", {self._generators}, null]'] if self._generators else rows


def _number(size: Any) -> Optional[int]:
    """Return the *size* of a buffer; ``None`` where TensorFlow chooses it."""
    name, module = name_and_module(type(size))
    if type(size) is not int and name != "EagerTensor" and module != "numpy":
        return None
    number: int = operator.index(size)
    return number if number >= 0 else None
