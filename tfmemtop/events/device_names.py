"""Parses the names of devices in events: ``GPU:0``, ``CPU:0``, and ``HOST:0`` for the pool of pinned host memory."""

from enum import Enum
from functools import lru_cache
from typing import NamedTuple


class DeviceKind(Enum):
    """The memory that a pool takes its bytes from."""

    GPU = "GPU"
    CPU = "CPU"
    PINNED = "HOST"
    """Host memory that GPUs can reach: TensorFlow has a pool of it beside its devices."""
    OTHER = ""


class DeviceName(NamedTuple):
    """A logical device of TensorFlow; ``number`` is ``None`` where the name has no number."""

    kind: DeviceKind
    number: int | None


_KINDS = {kind.value: kind for kind in DeviceKind}


@lru_cache(maxsize=1024)
def parse_device(name: str) -> DeviceName:
    """Parse *name*, as the hook spells it. The kind is ``OTHER`` if it is not known here."""
    kind, _, index = name.partition(":")
    return DeviceName(_KINDS.get(kind, DeviceKind.OTHER), int(index) if index.isdecimal() and len(index) < 10 else None)


def kind_of(name: str) -> DeviceKind:
    """Return the kind of the device *name*."""
    return parse_device(name).kind


@lru_cache(maxsize=1024)
def is_gpu(name: str) -> bool:
    """Return whether *name* is the name of a GPU."""
    return kind_of(name) is DeviceKind.GPU


@lru_cache(maxsize=1024)
def is_cpu(name: str) -> bool:
    """Return whether *name* is the name of a CPU device."""
    return kind_of(name) is DeviceKind.CPU


@lru_cache(maxsize=1024)
def is_pinned(name: str) -> bool:
    """Return whether *name* is the name of the pool of pinned host memory."""
    return kind_of(name) is DeviceKind.PINNED
