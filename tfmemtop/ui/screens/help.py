"""F1: the keys and the legend, followed by the pages of the manual."""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import ClassVar

from rich.cells import cell_len
from rich.console import Console
from rich.segment import Segment
from rich.style import Style
from rich.theme import Theme
from textual.binding import Binding, BindingType

from tfmemtop.help import topic, topics
from tfmemtop.ui import keys as words
from tfmemtop.ui.draw.chunk_map import shades
from tfmemtop.ui.draw.lines import Line
from tfmemtop.ui.draw.palette import BOLD, KEY, LAYER, PLAIN, UNICODE, Glyphs
from tfmemtop.ui.draw.text import exactly, wrap
from tfmemtop.ui.keys import Key, on_the_key
from tfmemtop.ui.screens import cluster_screen
from tfmemtop.ui.screens.dialog import Hint, PageDialog

_LEFT = 9
"""The least width, in cells, of the keys with the blank after them."""

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


class HelpDialog(PageDialog[None]):
    """The help. Its first page lists the keys of this session; the others are the pages of ``tfmemtop help``."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("right,tab", "turn(1)", show=False, priority=True),
        Binding("left,shift+tab", "turn(-1)", show=False, priority=True),
        Binding("q,f1,h,question_mark", "cancel", show=False),
    ]

    def __init__(
        self, keys: Sequence[Key], *, replay: bool = False, signals: bool = True, glyphs: Glyphs = UNICODE
    ) -> None:
        """*keys* are those of this session. *replay*: it is a replay. *signals*: the screen may change the script."""
        super().__init__(words.TITLE, glyphs=glyphs, width=92)
        self._keys, self._changes = keys, signals
        self._of_panels = {
            "processes": words.table_keys(replay=replay, signals=signals),
            "output": words.output_keys(typing=signals),
            "map": words.map_keys(replay=replay),
            "holders": words.holders_keys(replay=replay),
        }
        self._pages = ("", *topics())  # the first one has no name
        self._page_shown = 0

    def hints(self) -> list[Hint]:
        arrows = "Left Right" if self.glyphs.ascii else "← →"
        following = self._pages[(self._page_shown + 1) % len(self._pages)]
        return [("Esc", "close"), (arrows, words.turn(following))]

    def action_turn(self, step: int) -> None:
        """Show the next page, or the one before."""
        self._page_shown = (self._page_shown + step) % len(self._pages)
        name = self._pages[self._page_shown]
        self.heading = words.page_title(name) if name else words.TITLE
        self.redraw()
        self.content.scroll_home(animate=False)

    def body(self, width: int) -> list[Line]:
        name = self._pages[self._page_shown]
        if not name:
            return self._keys_and_words(width)
        return _manual_page(name, width)

    def _keys_and_words(self, width: int) -> list[Line]:
        lines: list[Line] = []
        for group, title in words.GROUPS.items():
            rows = [
                (key.shown, key.help + key.help_to_change * self._changes) for key in self._keys if key.group == group
            ]
            rows += self._of_panels.get(group, ())
            rows = [(on_the_key(shown, self.glyphs), meaning) for shown, meaning in rows]
            if rows:
                lines.append([Segment(title, BOLD)])
                lines += table_rows(rows, width, KEY)
        marks, graph = (
            [(getattr(self.glyphs, name, name), meaning) for name, meaning in rows]
            for rows in (words.MARKS, words.GRAPH)
        )
        lines += [[], [Segment(words.COLUMNS_TITLE, BOLD)], *table_rows(words.COLUMNS, width, PLAIN)]
        lines += [[], [Segment(words.MARKS_TITLE, BOLD)], *table_rows(marks, width, PLAIN)]
        lines += [[], [Segment(words.GRAPH_TITLE, BOLD)], *table_rows(graph, width, PLAIN)]
        lines += [[], [Segment(words.LAYERS_TITLE, BOLD)]]
        for kind, word, meaning in words.LAYERS:
            first, *rest = table_rows([(word, meaning)], width - 3, PLAIN)
            lines.append([Segment(f"  {self.glyphs.fill[kind] * 2} ", LAYER[kind]), *first[1:]])
            lines += [[Segment("   "), *line] for line in rest]
        none, light, medium, dense, full = list(shades(self.glyphs))
        small_map = words.SMALL_MAP.format(none=none, light=light, medium=medium, dense=dense, full=full)
        lines += [[Segment(f"  {line}")] for text in (small_map, words.UNKNOWN) for line in wrap(text, width - 2)]
        return lines


@lru_cache(maxsize=4)
def _manual_page(name: str, width: int) -> list[Line]:
    """Return a page of the manual as lines of *width* cells, in the terminal's own colours.

    Textual's own Markdown would draw bullets and borders in Unicode, also with ``--ascii``.
    """
    # This is imported here: Markdown takes longer to load than all of Textual that a screen needs.
    from rich.markdown import Markdown

    console = Console(width=width, theme=_THEME, color_system="standard", force_terminal=True, legacy_windows=False)
    page = Markdown(topic(name), hyperlinks=False, code_theme="ansi_dark")
    lines = [list(line) for line in console.render_lines(page, pad=False)]
    # Rich leaves two blank lines above a table.
    return [line for line, before in zip(lines, [[], *lines], strict=False) if not (_blank(line) and _blank(before))]


def _blank(line: Line) -> bool:
    return not any(segment.text.strip() for segment in line)


def table_rows(rows: Iterable[tuple[str, str]], width: int, style: Style) -> list[Line]:
    """Return the lines of a table: the left text of each row in *style*, and beside it its meaning, wrapped."""
    lines: list[Line] = []
    rows = list(rows)
    column = max(_LEFT, *(cell_len(left) + 1 for left, _ in rows))
    for left, meaning in rows:
        first, *rest = wrap(meaning, width - column - 2)
        lines.append([Segment("  "), Segment(exactly(left, column), style), Segment(first)])
        lines += [[Segment(" " * (column + 2)), Segment(line)] for line in rest]
    return lines


class ClusterHelp(HelpDialog):
    """The help of the cluster's screens. Its first page lists their keys and columns."""

    def __init__(self, *, glyphs: Glyphs) -> None:
        super().__init__(cluster_screen.KEYS, glyphs=glyphs)

    def _keys_and_words(self, width: int) -> list[Line]:
        lines: list[Line] = []
        for group, title in cluster_screen.KEY_GROUPS.items():
            lines.append([Segment(title, BOLD)])
            lines += table_rows(
                [(key.shown, key.help) for key in cluster_screen.KEYS if key.group == group], width, KEY
            )
        lines += [[], [Segment("Columns", BOLD)], *table_rows(cluster_screen.COLUMN_MEANINGS, width, PLAIN)]
        return [*lines, *([Segment(f"  {line}")] for line in wrap(words.UNKNOWN, width - 2))]
