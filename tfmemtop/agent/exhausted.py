"""What TensorFlow's out-of-memory messages say."""

import re
import time
from typing import TYPE_CHECKING, NamedTuple, Optional

if TYPE_CHECKING:
    from .core import Agent

# TensorFlow raises RESOURCE_EXHAUSTED for full queues and quotas as well.
_ALLOCATION = re.compile(r"OOM when allocating|out of memory|failed to allocate", re.IGNORECASE)
_TENSOR = re.compile(r"with shape\[([\d,]*)\](?: and type (\w+))?")
_BYTES = re.compile(r"allocat\w+ (\d+)(?: bytes|\.|$)")
_DEVICE = re.compile(r"(?<!device_)/(?:job:\S*?/)?device:([A-Z]+:\d+)(?= by allocator)|on device ordinal (\d+)")
_OPERATION = re.compile(r"\[Op:(\w+)\]")
_NODE = re.compile(r"\{\{node ([^}]+)\}\}")

_SIZES = {"double": 8, "complex64": 8, "complex128": 16, "half": 2, "bool": 1, "float": 4, "string": 24}
_WIDTH = re.compile(r"(?:float|bfloat|q?u?int)(\d+)")

_SAME_S = 1.0  # TensorFlow tries for 10 s before it fails: a second failure is never that soon


class Exhausted(NamedTuple):
    """A failed allocation; ``requested`` is bytes. ``None`` where the message does not say."""

    device: Optional[str]
    requested: Optional[int]
    operation: Optional[str]


def parse(message: str) -> Optional[Exhausted]:
    """What *message* says, or ``None`` if it is of something else than memory."""
    if not _ALLOCATION.search(message):
        return None
    device, tensor, plain = _DEVICE.search(message), _TENSOR.search(message), _BYTES.search(message)
    operation = _OPERATION.search(message) or _NODE.search(message)
    requested = _tensor_bytes(tensor[1], tensor[2]) if tensor else int(plain[1]) if plain else None
    place = None if device is None else device[1] or f"GPU:{device[2]}"
    return Exhausted(place, requested, operation[1] if operation else None)


def _tensor_bytes(shape: str, dtype: Optional[str]) -> Optional[int]:
    width = _WIDTH.fullmatch(dtype or "")
    size = _SIZES.get(dtype or "", max(1, int(width[1]) // 8) if width else None)
    if size is None:
        return None
    for extent in shape.split(","):
        size *= int(extent or 1)
    return size


class Exhaustion:
    """Reports failed allocations, each once although TensorFlow may make several exceptions of it."""

    def __init__(self, agent: "Agent") -> None:
        self._agent = agent
        self._last = ("", 0.0)

    def notice(self, message: object) -> None:
        """An exception with *message* is being made."""
        text = message if type(message) is str else ""
        found = parse(text)
        if found is None:
            return
        now, (last, at) = time.monotonic(), self._last
        self._last = text, now
        if now - at < _SAME_S and (text in last or last in text):
            return
        self._agent.send("out_of_memory", message=text, **found._asdict())
