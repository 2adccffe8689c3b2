"""The text of a finding, and the function with which modules register the texts of their findings."""

from dataclasses import dataclass
from functools import singledispatch

from tfmemtop.rules.finding import Finding


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


@singledispatch
def say(finding: Finding) -> Said:
    """Return the text of *finding*.

    Raises:
        TypeError: No module of this folder has a text for findings of that class.
    """
    raise TypeError(type(finding).__name__)
