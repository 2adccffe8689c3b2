"""The finding: a fact with its figures, its sentence and its remedies.

Each kind of finding is a class. Its condition is the function below it, which yields it.
"""

from collections.abc import Callable, Hashable, Iterable
from enum import IntEnum
from typing import ClassVar, TypeVar

import msgspec
from msgspec.structs import replace

from tfmemtop.failure import describe
from tfmemtop.findings.cause import Cause
from tfmemtop.findings.names import Place, gpus
from tfmemtop.findings.remedy import Remedy


class Severity(IntEnum):
    """How serious a finding is; lower numbers are more serious."""

    ERROR = 0
    WARNING = 1
    INFO = 2


def joined(*sentences: str) -> str:
    """Return the *sentences* that are not empty as one text."""
    return " ".join(filter(None, sentences))


class Said(msgspec.Struct, frozen=True):
    """The text of a finding.

    ``headline`` is what was found, in a sentence or two that can stand alone; ``figures`` are the sentences after it.
    ``explanation`` is the reason; ``code`` are lines for the script or the shell.
    """

    headline: str
    explanation: str = ""
    code: tuple[str, ...] = ()
    figures: str = ""

    @property
    def text(self) -> str:
        """Headline and figures in one text."""
        return f"{self.headline} {self.figures}".rstrip()


class Finding(msgspec.Struct, frozen=True):
    """The base of all kinds. Each kind has a severity and remedies, which may depend on its figures.

    ``key`` is that of the cause that the kind stands for in a verdict: one of :class:`Key`, or the kind's own; ``None``
    if it is no cause.
    ``aside`` is true for kinds that a report on a whole run leaves out, ``fatal`` for those that explain why a run
    failed.
    """

    key: ClassVar[str | None] = None
    aside: ClassVar[bool] = False
    fatal: ClassVar[bool] = False

    @property
    def severity(self) -> Severity:
        return Severity.WARNING

    @property
    def remedies(self) -> tuple[Remedy, ...]:
        """What helps, best first."""
        return ()

    @property
    def holder(self) -> str:
        """Who holds the memory that the finding is about; empty where nobody is known."""
        return ""

    @property
    def said(self) -> Said:
        """The finding as text."""
        raise NotImplementedError

    @property
    def kind(self) -> Hashable:
        """A key that stays the same while the figures of the finding change."""
        return (type(self),)


class CauseFinding(Finding, frozen=True):
    """A finding that is a cause."""

    cause: Cause

    @property
    def remedies(self) -> tuple[Remedy, ...]:
        return self.cause.remedies

    @property
    def whole_cause(self) -> Cause:
        """The cause as a verdict states it."""
        return self.cause

    @property
    def figures(self) -> tuple[str, ...]:
        """Sentences after the evidence."""
        return ()

    @property
    def said(self) -> Said:
        cause = self.whole_cause
        return Said(cause.text, cause.explanation, cause.code, joined(*cause.evidence, *self.figures))


class DeviceFinding(Finding, frozen=True):
    """A finding about one device."""

    place: Place


class RuleFailed(Finding, frozen=True):
    """One of tfmemtop's own rules raised an error."""

    rule: str
    error: Exception

    @property
    def kind(self) -> Hashable:
        return type(self), self.rule

    @property
    def said(self) -> Said:
        return Said(f"One of tfmemtop's own rules, {self.rule}, has failed: {describe(self.error)}.")


ALIKE = 3
"""The least number of findings in a group. Two findings are clearer one by one, each with its own figures."""

T = TypeVar("T")


class Group(msgspec.Struct, frozen=True):
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
    return finding.kind, finding.severity, tuple(remedy for remedy in finding.remedies)


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
