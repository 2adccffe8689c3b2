"""Common GPUs and their memory. ``cards.json`` names the source of each figure."""

from functools import lru_cache
from pathlib import Path

import msgspec

from tfmemtop.units import MIB

USUALLY_RESERVED_MIB = 615
"""What the driver keeps for itself of an idle H200 (driver 580). Of a card where that was not measured an estimate."""


class Card(msgspec.Struct, frozen=True):
    """A GPU: its memory as the vendor names it, and in MiB as the driver tells it, by ``source``.

    ``sheet`` is the vendor's own document, where it was read. ``reserved_mib`` keeps the driver for itself, ``None``
    where that was not measured.
    """

    name: str
    nominal: str
    sheet: str | None
    total_mib: int
    source: str
    reserved_mib: int | None

    @property
    def usable(self) -> int:
        """What programs can have; bytes."""
        reserved = USUALLY_RESERVED_MIB if self.reserved_mib is None else self.reserved_mib
        return (self.total_mib - reserved) * MIB

    @property
    def measured(self) -> bool:
        """Whether that is no estimate."""
        return self.reserved_mib is not None


@lru_cache(maxsize=1)
def cards() -> tuple[Card, ...]:
    """All of them, the smallest first."""
    found = msgspec.json.decode(Path(__file__).with_name("cards.json").read_bytes(), type=tuple[Card, ...])
    return tuple(sorted(found, key=lambda card: card.total_mib))
