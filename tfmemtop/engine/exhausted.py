"""What TensorFlow's out-of-memory messages say."""

import re
from typing import NamedTuple

_TENSOR = re.compile(r"with shape\[([\d,]*)\](?: and type (\w+))?")
_BYTES = re.compile(r"allocat\w+ (\d+)(?: bytes|\.|$)")
_DEVICE = re.compile(r"(?<!device_)/(?:job:\S*?/)?device:([A-Z]+:\d+)(?= by allocator)|on device ordinal (\d+)")
_OPERATION = re.compile(r"\[Op:(\w+)\]")
_NODE = re.compile(r"\{\{node ([^}]+)\}\}")

_SIZES = {"double": 8, "complex64": 8, "complex128": 16, "half": 2, "bool": 1, "float": 4, "string": 24}
_WIDTH = re.compile(r"(?:float|bfloat|q?u?int)(\d{1,4})")

_LARGEST, _DIGITS = 1 << 63, 20


class Exhausted(NamedTuple):
    """A failed allocation; ``requested`` is bytes. ``None`` where the message does not say."""

    device: str | None
    requested: int | None
    operation: str | None


def parse(message: str) -> Exhausted:
    """What TensorFlow's *message* says of an allocation that failed."""
    device, tensor, plain = _DEVICE.search(message), _TENSOR.search(message), _BYTES.search(message)
    operation = _OPERATION.search(message) or _NODE.search(message)
    requested = _tensor_bytes(tensor[1], tensor[2]) if tensor else _product([1, plain[1]]) if plain else None
    place = None if device is None else device[1] or f"GPU:{device[2]}"
    return Exhausted(place, requested, operation[1] if operation else None)


def _tensor_bytes(shape: str, dtype: str | None) -> int | None:
    width = _WIDTH.fullmatch(dtype or "")
    size = _SIZES.get(dtype or "", max(1, int(width[1]) // 8) if width else None)
    return None if size is None else _product([size, *filter(None, shape.split(","))])


def _product(factors: list[int | str]) -> int | None:
    """``None`` for what no allocator was asked for, since it fits no 64 bits."""
    product = 1
    for factor in factors:
        product *= int(factor) if len(str(factor)) < _DIGITS else _LARGEST
        if product >= _LARGEST:
            return None
    return product
