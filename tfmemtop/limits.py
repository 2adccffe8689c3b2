"""How much memory a run can use on this machine: the memory that a limit is a share of, and whether it fits. Pure."""

from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple

import msgspec

from tfmemtop.settings import Settings
from tfmemtop.units import MIB, parse_size


class HostOwner(Enum):
    """What sets the limit of the host memory."""

    MACHINE = "machine"  # its own size: no cgroup sets a limit
    CONTAINER = "container"
    JOB = "job"
    CGROUP = "cgroup"  # a cgroup of something else


class Whole(NamedTuple):
    """The memory that a limit is a share of: ``size`` bytes, ``None`` if unknown.

    ``owner`` identifies the memory. For a GPU it is the index in NVML's order. For host memory it is what sets its
    limit. ``None`` if unknown.
    """

    size: int | None
    owner: HostOwner | int | None


class TooMuch(ValueError):
    """*size* bytes are more than ``whole.size``. ``findings/start_errors.py`` has the message for the user.

    *text* is the size as the user typed it; empty if the size was not typed.
    """

    def __init__(self, size: int, whole: Whole, text: str = "") -> None:
        super().__init__(size, whole, text)
        self.size = size
        self.whole = whole
        self.text = text


class TooLittle(ValueError):
    """*text* is less than 1 MiB, TensorFlow's smallest limit. ``findings/start_errors.py`` has the text for users."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text


class Machine(msgspec.Struct, frozen=True, dict=True):
    """The GPUs and the memory against which a run's settings are checked.

    ``uuids`` and ``totals`` belong to the GPUs, in NVML's order. ``host_memory`` is the part of the host's memory that
    the cgroup allows. Sizes are bytes, ``None`` if unknown. ``trouble`` is the reason why some GPUs may be unreadable.
    """

    uuids: Sequence[str] = ()
    totals: Sequence[int | None] = ()
    host_memory: int | None = None
    host_memory_of: HostOwner = HostOwner.MACHINE
    trouble: str = ""

    @property
    def host(self) -> Whole:
        """The host memory."""
        return Whole(self.host_memory, self.host_memory_of)

    def whole(self, settings: Settings) -> Whole:
        """Return the smallest GPU that is visible to a run with *settings*; without any GPU, the host memory."""
        if not self.uuids:
            return self.host
        visible = range(len(self.totals)) if settings.gpus is None else settings.gpus
        known = [(total, index) for index, total in enumerate(self.totals) if index in visible and total is not None]
        if not known:
            return Whole(None, None)
        size, index = min(known)
        return Whole(size, index)


def needs_gpus(settings: Settings) -> bool:
    """Return whether the GPUs must be known before a run with *settings* starts. A call to the driver takes time."""
    return not (settings.gpus is None and settings.memory_limit is None and settings.allocator is None)


def parse_limit(text: str, whole: Whole) -> int:
    """Return the bytes that *text* means, rounded down to whole MiB, because TensorFlow counts limits in MiB.

    *text* is a size, or a share of *whole*.

    Raises:
        NotASize: *text* is not a size.
        TooMuch: the size is more than *whole*.
        TooLittle: the size is less than 1 MiB.
    """
    size = parse_size(text, whole.size)
    _check(size, whole, text)
    if size < MIB:
        raise TooLittle(text)
    return size // MIB * MIB


def check(settings: Settings, machine: Machine) -> None:
    """Check that *machine* has as much memory as *settings* need.

    Raises:
        TooMuch: *machine* has less.
    """
    for size, whole in ((settings.memory_limit, machine.whole(settings)), (settings.cpu_pool, machine.host)):
        if size is not None:
            _check(size, whole)


def _check(size: int, whole: Whole, text: str = "") -> None:
    if whole.size is not None and size > whole.size:
        raise TooMuch(size, whole, text)
