"""How much memory a run can be given on this machine: what a limit is a share of, and whether it fits. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from tfmemtop.settings import Settings
from tfmemtop.units import MIB, parse_size

HostOwner = Literal["machine", "container", "job", "cgroup"]
"""Whose limit bounds the host memory."""


class Whole(NamedTuple):
    """The memory that a limit is a share of: ``size`` bytes, ``None`` if unknown.

    ``owner`` is whose it is: whose limit bounds the host memory, or a GPU's index in NVML's order, ``None`` if unknown.
    """

    size: int | None
    owner: HostOwner | int | None


class TooMuch(ValueError):
    """*size* bytes are more than ``whole.size``. ``words/unusable.py`` says it to the user.

    *text* is the size as it was typed, empty if it was not.
    """

    def __init__(self, size: int, whole: Whole, text: str = "") -> None:
        super().__init__(size, whole, text)
        self.size = size
        self.whole = whole
        self.text = text


class TooLittle(ValueError):
    """*text* is less than TensorFlow can be given, 1 MiB. ``words/unusable.py`` says it to the user."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text


@dataclass(frozen=True)
class Machine:
    """What a run's settings are checked against.

    ``uuids`` and ``totals`` are the GPUs' in NVML's order. ``host_memory`` is what a cgroup leaves of the host's.
    Sizes are bytes, ``None`` if unknown. ``trouble`` says why there may be GPUs that cannot be read.
    """

    uuids: Sequence[str] = ()
    totals: Sequence[int | None] = ()
    host_memory: int | None = None
    host_memory_of: HostOwner = "machine"
    trouble: str = ""

    @property
    def host(self) -> Whole:
        """The host memory."""
        return Whole(self.host_memory, self.host_memory_of)

    def whole(self, settings: Settings) -> Whole:
        """The smallest GPU that a run with *settings* sees; on a machine without GPUs, the host memory."""
        if not self.uuids:
            return self.host
        visible = range(len(self.totals)) if settings.gpus is None else settings.gpus
        known = [(total, index) for index, total in enumerate(self.totals) if index in visible and total is not None]
        if not known:
            return Whole(None, None)
        size, index = min(known)
        return Whole(size, index)


def needs_gpus(settings: Settings) -> bool:
    """Whether the GPUs must be known before a run with *settings* starts. Asking the driver takes time."""
    return not (settings.gpus is None and settings.memory_limit is None and settings.allocator is None)


def parse_limit(text: str, whole: Whole) -> int:
    """Bytes meant by *text*, a size or a share of *whole*, down to whole MiB: TensorFlow counts limits in these.

    Raises:
        NotASize: it is not a size.
        TooMuch: it is more than *whole*.
        TooLittle: it is less than TensorFlow can be given.
    """
    size = parse_size(text, whole.size)
    _check(size, whole, text)
    if size < MIB:
        raise TooLittle(text)
    return size // MIB * MIB


def check(settings: Settings, machine: Machine) -> None:
    """Check that *machine* has as much memory as *settings* ask for.

    Raises:
        TooMuch: it has not.
    """
    for size, whole in ((settings.memory_limit, machine.whole(settings)), (settings.cpu_pool, machine.host)):
        if size is not None:
            _check(size, whole)


def _check(size: int, whole: Whole, text: str = "") -> None:
    if whole.size is not None and size > whole.size:
        raise TooMuch(size, whole, text)
