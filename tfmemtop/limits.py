"""Limits of a run's memory. Pure.

Here are the memory of this machine that a limit is a share of, whether a limit fits, a limit to suggest, and what it
rests on.
"""

import re
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from tfmemtop.settings import Growth, Settings
from tfmemtop.units import MIB, format_bytes, parse_size


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

    @property
    def name(self) -> str:
        """Whose memory it is: ``GPU 1``, ``this container``."""
        match self.owner:
            case None:
                return "the GPU"
            case int():
                return f"GPU {self.owner}"
            case HostOwner.CGROUP:
                return "this control group"
        return f"this {self.owner.value}"


class FreeGpus(msgspec.Struct, frozen=True):
    """A choice of GPUs that is made at the start: the *count* GPUs with the most free memory."""

    count: int = 1

    def __str__(self) -> str:
        return "free" if self.count == 1 else f"free:{self.count}"

    def chosen(self, free: Mapping[int, int]) -> tuple[int, ...]:
        """Return the indices of these GPUs, that with the most free memory first. *free* has the free bytes by index.

        Raises:
            ValueError: *free* has fewer GPUs.
        """
        if len(free) < self.count:
            count = len(free)
            there = f"are only {count} GPUs" if count > 1 else f"is {'only one' if count else 'no'} GPU"
            raise ValueError(f"{self}: there {there} whose free memory is known")
        return tuple(sorted(free, key=lambda index: (-free[index], index))[: self.count])


_FREE_GPUS = re.compile(r"free(?::([1-9]\d{0,2}))?")


def parse_gpus(text: str) -> tuple[int, ...] | FreeGpus:
    """Return ``0,2`` as NVML indices. ``none`` and an empty text mean no GPU at all. ``free:2`` is chosen later.

    Raises:
        ValueError: *text* is something else, or names a GPU twice.
    """
    words = text.lower().replace(",", " ").split()
    if found := _FREE_GPUS.fullmatch(" ".join(words)):
        return FreeGpus(int(found[1] or 1))
    if words in ([], ["none"]):
        return ()
    if not all(word.isascii() and word.isdigit() for word in words):
        raise ValueError(f"{text!r} is not a list of GPUs such as 0,2; give numbers as nvidia-smi shows them, or none")
    numbers = tuple(map(int, words))
    if len(set(numbers)) < len(numbers):
        raise ValueError(f"{text!r} names a GPU twice")
    return numbers


def typed_gpus(gpus: Sequence[int]) -> str:
    """Return *gpus* as :func:`parse_gpus` parses them."""
    return ",".join(map(str, gpus)) or "none"


class Machine(msgspec.Struct, frozen=True, dict=True):
    """The GPUs and the memory against which a run's settings are checked.

    ``uuids`` and ``totals`` belong to the GPUs, in NVML's order. ``host_memory`` is the part of the host's memory that
    the cgroup allows. Sizes are bytes, ``None`` if unknown. ``trouble`` is the reason why some GPUs may be unreadable.
    ``free`` has the free memory of the GPUs that the environment does not hide, by index.
    """

    uuids: Sequence[str] = ()
    totals: Sequence[int | None] = ()
    free: Mapping[int, int] = {}
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
        ValueError: *text* is not a size, or the size is more than *whole* or less than 1 MiB.
    """
    size = parse_size(text, whole.size)
    _check(size, whole, text)
    if size < MIB:
        unit = f"; {text} MiB is {text}M" if text.isdecimal() and int(text) else ""
        raise ValueError(f"{text} is less than 1 MiB, the smallest that TensorFlow can be given{unit}")
    return size // MIB * MIB


def check(settings: Settings, machine: Machine) -> None:
    """Check that *machine* has as much memory as *settings* need.

    Raises:
        ValueError: *machine* has less.
    """
    for size, whole in ((settings.memory_limit, machine.whole(settings)), (settings.cpu_pool, machine.host)):
        if size is not None:
            _check(size, whole)


def _check(size: int, whole: Whole, text: str = "") -> None:
    if whole.size is not None and size > whole.size:
        raise ValueError(f"{text or format_bytes(size)} is more than {whole.name} has, {format_bytes(whole.size)}")


_MARGIN_SHARE, _MARGIN_LEAST = 0.05, 16 * MIB
"""The margin is needed because threads run in another order in each run, so that the use of memory differs a little."""

_ABOVE_PEAK = 3, 2
"""The least factor between the peak and a limit, as a fraction: 3/2.

