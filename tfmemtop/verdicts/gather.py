"""What holds on many devices alike, said once: a machine of eight GPUs has no eight times as much to say."""

import re
from collections.abc import Sequence
from dataclasses import replace

from tfmemtop.verdicts.finding import Finding

ALIKE = 3
"""From so many on; two are told better one by one, each with its figures."""

_GPU = re.compile(r"GPU (\d+)\b")


def gathered(found: Sequence[Finding]) -> list[Finding]:
    """*found*, but those of one kind, level and remedy about three devices or more as one: the first of them."""
    kinds: dict[tuple[str, str, str], list[Finding]] = {}
    for finding in found:
        if finding.place:
            kinds.setdefault(_kind(finding), []).append(finding)
    said = []
    for finding in found:
        alike = kinds[_kind(finding)] if finding.place else []
        if len(alike) < ALIKE:
            said.append(finding)
        elif finding is alike[0]:
            said.append(replace(finding, text=f"{_places(alike)} alike. {finding.text}"))
    return said


def _kind(finding: Finding) -> tuple[str, str, str]:
    """Some kinds have two reasons, told apart by what helps."""
    return finding.key, finding.level, finding.remedy


def _places(alike: Sequence[Finding]) -> str:
    """``GPU 0 to 7``, ``GPU 0, 2, 5``; ``5 devices`` where the GPUs do not tell them apart."""
    numbers = [int(found[1]) for finding in alike if (found := _GPU.search(finding.place))]
    if len(set(numbers)) < len(alike):
        return f"{len(alike)} devices"
    numbers.sort()
    if numbers[-1] - numbers[0] == len(numbers) - 1:
        return f"GPU {numbers[0]} to {numbers[-1]}"
    return f"GPU {', '.join(map(str, numbers))}"
