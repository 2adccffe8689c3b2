"""Common GPUs and their memory. ``cards.json`` contains the source of each figure."""

from functools import lru_cache
from pathlib import Path

import msgspec

from tfmemtop.units import MIB

USUALLY_RESERVED_MIB = 615
"""MiB that the driver keeps for itself on an idle H200 (driver 580). For a card without a measurement, an estimate."""


class Card(msgspec.Struct, frozen=True):
    """A GPU. ``nominal`` is its memory as the vendor names it; ``total_mib`` is its memory in MiB by the driver.

    ``source`` is the source of ``total_mib``. ``sheet`` is the vendor's own document, if that was read.
    ``reserved_mib`` is what the driver keeps for itself, ``None`` if that was not measured.
    """

    name: str
    nominal: str
    sheet: str | None
    total_mib: int
    source: str
    reserved_mib: int | None

    @property
    def usable(self) -> int:
        """The bytes that programs can use."""
        reserved = USUALLY_RESERVED_MIB if self.reserved_mib is None else self.reserved_mib
        return (self.total_mib - reserved) * MIB

    @property
    def measured(self) -> bool:
        """Whether :attr:`usable` is from a measurement, and not from an estimate."""
        return self.reserved_mib is not None


@lru_cache(maxsize=1)
def cards() -> tuple[Card, ...]:
    """Return all cards, the smallest first."""
    found = msgspec.json.decode(Path(__file__).with_name("cards.json").read_bytes(), type=tuple[Card, ...])
    return tuple(sorted(found, key=lambda card: card.total_mib))
