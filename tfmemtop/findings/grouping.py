"""Group findings that are alike on many devices: with eight GPUs, most findings would otherwise appear eight times."""

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, replace
from typing import TypeVar

from tfmemtop.findings.finding import DeviceFinding, Finding, Said
from tfmemtop.findings.places import gpus
from tfmemtop.findings.remedy import Remedy

ALIKE = 3
"""The least number of findings in a group. Two findings are clearer one by one, each with its own figures."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Group:
    """Findings that are alike, of three or more devices; or a single finding."""

    findings: tuple[Finding, ...]

    @property
    def first(self) -> Finding:
        return self.findings[0]

    @property
    def remedies(self) -> tuple[Remedy, ...]:
        """The remedies, which are the same for all findings of the group."""
        return self.first.remedies


def grouped(found: Iterable[Finding]) -> list[Group]:
    """Return *found* as groups: findings of one kind, severity and remedy form one if there are three or more."""
    return [Group(tuple(part)) for part in alike(found, lambda finding: finding)]


def alike(items: Iterable[T], finding_of: Callable[[T], Finding]) -> list[list[T]]:
    """Return *items* in lists, one for each group of their findings, in the order in which the items come."""
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
    # Some kinds of finding have two possible reasons, which differ in their remedies.
    return finding.kind, finding.severity, tuple(remedy.action for remedy in finding.remedies)


def say_group(group: Group) -> Said:
    """Return the text of the group's first finding; if there are several, with the places of all in front."""
    said = group.first.said
    return said if len(group.findings) == 1 else replace(said, headline=f"{_places(group)} alike. {said.headline}")


def group_text(group: Group) -> str:
    """Return headline and figures of :func:`say_group` in one text."""
    return say_group(group).text


def _places(group: Group) -> str:
    numbers = {f.place.gpu for f in group.findings if isinstance(f, DeviceFinding) and f.place.gpu is not None}
    return gpus(numbers) if len(numbers) == len(group.findings) else f"{len(group.findings)} devices"
