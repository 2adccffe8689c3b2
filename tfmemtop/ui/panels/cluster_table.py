"""The table of a cluster: one row a rank or GPU, what is wrong first. A frame costs what is in view."""

from typing import ClassVar

from rich.segment import Segment
from textual import events as textual_events
from textual.binding import Binding, BindingType
from textual.geometry import clamp
from textual.message import Message

from tfmemtop.cluster.judge import Judged
from tfmemtop.cluster.overview import Pool, Row
from tfmemtop.cluster.watch import Seen
from tfmemtop.ui.draw.lines import Line, Panel, fit
from tfmemtop.ui.draw.palette import DIM, Glyphs
from tfmemtop.ui.panels.cluster_rows import Layout, Order, header, lay_out, longest, matching, row_line, sort
from tfmemtop.ui.panels.key_bar import Hints
from tfmemtop.ui.panels.process_filter import FilterPrompt
from tfmemtop.words import cluster as words
from tfmemtop.words.keys import FILTERING

_TOP = 2
"""Lines above the first row: title and header."""


class ClusterTable(Panel, can_focus=True):
    """The table. It asks for the one GPU by a message."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "move(-1)", show=False),
        Binding("down", "move(1)", show=False),
        Binding("pageup", "page(-1)", show=False),
        Binding("pagedown", "page(1)", show=False),
        Binding("home", "edge(-1)", show=False),
        Binding("end", "edge(1)", show=False),
        Binding("full_stop,f6", "sort(1)", show=False),
        Binding("comma", "sort(-1)", show=False),
        Binding("I", "invert", show=False),
        Binding("slash,f4", "filter", show=False),
        Binding("enter", "open", show=False),
        Binding("escape", "clear", show=False),
    ]

    class Opened(Message):
        """The user wants to see the GPU of *row*."""

        def __init__(self, row: Row) -> None:
            super().__init__()
            self.row = row

    class Moved(Message):
        """Another row is chosen."""

    def __init__(self, job: str | None, *, glyphs: Glyphs) -> None:
        super().__init__(glyphs=glyphs)
        self.order = Order()
        self.filter = FilterPrompt(self)
        self.seen = Seen()
        self._job = job
        self._rows: list[Judged] | None = None  # filtered and sorted; None until they are needed
        self._chosen: Pool | None = None  # None: the first row, whichever that is
        self._index = 0
        self._top = 0
        self._follow = True  # keep the selected row in view; off while the wheel looks elsewhere
        self._layout = Layout(())
        self._needed: dict[str, int] = {}

    # What is shown.

    def look(self, seen: Seen) -> None:
        """Take *seen* as the newest."""
        if seen.overview is not self.seen.overview:
            self._rows = None
            self._needed = longest(seen.overview.rows)
        self.seen = seen
        self.redraw()

    @property
    def rows(self) -> list[Judged]:
        """The rows as they stand in the table."""
        if self._rows is None:
            self._rows = sort(matching(self.seen.overview.rows, self.filter.text), self.order)
            self._find_chosen()
        return self._rows

    @property
    def selected(self) -> Judged | None:
        """The row the cursor is on."""
        return self.rows[self._index] if self.rows else None

    @property
    def mode(self) -> Hints:
        """The keys of the filter while it is typed."""
        return FILTERING if self.filter.typing else ()

    def build(self, width: int, height: int) -> list[Line]:
        rows = self.rows
        self._layout = lay_out(width, self._needed)
        room = max(0, height - _TOP)
        if self._follow:
            self._top = clamp(self._top, self._index - max(1, room) + 1, self._index)
        self._top = clamp(self._top, 0, max(0, len(rows) - room))
        lines = [self._title(width, len(rows)), header(self._layout, self.order)]
        lines += [
            row_line(rows[index], self._layout, self.glyphs, chosen=index == self._index)
            for index in range(self._top, min(len(rows), self._top + room))
        ]
        if not rows:
            lines.append([Segment(fit(f"  {self._why_empty()}", width, self.glyphs), DIM)])
        return lines

    def _title(self, width: int, shown: int) -> Line:
        count = len(self.seen.overview.rows)
        title = f"Ranks and GPUs {count:,}" if shown == count else f"Ranks and GPUs {shown:,} of {count:,}"
        parts = [f"sort {self.order.column} {self.glyphs.down if self.order.falling else self.glyphs.up}"]
        parts = self.filter.title(width - len(title) - 16, parts, self.glyphs)
        return self.title_line(width, title, f" {self.glyphs.dot} ".join(parts), chosen=self.has_focus)

    def _why_empty(self) -> str:
        if self.seen.overview.rows:
            return words.no_match(self.filter.text)
        if self.seen.trouble is not None:
            return ""
        return words.nothing_of(self._job) if self.seen.complete else words.ASKING

    # The cursor.

    def _find_chosen(self) -> None:
        """Put the index where the chosen row is now; one that has gone leaves it to its neighbour."""
        rows = self._rows or []
        if self._chosen is None:
            self._index = 0
            return
        found = next((index for index, one in enumerate(rows) if one.row.key == self._chosen), None)
        self._index = clamp(self._index, 0, max(0, len(rows) - 1)) if found is None else found
        self._chosen = rows[self._index].row.key if rows else self._chosen

    def _select(self, index: int) -> None:
        if self.rows:
            self._index = clamp(index, 0, len(self.rows) - 1)
            # At the top the cursor stays with whatever is worst.
            self._chosen = self.rows[self._index].row.key if self._index else None
        self._follow = True
        self.redraw()
        self.post_message(self.Moved())

    def rearrange(self) -> None:
        """Draw the rows anew: their order, or which of them are shown, has changed."""
        self._rows = None
        self._follow = True
        self.redraw()
        self.post_message(self.Moved())

    def action_move(self, count: int) -> None:
        self._select(self._index + count)

    def action_page(self, count: int) -> None:
        self._select(self._index + count * max(1, self.size.height - _TOP - 1))

    def action_edge(self, side: int) -> None:
        self._select(len(self.rows) if side > 0 else 0)

    # Order and filter.

    def action_sort(self, count: int) -> None:
        self.order = self.order.step(count)
        self.rearrange()

    def action_invert(self) -> None:
        self.order = self.order.by(self.order.column)
        self.rearrange()

    def action_filter(self) -> None:
        """Type a filter: Enter keeps it, Esc clears it."""
        self.focus()
        self.filter.begin()

    def action_clear(self) -> None:
        """Clear the filter."""
        self.filter.set("")

    def check_consume_key(self, key: str, character: str | None) -> bool:
        return self.filter.typing and character is not None and character.isprintable()

    def on_key(self, event: textual_events.Key) -> None:
        if self.filter.typing:
            self.filter.press(event)

    def on_paste(self, event: textual_events.Paste) -> None:
        if self.filter.typing:
            event.stop()
            self.filter.paste(event.text)

    def on_blur(self) -> None:
        if self.filter.typing:
            self.filter.keep()
        self.redraw()

    def on_focus(self) -> None:
        self.redraw()

    def action_open(self) -> None:
        """See the GPU of the chosen row."""
        if chosen := self.selected:
            self.post_message(self.Opened(chosen.row))

    # The mouse.

    def on_click(self, click: textual_events.Click) -> None:
        if click.y == 1 and (column := self._layout.at(click.x)):
            self.order = self.order.by(column.name)
            self.rearrange()
        index = self._top + click.y - _TOP
        if click.y >= _TOP and index < len(self.rows):
            self._select(index)
            if click.chain == 2:
                self.action_open()

    def on_mouse_scroll_down(self, event: textual_events.MouseScrollDown) -> None:
        self._scroll(event, 3)

    def on_mouse_scroll_up(self, event: textual_events.MouseScrollUp) -> None:
        self._scroll(event, -3)

    def _scroll(self, event: textual_events.MouseEvent, count: int) -> None:
        event.stop()
        self._follow = False
        self._top += count
        self.redraw()
