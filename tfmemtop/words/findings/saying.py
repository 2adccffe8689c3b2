"""What is said of a finding, and how a module says that it says one."""

from dataclasses import dataclass
from functools import singledispatch

from tfmemtop.rules.finding import Finding


@dataclass(frozen=True, slots=True)
class Said:
    """``headline`` says what is so, in a sentence or two that stand alone; ``figures`` are the sentences after it.

    ``explanation`` says why it is so, ``code`` are lines for the script or the shell.
    """

    headline: str
    explanation: str = ""
    code: tuple[str, ...] = ()
    figures: str = ""

    @property
    def text(self) -> str:
        """Headline and figures."""
        return f"{self.headline} {self.figures}".rstrip()


@singledispatch
def say(finding: Finding) -> Said:
    """The words of *finding*.

    Raises:
        TypeError: no module of this room says findings of that class.
    """
    raise TypeError(type(finding).__name__)
