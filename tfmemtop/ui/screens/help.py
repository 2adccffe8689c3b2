"""F1: the pages of the manual, the page of the keys first."""

from functools import lru_cache
from typing import ClassVar

from rich.console import Console
from rich.theme import Theme
from textual.binding import Binding, BindingType

from tfmemtop.help import topic, topics
from tfmemtop.ui.draw.lines import Line
from tfmemtop.ui.screens.dialog import Hint, PageDialog

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

_ARROWS = {"←": "Left", "→": "Right", "↑": "Up", "↓": "Down"}
"""The names of the keys: in ASCII, the arrow to the left would be the key ``<``."""


class HelpDialog(PageDialog[None]):
    """The pages of ``tfmemtop help``, from page *first* on."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("right,tab", "turn(1)", show=False, priority=True),
        Binding("left,shift+tab", "turn(-1)", show=False, priority=True),
        Binding("q,f1,h,question_mark", "cancel", show=False),
    ]

    def __init__(self, first: str = "keys") -> None:
        self._pages = (first, *(name for name in topics() if name != first))
        self._at = 0
        super().__init__(f"tfmemtop help {first}", width=92)

    def hints(self) -> list[Hint]:
        following = self._pages[(self._at + 1) % len(self._pages)]
        return [("Esc", "close"), ("Left Right", f"turn the page; next: {following}")]

    def action_turn(self, step: int) -> None:
        """Show the next page, or the one before."""
        self._at = (self._at + step) % len(self._pages)
        self.heading = f"tfmemtop help {self._pages[self._at]}"
        self.redraw()
        self.content.scroll_home(animate=False)

    def body(self, width: int) -> list[Line]:
        return _page(self._pages[self._at], width)


@lru_cache(maxsize=4)
def _page(name: str, width: int) -> list[Line]:
    """Return a page of the manual as lines of *width* cells, in the terminal's own colours."""
    # This is imported here: Markdown takes longer to load than all of Textual that a screen needs.
    from rich.markdown import Markdown

    console = Console(width=width, theme=_THEME, color_system="standard", force_terminal=True, legacy_windows=False)
    _, _, text = topic(name).partition("\n")  # the first line is the page's name, which the title says
    for arrow, key in _ARROWS.items():
        text = text.replace(f"`{arrow}`", f"`{key}`")
    page = Markdown(text, hyperlinks=False, code_theme="ansi_dark")
    lines = [list(line) for line in console.render_lines(page, pad=False)]
    # Rich leaves two blank lines above a table.
    return [line for line, before in zip(lines, [[], *lines], strict=False) if not (_blank(line) and _blank(before))]


def _blank(line: Line) -> bool:
    return not any(segment.text.strip() for segment in line)
