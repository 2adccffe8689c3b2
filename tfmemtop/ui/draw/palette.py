"""Colours and glyphs, in one place.

Only the terminal's own sixteen colours and its own background are used, so that light and dark themes
both work. Whatever a colour means, a glyph or a word means too.
"""

import msgspec
from msgspec.structs import replace
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
    "jax": Style(color="cyan"),
    "pytorch": Style(color="bright_red"),
    "cupy": Style(color="bright_cyan"),
    "rmm": Style(color="bright_blue"),
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
"""The style of each kind of holder. Each kind also has a letter."""

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
"""The letter of each kind of holder, for places without room for a word."""


class Glyphs(msgspec.Struct, frozen=True, eq=False):
    """The characters to draw with: those of Unicode, or, with ``--ascii``, of ASCII.

    ``braille``: areas are made of dots. Without it, as without colours, they are made of characters that differ.
    """

    ascii: bool
    braille: bool
    fill: dict[str, str]  # by kind of layer
    rule: str
    limit: str
    limit_line: str
    ground: str  # memory that is too little to have a height
    mark: str  # a moment in a graph, drawn through the blank cells of its column
    cursor: str  # the chosen moment, drawn likewise
    steps: str
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
    braille=True,
    fill={
        **{"in_use": "█", "cached": "▓", "rest": "▒", "others": "░", "free": "·"},
        **{"jax": "▞", "pytorch": "▚", "cupy": "▤", "rmm": "▥"},
    },
    rule="─",
    limit="▏",
    limit_line="╌",
    ground="▁",
    mark="┊",
    cursor="│",
    steps="•",
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
UNCOLOURED = replace(UNICODE, braille=False)
ASCII = Glyphs(
    ascii=True,
    braille=False,
    fill={
        **{"in_use": "#", "cached": "=", "rest": "+", "others": "-", "free": "."},
        **{"jax": "J", "pytorch": "P", "cupy": "C", "rmm": "R"},
    },
    rule="-",
    limit="|",
    limit_line="~",
    ground="_",
    mark=":",
    cursor="|",
    steps="*",
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
