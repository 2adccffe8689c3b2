"""The common part of the readers of pools: the figures that they return, and how these are checked before use."""

from typing import TYPE_CHECKING, Any, Callable, NamedTuple, Optional

from .layouts import Reading

if TYPE_CHECKING:
    from collections.abc import Sequence

GPU, PINNED, CPU = 0, 1, 2
"""Kinds of allocators. Only GPUs have an index above 0."""

PINNED_NAME = "HOST:0"
"""tfmemtop's name for the pool of pinned host memory, which is not a device of TensorFlow's."""

PublicReader = Callable[[], Reading]
"""A function that returns in use and peak as TensorFlow's public API has them."""

_TRIALS, _AGREEMENTS = 400, 5


def place_of(device: str) -> "tuple[int, int]":
    """Return kind and index of the allocator of *device*, such as ``GPU:0``."""
    if device == PINNED_NAME:
        return PINNED, 0
    return (CPU, 0) if device == "CPU:0" else (GPU, int(device.partition(":")[2]))


class NotTrusted(Exception):
    """The figures would not be those of the allocator. ``events/probe.py`` explains each *fault*."""

    def __init__(self, fault: str, detail: str = "", figures: "Sequence[Optional[int]]" = ()) -> None:
        super().__init__(fault, detail, figures)
        self.fault, self.detail, self.figures = fault, detail, figures

    def told(self, device: str = "") -> "dict[str, Any]":
        """Return the fields of an event about *device*."""
        figures = [figure if figure is None or figure >= 0 else None for figure in self.figures]
        return {"fault": self.fault, "detail": self.detail, "figures": figures, "device": device}


class SizeChange(NamedTuple):
    """A pool that grew or shrank: ``at`` is seconds of CLOCK_MONOTONIC, the others are bytes."""

    at: float
    before: int
    after: int


class Taken(NamedTuple):
    """A reading, and the growths since the one before."""

    reading: Reading
    name: str
    physical: Optional[int]
    growths: "list[SizeChange]"


class PoolReader:
    """A way to read pools. ``places`` are those of the devices whose figures have passed the check."""

    def __init__(self) -> None:
        self.places: dict[str, tuple[int, int]] = {}

    def read(self, device: str, public: Optional[PublicReader]) -> Optional[Taken]:
        """Return a reading, checked against the *public* one the first time; ``None`` if there is no pool yet.

        Raises:
            NotTrusted: the figures are not those of this device.
        """
        place = self.places.get(device)
        if place is None:
            place = place_of(device)
            if not self.check(*place, public):
                return None
            self.places[device] = place
        return self.take(*place)

    def check(self, kind: int, index: int, public: Optional[PublicReader]) -> bool:
        """Compare the figures with *public* while the script goes on allocating; without it, require plausible ones.

        Return ``False`` if the check must be made again.

        Raises:
            NotTrusted: the figures are not those of this allocator.
        """
        raise NotImplementedError

    def take(self, kind: int, index: int) -> Optional[Taken]:
        """Read one allocator; ``None`` if TensorFlow has not made it, or there are no figures."""
        raise NotImplementedError


def agree(read: Callable[[], Optional[Reading]], public: Optional[PublicReader]) -> bool:
    """Compare *read* with *public* while the script goes on allocating; without it, require plausible figures.

    Return ``False`` if there is nothing to read yet.

    Raises:
        NotTrusted: the figures are not those of this allocator.
    """
    agreed = 0
    said: tuple[Optional[int], ...] = ()
    for _ in range(_TRIALS):
        before = None if public is None else public()
        reading = read()
        if reading is None:
            return False
        _check_plausible(reading)
        if public is None or before is None:
            return True
        after = public()
        # If the public figures are equal before and after the reading, the reading must be equal, too.
        if before == after and reading[:2] == before[:2]:
            agreed += 1
        if agreed == _AGREEMENTS:
            return True
        said = reading.in_use, reading.peak, after.in_use, after.peak
    raise NotTrusted("disagrees", "", said)


def _check_plausible(reading: Reading) -> None:
    in_use, peak, pool, *_ = reading
    rising = [0, in_use, *(figure for figure in (pool, reading.peak_pool) if figure is not None)]
    if rising != sorted(rising) or peak < in_use or (reading.limit and pool is not None and pool > reading.limit):
        raise NotTrusted("implausible", "", (in_use, peak, pool, reading.peak_pool, reading.limit))
