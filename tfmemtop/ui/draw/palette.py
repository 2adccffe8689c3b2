"""Colours, in one place.

Only the terminal's own sixteen colours and its own background are used, so that light and dark themes
both work. Whatever a colour means, a glyph or a word means too.
"""

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
    "results": ("C", Style(color="cyan", bold=True)),
    "rounding": ("R", DIM),
    "before": ("B", DIM),
    "unknown": ("?", DIM),
}
LETTER = {kind: letter for kind, (letter, _) in _HOLDERS.items()}
"""The letter of each kind of holder, for places without room for a word."""
HOLDER = {kind: style for kind, (_, style) in _HOLDERS.items()}
"""The style of each kind of holder."""
