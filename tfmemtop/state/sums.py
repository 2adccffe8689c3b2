"""Sums over the newest readings of one place, a GPU or the CPU's pools, kept from reading to reading.

With a thousand processes, adding up a thousand readings at each new reading would cost too much. While no process
comes or goes (``State.shape`` is the same), a new reading changes the sums by its difference from the one before.
"""

from collections.abc import Iterable

import msgspec

from tfmemtop.events import Allocator, DeviceReading


class Sum(msgspec.Struct):
    """A sum over allocators, in bytes."""

    in_use: int = 0
    known: int = 0  # bytes of the pools whose size is known
    unknown: int = 0  # the number of pools whose size is not known
    limit: int = 0  # of all allocators, as far as they are known

    @property
    def pool(self) -> int | None:
        """Bytes of all pools; ``None`` if the size of any pool is not known."""
        return None if self.unknown else self.known

    def add(self, reading: Allocator, sign: int = 1) -> None:
        """Add *reading*; with a *sign* of -1, subtract it."""
        self.in_use += sign * (reading.in_use or 0)
        self.limit += sign * (reading.limit or 0)
        if reading.pool is None:
            self.unknown += sign
        else:
            self.known += sign * reading.pool


class Sums(msgspec.Struct):
    """The sums over all living processes, and over those of the newest run; valid for one ``shape`` of the state.

    ``total`` is the bytes of the run's processes according to the driver's ``reading``.
    """

    shape: int
    all: Sum = msgspec.field(default_factory=Sum)
    run: Sum = msgspec.field(default_factory=Sum)
    reading: DeviceReading | None = None
    total: int = 0

    @classmethod
    def of(cls, shape: int, readings: Iterable[tuple[Allocator, bool]]) -> "Sums":
        """Return the sums of *readings*, each given with whether it belongs to the newest run."""
        made = cls(shape)
        for reading, of_run in readings:
            made.add(reading, of_run)
        return made

    def add(self, reading: Allocator, of_run: bool, sign: int = 1) -> None:
        """Add *reading*; with a *sign* of -1, subtract it."""
        self.all.add(reading, sign)
        if of_run:
            self.run.add(reading, sign)
