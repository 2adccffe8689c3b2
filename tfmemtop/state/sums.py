"""Sums over the newest readings of one place, a GPU or the CPU's pools, kept from reading to reading.

With a thousand processes nobody adds up a thousand readings for each that comes. While nobody comes or goes
(``State.shape``), a new reading changes the sums by what it differs from the one before it.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from tfmemtop.events import Allocator, DeviceReading


@dataclass(slots=True)
class Sum:
    """Bytes in use, and of the pools, ``unknown`` of which do not tell their size."""

    in_use: int = 0
    known: int = 0
    unknown: int = 0

    @property
    def pool(self) -> int | None:
        """Bytes of all pools; ``None`` if any is not known."""
        return None if self.unknown else self.known

    def add(self, reading: Allocator, sign: int = 1) -> None:
        """Count *reading*; with a *sign* of -1 no longer."""
        self.in_use += sign * (reading.in_use or 0)
        if reading.pool is None:
            self.unknown += sign
        else:
            self.known += sign * reading.pool


@dataclass(slots=True)
class Sums:
    """Of all living processes, and of the newest run's; true for that ``shape`` of the state.

    ``total`` is what the run's processes hold by the driver's ``reading``.
    """

    shape: int
    all: Sum = field(default_factory=Sum)
    run: Sum = field(default_factory=Sum)
    reading: DeviceReading | None = None
    total: int = 0

    @classmethod
    def of(cls, shape: int, readings: Iterable[tuple[Allocator, bool]]) -> "Sums":
        """Of *readings*, each with whether it is of the newest run."""
        made = cls(shape)
        for reading, of_run in readings:
            made.add(reading, of_run)
        return made

    def add(self, reading: Allocator, of_run: bool, sign: int = 1) -> None:
        """Count *reading*; with a *sign* of -1 no longer."""
        self.all.add(reading, sign)
        if of_run:
            self.run.add(reading, sign)
