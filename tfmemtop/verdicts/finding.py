"""A finding: one sentence with its figures, and the remedy."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Finding:
    """``text`` is one plain sentence; ``remedy`` says what helps, ``[K]`` in it naming a key."""

    level: Literal["info", "warning", "error"]
    text: str
    remedy: str = ""
