"""The table of a cluster: one row for each rank or GPU, the worst first. A frame draws only the rows in view."""

from typing import ClassVar

from rich.segment import Segment
from textual.binding import Binding, BindingType
from textual.geometry import clamp
from textual.message import Message

from tfmemtop.cluster import text as words
from tfmemtop.cluster.judge import Judged
from tfmemtop.cluster.overview import ClusterRow, Pool
from tfmemtop.cluster.watch import Seen
from tfmemtop.ui.draw.columns import Layout
from tfmemtop.ui.draw.lines import Line, fit
from tfmemtop.ui.draw.palette import DIM, Glyphs
from tfmemtop.ui.keys import FILTERING
from tfmemtop.ui.panels.cluster_rows import ClusterOrder, lay_out, longest, matching, row_line, sort
from tfmemtop.ui.panels.key_bar import Hints
from tfmemtop.ui.panels.row_table import TOP, RowTable


class ClusterTable(RowTable[ClusterOrder]):
    """The table of a cluster. It sends messages when the user opens a row and when the cursor moves."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter", "open", show=False)]

    class Opened(Message):
        """The user wants to see the GPU of *row*."""

        def __init__(self, row: ClusterRow) -> None:
            super().__init__()
            self.row = row

    class Moved(Message):
        """Another row may be under the cursor now."""

    def __init__(self, job: str | None, *, glyphs: Glyphs) -> None:
        super().__init__(ClusterOrder(), glyphs=glyphs)
        self.seen = Seen()
        self._job = job
        self._rows: list[Judged] | None = None  # filtered and sorted; None until they are needed
        self._chosen: Pool | None = None  # None: the first row, whichever that is
        self._layout: Layout[Judged] = Layout()
        self._needed: dict[str, int] = {}

    # What is shown.

    def look(self, seen: Seen) -> None:
        """Draw *seen*, the newest answer of the server."""
        if seen.overview is not self.seen.overview:
            self._rows = None
            self._needed = longest(seen.overview.rows)
        self.seen = seen
        self.redraw()

    @property
    def rows(self) -> list[Judged]:
        """The rows as they stand in the table: filtered and sorted."""
        if self._rows is None:
            self._rows = sort(matching(self.seen.overview.rows, self.filter.text), self.order)
            self._find_chosen()
        return self._rows

    @property
    def selected(self) -> Judged | None:
        """The row under the cursor; ``None`` if there are no rows."""
        return self.rows[self._index] if self.rows else None

    @property
    def mode(self) -> Hints:
        """The keys of the filter while the user types it."""
        return FILTERING if self.filter.typing else ()

    def build(self, width: int, height: int) -> list[Line]:
        rows = self.rows
        self._layout = lay_out(width, self._needed)
        room = max(0, height - TOP)
        self.keep_in_view(len(rows), room)
        lines = [self._title(width, len(rows)), self._layout.names(self.order)]
        lines += [
            row_line(rows[index], self._layout, self.glyphs, chosen=index == self._index)
            for index in range(self._top, min(len(rows), self._top + room))
        ]
        if not rows:
            lines.append([Segment(fit(f"  {self._why_empty()}", width, self.glyphs), DIM)])
        return lines

    def _title(self, width: int, shown: int) -> Line:
        count = len(self.seen.overview.rows)
        title = words.table_title(shown, count)
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
        """Set the index to where the chosen row is now. If that row has gone, its neighbour becomes the chosen one."""
        rows = self._rows or []
        if self._chosen is None:
            self._index = 0
            return
        found = next((index for index, one in enumerate(rows) if one.row.key == self._chosen), None)
        self._index = clamp(self._index, 0, max(0, len(rows) - 1)) if found is None else found
        self._chosen = rows[self._index].row.key if rows else self._chosen

    @property
    def count(self) -> int:
        return len(self.rows)

    def column_at(self, x: int) -> str | None:
        return self._layout.at(x)

    def select(self, index: int) -> None:
        if self.rows:
            self._index = clamp(index, 0, len(self.rows) - 1)
            # On the first row the cursor stays at the top, whichever row is there later.
            self._chosen = self.rows[self._index].row.key if self._index else None
        self._follow = True
        self.redraw()
        self.post_message(self.Moved())

    def rearrange(self) -> None:
        self._rows = None
        self._follow = True
        self.redraw()
        self.post_message(self.Moved())

    def action_open(self) -> None:
        """Open the screen of the chosen row's GPU."""
        if chosen := self.selected:
            self.post_message(self.Opened(chosen.row))
