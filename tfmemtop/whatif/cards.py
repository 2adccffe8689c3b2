"""Common GPUs and their memory. ``cards.json`` has for each the total that the driver tells, and its source."""

from functools import lru_cache
from pathlib import Path

import msgspec

from tfmemtop.units import MIB

RESERVED = 615 * MIB
"""What the driver keeps for itself of an idle card, measured on an H200 (driver 580). Of other cards an estimate."""


class Card(msgspec.Struct, frozen=True):
    """A GPU: its memory as the vendor names it, and as the driver tells it, with the driver's own part."""

    name: str
    nominal: str
    total_mib: int
    source: str

    @property
    def usable(self) -> int:
        """What programs can have, about; bytes."""
        return self.total_mib * MIB - RESERVED


@lru_cache(maxsize=1)
def cards() -> tuple[Card, ...]:
    """All of them, the smallest first."""
    found = msgspec.json.decode(Path(__file__).with_name("cards.json").read_bytes(), type=tuple[Card, ...])
    return tuple(sorted(found, key=lambda card: card.total_mib))
