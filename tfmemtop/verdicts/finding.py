"""A finding: one sentence with its figures, the remedy, and more for who asks."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Finding:
    """``text`` is one plain sentence; ``remedy`` says what helps, ``[K]`` in it naming a key.

    ``explanation`` tells the why, at more length; ``code`` are lines to put into the script, where
    that helps; ``key`` names the kind of finding and stays the same while its figures change.
    ``place`` is the device it is about, as the text begins with it; empty if it is about none or several.
    """

    level: Literal["info", "warning", "error"]
    text: str
    remedy: str = ""
    explanation: str = ""
    code: tuple[str, ...] = ()
    key: str = ""
    place: str = ""
