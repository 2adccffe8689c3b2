"""Findings that are alike on many devices, as one: with eight GPUs most findings would come eight times."""

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import TypeVar

from tfmemtop.rules.finding import DeviceFinding, Finding
from tfmemtop.rules.remedy import Remedy

ALIKE = 3
"""The least number of findings in a group. Two are clearer one by one, each with its figures."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Group:
    """Findings that are alike: of three and more devices, or a single one."""

    findings: tuple[Finding, ...]

    @property
    def first(self) -> Finding:
        return self.findings[0]

    @property
    def remedies(self) -> tuple[Remedy, ...]:
        """The same for all."""
        return self.first.remedies


def grouped(found: Iterable[Finding]) -> list[Group]:
    """*found* with those of one kind, severity and remedy that are about three devices or more as one group."""
    return [Group(tuple(part)) for part in alike(found, lambda finding: finding)]


def alike(items: Iterable[T], finding_of: Callable[[T], Finding]) -> list[list[T]]:
    """The *items* of each group of findings, in their order."""
    kinds: dict[Hashable, list[T]] = {}
    groups: list[list[T]] = []
    for item in items:
        finding = finding_of(item)
        group = kinds.setdefault(_kind(finding), []) if isinstance(finding, DeviceFinding) else []
        if not group:
            groups.append(group)
        group.append(item)
    return [part for group in groups for part in ([group] if len(group) >= ALIKE else [[item] for item in group])]


def _kind(finding: Finding) -> Hashable:
    # Some kinds have two reasons, told apart by what helps.
    return finding.kind, finding.severity, tuple(remedy.action for remedy in finding.remedies)
