"""How much memory a run can be given on this machine: what a limit is a share of, and whether it fits. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from tfmemtop.settings import Settings
from tfmemtop.units import MIB, format_bytes, parse_size

HostOwner = Literal["machine", "container", "job", "cgroup"]
"""Whose limit bounds the host memory."""


class Whole(NamedTuple):
    """The memory that a limit is a share of: ``size`` bytes, ``None`` if unknown, and whose it is, in words."""

    size: int | None
    owner: str


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
        owner = "control group" if self.host_memory_of == "cgroup" else self.host_memory_of
        return Whole(self.host_memory, f"this {owner}")

    def whole(self, settings: Settings) -> Whole:
        """The smallest GPU that a run with *settings* sees; on a machine without GPUs, the host memory."""
        if not self.uuids:
            return self.host
        visible = range(len(self.totals)) if settings.gpus is None else settings.gpus
        known = [(total, index) for index, total in enumerate(self.totals) if index in visible and total is not None]
        if not known:
            return Whole(None, "the GPU")
        size, index = min(known)
        return Whole(size, f"GPU {index}")


def needs_gpus(settings: Settings) -> bool:
    """Whether the GPUs must be known before a run with *settings* starts. Asking the driver takes time."""
    return not (settings.gpus is None and settings.memory_limit is None and settings.allocator is None)


def parse_limit(text: str, whole: Whole) -> int:
    """Bytes meant by *text*, a size or a share of *whole*, down to whole MiB: TensorFlow counts limits in these.

    Raises:
        ValueError: it is not a size, more than *whole*, or less than TensorFlow can be given. Its message is one
            sentence fit for the user.
    """
    size = parse_size(text, whole.size)
    _check(size, whole, text)
    if size < MIB:
        raise ValueError(f"{text} is less than 1 MiB, the smallest that TensorFlow can be given")
    return size // MIB * MIB


def check(settings: Settings, machine: Machine) -> None:
    """Check that *machine* has as much memory as *settings* ask for.

    Raises:
        ValueError: it has not. The message is one sentence fit for the user.
    """
    for size, whole in ((settings.memory_limit, machine.whole(settings)), (settings.cpu_pool, machine.host)):
        if size is not None:
            _check(size, whole, format_bytes(size))


def _check(size: int, whole: Whole, text: str) -> None:
    if whole.size is not None and size > whole.size:
        raise ValueError(f"{text} is more than {whole.owner} has, {format_bytes(whole.size)}")
