"""A limit to suggest, as a value: how large it is, and what it rests on. Pure."""

from enum import Enum

import msgspec
from msgspec.structs import replace

from tfmemtop.settings import Growth
from tfmemtop.units import MIB

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
