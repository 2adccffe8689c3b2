"""Chooses the settings that are replayed: the present one, and limits from the smallest upward. Pure."""

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path

import msgspec

from tfmemtop.events import SmallestLimits, Trace, encode
from tfmemtop.events.machine import is_gpu
from tfmemtop.experiments.whatif.replayer import Question
from tfmemtop.units import MIB

_STEPS = (1.05, 1.1, 1.25, 1.5, 2.0)
"""Further limits, as multiples of the smallest sure limit."""


_LESS_SHARE, _LESS_LEAST = 0.02, 3 * MIB
"""How far below the replay's lower end a run may still pass: a share of that limit, and at least these bytes.

When a thread waits, other threads do its further work. So real runs have passed 2 MiB below the replay's lower end.
"""


class Asked(msgspec.Struct, frozen=True):
    """The question: the TensorFlow to replay with, by its folder and version, and the setting that the process has."""

    tensorflow: str
    version: str
    present: Question
    t: float = 0.0

    def request(self, parts: Iterable[Trace]) -> bytes:
        """Return the text that the worker reads: a line of JSON, and a line for each of *parts* of the trace."""
        return b"\n".join([msgspec.json.encode(self), *map(encode, parts)])


def first(device: str, present: Question) -> list[Question]:
    """Return the first questions: a pool without a limit, and the smallest limits for each value of growth."""
    growths = (True, False) if is_gpu(device) else (True,)  # the CPU's pool always grows
    return [Question(True, present.collects)] + [
        Question(growth, present.collects, smallest=True) for growth in growths
    ]


def limits(ends: SmallestLimits, pool: int | None) -> Iterator[Question]:
    """Yield questions about limits around the smallest: below all that could do, the *ends*, between, and above.

    *pool* is the size that the pool reaches without a limit. With growth on, no limit above it is asked about.
    """
    below = max(MIB, at_least(ends) - max(MIB, _whole(ends.at_least / 50)))
    between = [ends.at_least + (ends.surely - ends.at_least) // 2 // MIB * MIB] if ends.surely > ends.at_least else []
    wanted = [
        below,
        ends.at_least,
        *between,
        ends.alike or ends.surely,
        ends.surely,
        *(_whole(ends.surely * step) for step in _STEPS),
    ]
    # The largest limit comes first: if the pool is one region, BFC's data for the largest pool is used for all others.
    for limit in sorted(set(wanted), reverse=True):
        if not ends.growth or pool is None or limit <= pool:
            yield Question(ends.growth, ends.collects, limit)


def at_least(ends: SmallestLimits) -> int:
    """Return the limit in bytes, in whole MiB, below which no run is expected to pass."""
    return max(MIB, ends.at_least - max(_LESS_LEAST, _whole(ends.at_least * _LESS_SHARE)))


def further(device: str, present: Question, ends: Sequence[SmallestLimits], pool: int | None) -> list[Question]:
    """Return the next questions. *ends* are the smallest limits for each value of growth, as far as they are known.

    One question has the other value of garbage collection, to show whether it matters. The CPU's pool never collects.
    """
    asked = [question for found in ends for question in limits(found, pool)]
    if is_gpu(device) and ends and ends[0].growth:
        asked.append(Question(True, not present.collects, ends[0].surely))
    return asked


def _whole(size: float) -> int:
    return round(size) // MIB * MIB


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
