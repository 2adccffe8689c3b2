"""The finding: a fact with its figures, its sentence and its remedies.

Each kind of finding is a class. Its condition is the function below it, which yields it.
"""

from collections.abc import Hashable
from dataclasses import dataclass
from enum import Enum, IntEnum, auto
from typing import ClassVar

from tfmemtop.failure import describe
from tfmemtop.findings.cause import Key
from tfmemtop.findings.places import Place
from tfmemtop.findings.remedy import Remedy


class Severity(IntEnum):
    """How serious a finding is; lower numbers are more serious."""

    ERROR = 0
    WARNING = 1
    INFO = 2


class Question(Enum):
    """The five questions that people ask about TensorFlow's GPU memory."""

    ALL_TAKEN = auto()
    FULL_NOT_USED = auto()
    EFFICIENTLY = auto()
    GROWTH = auto()
    REPORTS_LESS = auto()


def joined(*sentences: str) -> str:
    """Return the *sentences* that are not empty as one text."""
    return " ".join(filter(None, sentences))


@dataclass(frozen=True, slots=True)
class Said:
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


class Finding:
    """The base of all kinds. Each kind has a severity and remedies, which may depend on its figures.

    ``key`` is the cause that the kind stands for in a verdict; ``None`` if it is none.
    ``answers`` is the question that findings of the kind help to answer. ``aside`` is true for kinds that a report on a
    whole run leaves out, ``fatal`` for those that explain why a run failed.
    """

    __slots__ = ()

    key: ClassVar[Key | None] = None
    answers: ClassVar[Question | None] = None
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


@dataclass(frozen=True, slots=True)
class DeviceFinding(Finding):
    """A finding about one device."""

    place: Place


@dataclass(frozen=True, slots=True)
class RuleFailed(Finding):
    """One of tfmemtop's own rules raised an error."""

    rule: str
    error: Exception

    @property
    def kind(self) -> Hashable:
        return type(self), self.rule

    @property
    def said(self) -> Said:
        return Said(f"One of tfmemtop's own rules, {self.rule}, has failed: {describe(self.error)}.")
