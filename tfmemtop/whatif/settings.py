"""Which settings are asked about: the present one, and limits from the smallest upward. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from tfmemtop.events import Effective
from tfmemtop.events.device_names import is_gpu
from tfmemtop.probe.replaying import Ends, Question
from tfmemtop.units import MIB

_COLLECTING = "TF_ENABLE_GPU_GARBAGE_COLLECTION"
_STEPS = (1.05, 1.1, 1.25, 1.5, 2.0)
"""Limits above the smallest, as multiples of it."""


class Present(NamedTuple):
    """The setting that a process has; ``limit`` in bytes, ``None`` if that is not known.

    ``collects`` is BFC's garbage collection: on for GPUs, unless TF_ENABLE_GPU_GARBAGE_COLLECTION says otherwise.
    """

    growth: bool
    limit: int | None
    collects: bool

    @property
    def question(self) -> Question:
        """What happens under it."""
        return Question(self.growth, self.collects, self.limit)


def present(device: str, effective: Effective | None, limit: int | None, variables: Mapping[str, str]) -> Present:
    """The setting of *device*, by what TensorFlow tells, its allocator's *limit* if read, and its environment."""
    limit = limit or (effective.limit if effective else None)
    if not is_gpu(device):
        return Present(growth=True, limit=limit, collects=False)
    collects = variables.get(_COLLECTING, "true").lower() not in ("false", "0")
    return Present(growth=bool(effective and effective.growth), limit=limit, collects=collects)


def kinds(device: str, present: Present) -> list[tuple[bool, bool]]:
    """Growth and garbage collection of all settings that *device* can have, the usual ones first."""
    if not is_gpu(device):
        return [(True, False)]  # the CPU's pool always grows, and never collects
    return [(True, present.collects), (False, present.collects), (True, not present.collects)]


def first(device: str, present: Present) -> list[Question]:
    """What is asked first: the present setting, a pool without a limit, and the smallest limits of each kind."""
    asked = [present.question, Question(True, present.collects)]
    return asked + [Question(growth, collects, smallest=True) for growth, collects in kinds(device, present)]


def limits(growth: bool, collects: bool, ends: Ends, pool: int | None) -> Iterator[Question]:
    """Limits from the smallest upward: below it, both ends, what lies between, and above in steps.

    With growth on none above *pool* is asked about, which is what the pool comes to without a limit.
    """
    below = max(MIB, ends.at_least - max(MIB, _whole(ends.at_least / 50)))
    between = [ends.at_least + (ends.surely - ends.at_least) // 2 // MIB * MIB] if ends.surely > ends.at_least else []
    wanted = [below, ends.at_least, *between, ends.surely, *(_whole(ends.surely * step) for step in _STEPS)]
    for limit in dict.fromkeys(wanted):
        if not growth or pool is None or limit <= pool:
            yield Question(growth, collects, limit)


def further(device: str, present: Present, ends: Sequence[Ends | None], pool: int | None) -> list[Question]:
    """What is asked next, *ends* being the smallest limits of each of :func:`kinds`."""
    asked: list[Question] = []
    for (growth, collects), found in zip(kinds(device, present), ends, strict=True):
        if found is None:
            continue
        if collects is not present.collects:
            asked.append(Question(growth, collects, found.surely))  # one row shows what it saves or costs
        else:
            asked += limits(growth, collects, found, pool)
    return asked


def _whole(size: float) -> int:
    return round(size) // MIB * MIB
