"""The spelling of devices in events: ``GPU:0``, ``CPU:0``, and ``HOST:0`` for the pool of pinned host memory."""

from enum import Enum
from functools import lru_cache
from typing import NamedTuple


class DeviceKind(Enum):
    """What a pool takes its memory from."""

    GPU = "GPU"
    CPU = "CPU"
    PINNED = "HOST"
    """Host memory that GPUs can reach: TensorFlow has a pool of it beside its devices."""
    OTHER = ""


class DeviceName(NamedTuple):
    """A logical device of TensorFlow's; ``number`` is ``None`` where the name has no number."""

    kind: DeviceKind
    number: int | None


_KINDS = {kind.value: kind for kind in DeviceKind}


@lru_cache(maxsize=1024)
def parse_device(name: str) -> DeviceName:
    """*name* as the hook spells it; of a kind that is not known here ``OTHER``."""
    kind, _, index = name.partition(":")
    return DeviceName(_KINDS.get(kind, DeviceKind.OTHER), int(index) if index.isdecimal() and len(index) < 10 else None)


def kind_of(name: str) -> DeviceKind:
    """The kind of the device *name*."""
    return parse_device(name).kind


def is_gpu(name: str) -> bool:
    """Whether *name* is a GPU's."""
    return kind_of(name) is DeviceKind.GPU


def is_cpu(name: str) -> bool:
    """Whether *name* is the CPU device's."""
    return kind_of(name) is DeviceKind.CPU


def is_pinned(name: str) -> bool:
    """Whether *name* is the pool of pinned host memory."""
    return kind_of(name) is DeviceKind.PINNED
