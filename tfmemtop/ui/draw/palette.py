"""Colours and glyphs, in one place.

Only the terminal's own sixteen colours and its own background are used, so light and dark themes
both hold; every meaning that a colour carries is also carried by a glyph or a word.
"""

from dataclasses import dataclass

from rich.style import Style

PLAIN = Style()
DIM = Style(color="bright_black")
BOLD = Style(bold=True)
TITLE = Style(bold=True, color="cyan")
RULE = Style(color="bright_black")
KEY = Style(bold=True, color="cyan")
GOOD = Style(color="green")
WARNING = Style(color="yellow")
ERROR = Style(bold=True, color="red")
CHOSEN = Style(reverse=True)
LIMIT = Style(color="red")
PEAK = BOLD
NEARLY_FULL = Style(color="red")
FAILED = Style(color="red", bold=True, reverse=True)

RUNS = (Style(color="cyan"), Style(color="yellow"))
"""The first and the second of two runs that are compared."""

LAYER = {
    "in_use": Style(color="green"),
    "cached": Style(color="yellow"),
    "rest": Style(color="magenta"),
    "others": Style(color="blue"),
    "free": DIM,
}


HOLDER = {
    "variables": Style(color="green"),
    "optimizer": Style(color="magenta"),
    "gradients": Style(color="yellow"),
    "activations": Style(color="cyan"),
    "loss": Style(color="red"),
    "input": Style(color="blue"),
    "workspace": Style(color="blue", bold=True),
    "tensors": Style(color="green", bold=True),
    "xla": Style(color="magenta", bold=True),
    "rounding": DIM,
    "before": DIM,
    "unknown": DIM,
}
"""Who holds memory, by kind. Each also has a letter of its own."""

LETTER = {
    "variables": "V",
    "optimizer": "O",
    "gradients": "G",
    "activations": "A",
    "loss": "L",
    "input": "I",
    "workspace": "W",
    "tensors": "T",
    "xla": "X",
    "rounding": "R",
    "before": "B",
    "unknown": "?",
}
"""What a kind of holder is drawn with where a word has no room."""


@dataclass(frozen=True, slots=True)
class Glyphs:
    """The characters drawn with: Unicode, or ``--ascii``."""

    ascii: bool
    fill: dict[str, str]  # by kind of layer
    rule: str
    limit: str
    limit_line: str
    ground: str  # so little that it has no height
    mark: str  # of a moment, through what is blank
    tick: str
    failed: str
    running: str
    ended: str
    dash: str
    dot: str
    up: str
    down: str
    branch: str
    last_branch: str
    trunk: str
    ellipsis: str
    ends: tuple[str, str]
    more: str
    runs: tuple[str, str]  # marks of the first and the second of two runs


UNICODE = Glyphs(
    ascii=False,
    fill={"in_use": "█", "cached": "▓", "rest": "▒", "others": "░", "free": "·"},
    rule="─",
    limit="▏",
    limit_line="╌",
    ground="▁",
    mark="┊",
    tick="╵",
    failed="×",
    running="●",
    ended="■",
    dash="—",
    dot="·",
    up="▲",
    down="▼",
    branch="├─ ",
    last_branch="└─ ",
    trunk="│  ",
    ellipsis="…",
    ends=("▐", "▌"),
    more="▾",
    runs=("●", "○"),
)
ASCII = Glyphs(
    ascii=True,
    fill={"in_use": "#", "cached": "=", "rest": "+", "others": "-", "free": "."},
    rule="-",
    limit="|",
    limit_line="~",
    ground="_",
    mark=":",
    tick="^",
    failed="x",
    running="*",
    ended="#",
    dash="-",
    dot="-",
    up="^",
    down="v",
    branch="|- ",
    last_branch="`- ",
    trunk="|  ",
    ellipsis="~",
    ends=("[", "]"),
    more="v",
    runs=("*", "o"),
)
