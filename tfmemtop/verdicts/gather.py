"""What holds on many devices alike, said once: a machine of eight GPUs has no eight times as much to say."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TypeVar

from tfmemtop.verdicts.finding import Finding

ALIKE = 3
"""From so many on; two are told better one by one, each with its figures."""

_GPU = re.compile(r"GPU (\d+)\b")

T = TypeVar("T")


def gathered(found: Sequence[Finding]) -> list[Finding]:
    """*found*, but those of one kind, level and remedy about three devices or more as one: the first of them."""
    return [said(group) for group in alike(found, lambda finding: finding)]


def alike(found: Iterable[T], finding_of: Callable[[T], Finding]) -> list[list[T]]:
    """*found* in groups: of three and more that say the same of different devices, else of one."""
    kinds: dict[tuple[str, str, str], list[T]] = {}
    groups: list[list[T]] = []
    for item in found:
        finding = finding_of(item)
        # Some kinds have two reasons, told apart by what helps.
        group = kinds.setdefault((finding.key, finding.level, finding.remedy), []) if finding.place else []
        if not group:
            groups.append(group)
        group.append(item)
    return [part for group in groups for part in ([group] if len(group) >= ALIKE else [[item] for item in group])]


def said(group: Sequence[Finding]) -> Finding:
    """One finding for a *group* that is alike: the first, with where the others are."""
    first = group[0]
    return first if len(group) == 1 else replace(first, text=f"{_places(group)} alike. {first.text}")


def _places(group: Sequence[Finding]) -> str:
    numbers = {int(found[1]) for finding in group if (found := _GPU.search(finding.place))}
    return gpus(numbers) if len(numbers) == len(group) else f"{len(group)} devices"


def gpus(numbers: Iterable[int]) -> str:
    """``GPU 0 to 7``, ``GPU 0, 2, 5``."""
    ordered = sorted(numbers)
    if len(ordered) >= ALIKE and ordered[-1] - ordered[0] == len(ordered) - 1:
        return f"GPU {ordered[0]} to {ordered[-1]}"
    return f"GPU {', '.join(map(str, ordered))}"
