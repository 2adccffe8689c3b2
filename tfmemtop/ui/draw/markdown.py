"""A Markdown page as lines, in the terminal's own colours. Pure."""

from functools import lru_cache

from rich.console import Console
from rich.markdown import Markdown
from rich.theme import Theme

from tfmemtop.ui.draw.lines import Line

_THEME = Theme(
    {
        "markdown.code": "cyan",
        "markdown.code_block": "cyan",
        "markdown.h1": "bold cyan",
        "markdown.h2": "bold cyan",
        "markdown.h3": "bold",
        "markdown.table.header": "bold",
        "markdown.table.border": "bright_black",
    }
)


@lru_cache(maxsize=4)
def markdown(text: str, width: int) -> list[Line]:
    """*text* in lines of *width* cells."""
    console = Console(width=width, theme=_THEME, color_system="standard", force_terminal=True, legacy_windows=False)
    page = Markdown(text, hyperlinks=False, code_theme="ansi_dark")
    lines = [list(line) for line in console.render_lines(page, pad=False)]
    # Rich leaves two blank lines above a table.
    return [line for line, before in zip(lines, [[], *lines], strict=False) if not (_blank(line) and _blank(before))]


def _blank(line: Line) -> bool:
    return not any(segment.text.strip() for segment in line)
