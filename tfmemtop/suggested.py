"""A limit to suggest, as a value: how large it is, and what it rests on. Pure."""

from dataclasses import dataclass, replace
from enum import Enum

from tfmemtop.settings import Growth
from tfmemtop.units import MIB

_MARGIN_SHARE, _MARGIN_LEAST = 0.05, 16 * MIB
"""Threads take turns in another order in each run, so that the use of memory differs a little."""

_ABOVE_PEAK = 3, 2
"""Where sizes are drawn by chance, a pool may be hardly larger than its peak once, and twice as large the next time.

A training with batches of random size, whose peak was 516 MiB, reached a pool of 518 or of 1030 MiB. It failed under
544 MiB each time, and passed under 690 and 775 each time.
"""


class Basis(str, Enum):
    """What a suggested limit rests on."""

    POOL_REACHED = "pool_reached"
    """A run ended well, and its pool became that large: up to this limit a pool takes the same regions again."""

    FIT = "fit"
    """A try of ``fit`` passed under a limit that is a margin lower."""

    REPLAYED = "replayed"
    """A run's allocations, replayed with TensorFlow's own allocator, fit under it. The run ended well, and needed
    no more later."""

    REPLAYED_SO_FAR = "guess_replayed_so_far"
    """The same, of a run that goes on or was ended by somebody."""

    POOL_SO_FAR = "guess_pool_so_far"
    """The run goes on, somebody ended it, or its last moments could not be read: the pool may have grown after that."""

    PEAK = "guess_peak"
    """Only the peak in use is known: no pool was read, or growth was off, so that it was one region from the start."""

    OTHER_GROWTH = "guess_other_growth"
    """It worked with growth on, or off, and is to be set with the other: the pool would have other regions."""

    FAILED_REQUEST = "guess_failed_request"
    """The pool, and the request for which it had no room. What would have come after that is not known."""

    @property
    def is_guess(self) -> bool:
        """Whether nothing is known to have worked under such a limit."""
        return self not in (Basis.POOL_REACHED, Basis.FIT, Basis.REPLAYED)


@dataclass(frozen=True, slots=True)
class DeviceLimit:
    """The limit of one logical device, in bytes, whole MiB. ``card`` tells apart the GPUs; only its equality counts."""

    device: str
    card: str
    size: int


@dataclass(frozen=True, slots=True)
class SuggestedLimit:
    """A limit of ``size`` bytes, whole MiB, for each GPU, or for the CPU's pool.

    It rests on ``figure`` bytes, seen in run number ``run`` (``None`` for ``fit``) with that ``growth``, which is
    ``None`` for the CPU's pool, since that always grows, and where it is not known. ``each`` are the limits of the
    logical devices, as far as these are known. ``seen`` are the allocations and steps that were replayed, where it
    rests on a replay; ``figure`` then is the smallest limit that could do, by waiting.
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
        """Whether nothing is known to have worked under it."""
        return self.basis.is_guess

    def under(self, growth: Growth | None) -> "SuggestedLimit":
        """The same for a run with *growth* (``None``: as before)."""
        if not self.on_gpu or self.is_guess or growth in (None, self.growth):
            return self
        return replace(self, basis=Basis.OTHER_GROWTH)

    @property
    def gpus(self) -> int:
        """How many GPUs it applies to, each by itself; 0 for the CPU's pool."""
        return len({limit.card for limit in self.each}) if self.on_gpu else 0

    @property
    def divided(self) -> bool:
        """Whether logical devices share a GPU. Then each of them needs a limit of its own."""
        return self.on_gpu and len(self.each) > self.gpus


def with_margin(size: int) -> int:
    """*size* bytes and 5 % more, at least 16 MiB more, in whole MiB."""
    return whole_mib(size + max(int(size * _MARGIN_SHARE), _MARGIN_LEAST))


def with_room(pool: int, peak: int) -> int:
    """A limit for a pool that grows: :func:`with_margin` of *pool*, and at least one and a half times *peak*; bytes."""
    times, by = _ABOVE_PEAK
    return max(with_margin(pool), whole_mib(peak * times // by))


def whole_mib(size: int) -> int:
    """*size* bytes, up to the next whole MiB: TensorFlow counts limits in these."""
    return -(-size // MIB) * MIB
