"""Colours and glyphs, in one place.

Only the terminal's own sixteen colours and its own background are used, so that light and dark themes
both work. Whatever a colour means, a glyph or a word means too.
"""

import msgspec
from msgspec.structs import asdict, replace
from rich.style import Style

from tfmemtop.charset import to_ascii

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


_HOLDERS = {
    "variables": ("V", Style(color="green")),
    "optimizer": ("O", Style(color="magenta")),
    "gradients": ("G", Style(color="yellow")),
    "activations": ("A", Style(color="cyan")),
    "loss": ("L", Style(color="red")),
    "input": ("I", Style(color="blue")),
    "workspace": ("W", Style(color="blue", bold=True)),
    "tensors": ("T", Style(color="green", bold=True)),
    "xla": ("X", Style(color="magenta", bold=True)),
    "rounding": ("R", DIM),
    "before": ("B", DIM),
    "unknown": ("?", DIM),
}
LETTER = {kind: letter for kind, (letter, _) in _HOLDERS.items()}
"""The letter of each kind of holder, for places without room for a word."""
HOLDER = {kind: style for kind, (_, style) in _HOLDERS.items()}
"""The style of each kind of holder."""


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
    here: str  # the row under the cursor
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
    here="▸",
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
_CONVERTED = {name: to_ascii(text) for name, text in asdict(UNICODE).items() if isinstance(text, str)}
_OTHERS = {
    "fill": {
        **{"in_use": "#", "cached": "=", "rest": "+", "others": "-", "free": "."},
        **{"jax": "J", "pytorch": "P", "cupy": "C", "rmm": "R"},
    },
    "limit_line": "~",
    "ground": "_",
    "ends": ("[", "]"),
    "runs": ("*", "o"),
}
ASCII = replace(UNICODE, ascii=True, braille=False, **(_CONVERTED | _OTHERS))
