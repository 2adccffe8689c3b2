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


_LESS_SHARE, _LESS_LEAST = 0.02, 3 * MIB
"""A thread that waits leaves its further work to others: real runs were seen to pass 2 MiB below the replay's end."""


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


def growths(device: str) -> list[bool]:
    """Growth on and off, as far as *device* can have it."""
    return [True, False] if is_gpu(device) else [True]  # the CPU's pool always grows


def first(device: str, present: Present) -> list[Question]:
    """What is asked first: a pool without a limit, and the smallest limits of each growth."""
    return [Question(True, present.collects)] + [
        Question(growth, present.collects, smallest=True) for growth in growths(device)
    ]


def limits(growth: bool, collects: bool, ends: Ends, pool: int | None) -> Iterator[Question]:
    """Limits around the smallest: below all that could do, both ends, what lies between, and above in steps.

    With growth on none above *pool* is asked about, which is what the pool comes to without a limit.
    """
    below = max(MIB, at_least(ends) - max(MIB, _whole(ends.at_least / 50)))
    between = [ends.at_least + (ends.surely - ends.at_least) // 2 // MIB * MIB] if ends.surely > ends.at_least else []
    wanted = [below, ends.at_least, *between, ends.surely, *(_whole(ends.surely * step) for step in _STEPS)]
    # The largest first: the books of its pool do for all others, where that is one region.
    for limit in sorted(set(wanted), reverse=True):
        if not growth or pool is None or limit <= pool:
            yield Question(growth, collects, limit)


def at_least(ends: Ends) -> int:
    """The limit in bytes, whole MiB, below which no run is thought to pass."""
    return max(MIB, ends.at_least - max(_LESS_LEAST, _whole(ends.at_least * _LESS_SHARE)))


def further(device: str, present: Present, ends: Sequence[Ends | None], pool: int | None) -> list[Question]:
    """What is asked next, *ends* being the smallest limits of each of :func:`growths`.

    Of garbage collection as it is not, one row shows whether it matters. The CPU's pool never collects.
    """
    asked: list[Question] = []
    for growth, found in zip(growths(device), ends, strict=True):
        if found is not None:
            asked += limits(growth, present.collects, found, pool)
    if is_gpu(device) and ends[0] is not None:
        asked.append(Question(True, not present.collects, ends[0].surely))
    return asked


def _whole(size: float) -> int:
    return round(size) // MIB * MIB