If sizes are random, a pool may be hardly larger than its peak in one run, and twice as large in the next. A training
with batches of random size, whose peak was 516 MiB, reached a pool of 518 or of 1030 MiB. It failed under a limit of
544 MiB each time, and passed under 690 and 775 MiB each time.
"""


class Basis(str, Enum):
    """What a suggested limit rests on."""

    POOL_REACHED = "pool_reached"
    """A run ended well, and its pool reached this size. Up to this limit a pool takes the same regions again."""

    FIT = "fit"
    """A try of ``fit`` passed under a limit that is lower by the margin."""

    REPLAYED = "replayed"
    """A run's allocations, replayed with TensorFlow's own allocator, fit under this limit. The run ended well, and did
    not need more memory later."""

    REPLAYED_SO_FAR = "guess_replayed_so_far"
    """As ``REPLAYED``, but the run still goes on, or a person ended it."""

    POOL_SO_FAR = "guess_pool_so_far"
    """The size that the pool had reached. The run still goes on, a person ended it, or its last moments could not be
    read, so the pool may have grown later."""

    PEAK = "guess_peak"
    """Only the peak in use is known. No pool was read, or growth was off and the pool was one region from the start."""

    OTHER_GROWTH = "guess_other_growth"
    """The run that worked had growth on, and the limit is for growth off, or the reverse. The regions would differ."""

    @property
    def is_guess(self) -> bool:
        """Whether no run is known to have worked under such a limit."""
        return self not in (Basis.POOL_REACHED, Basis.FIT, Basis.REPLAYED)


class DeviceLimit(msgspec.Struct, frozen=True):
    """The limit of one logical device: ``size`` bytes, in whole MiB.

    ``card`` identifies the GPU. It serves only to find which devices are on the same GPU.
    """

    device: str
    card: str
    size: int


class SuggestedLimit(msgspec.Struct, frozen=True):
    """A limit of ``size`` bytes, whole MiB, for each GPU, or for the CPU's pool.

    It rests on ``figure`` bytes, which were read in run number ``run`` (``None`` for ``fit``) with that ``growth``.
    ``growth`` is ``None`` if it is not known, and for the CPU's pool, which always grows. ``each`` are the limits of
    the logical devices, as far as these are known. If the limit rests on a replay, ``seen`` are the numbers of
    allocations and of steps that were replayed, and ``figure`` is the smallest limit that could be enough if
    TensorFlow waits for memory to become free.
    """

    size: int
    basis: Basis
    figure: int
    on_gpu: bool
    run: int | None = None
    growth: Growth | None = None
    each: tuple[DeviceLimit, ...] = ()
    seen: tuple[int, int] | None = None

    @property
    def is_guess(self) -> bool:
        """Whether no run is known to have worked under this limit."""
        return self.basis.is_guess

    def under(self, growth: Growth | None) -> "SuggestedLimit":
        """Return this suggestion for a run with *growth* (``None``: with the same growth as before)."""
        if not self.on_gpu or self.is_guess or growth in (None, self.growth):
            return self
        return replace(self, basis=Basis.OTHER_GROWTH)

    @property
    def gpus(self) -> int:
        """The number of GPUs to which the limit applies, each by itself; 0 for the CPU's pool."""
        return len({limit.card for limit in self.each}) if self.on_gpu else 0

    @property
    def divided(self) -> bool:
        """Whether several logical devices share a GPU. If so, each of them needs a limit of its own."""
        return self.on_gpu and len(self.each) > self.gpus


def with_margin(size: int) -> int:
    """Return *size* bytes plus 5 %, or plus 16 MiB if that is more, rounded up to whole MiB."""
    return whole_mib(size + max(int(size * _MARGIN_SHARE), _MARGIN_LEAST))


def with_room(pool: int, peak: int) -> int:
    """Return a limit in bytes for a pool that grows.

    It is :func:`with_margin` of *pool*, and at least one and a half times *peak*.
    """
    times, by = _ABOVE_PEAK
    return max(with_margin(pool), whole_mib(peak * times // by))


def whole_mib(size: int) -> int:
    """Return *size* bytes rounded up to whole MiB, because TensorFlow counts limits in MiB."""
    return -(-size // MIB) * MIB


def typed(size: int) -> str:
    """Return *size* bytes in the form that options and dialogs accept: ``1078M``."""
    return f"{size // MIB}M"
