"""M: the full screen of the inside of one pool: its address space, what is in it, how it grew."""

from itertools import zip_longest
from typing import ClassVar

from rich.segment import Segment
from textual import events as textual_events
from textual.binding import Binding, BindingType
from textual.geometry import clamp

from tfmemtop import events
from tfmemtop.experiments.session.session import Session
from tfmemtop.findings.holders import NO_FACES
from tfmemtop.findings.missing import no_map
from tfmemtop.state import State
from tfmemtop.state.pool_views import PoolKey, PoolMap, can_be_read, choose, exhausted, pool_map, pools
from tfmemtop.ui.draw import chunk_map, map_figures
from tfmemtop.ui.draw.glyphs import ARROWS, CURSOR
from tfmemtop.ui.draw.lines import Line, paragraph
from tfmemtop.ui.draw.map_figures import place
from tfmemtop.ui.draw.palette import BOLD, DIM, KEY, RULE
from tfmemtop.ui.panels.map_holders import MapHolders
from tfmemtop.ui.screens import MAP_PACE_S, PoolWanted
from tfmemtop.ui.screens.full_screen import CoveringPanel, beside, next_pool
from tfmemtop.units import sentence

_SIDE, _SIDE_FROM = 46, 112  # cells of the tables beside the map; width from which they stand there


class MapPanel(CoveringPanel):
    """The map of the pool ``key`` with its figures, from the newest state."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("M", "close", show=False),
        Binding("B", "holders", show=False),
        Binding("enter,z", "zoom", show=False),
        Binding("tab", "other(1)", show=False, priority=False),
        Binding("shift+tab", "other(-1)", show=False),
        Binding("right", "sideways(1)", show=False),
        Binding("left", "sideways(-1)", show=False),
        Binding("o", "moment", show=False),
        Binding("b", "faces", show=False),
        Binding("right_square_bracket", "cell(1)", show=False),
        Binding("left_square_bracket", "cell(-1)", show=False),
    ]

    def __init__(self, session: Session, key: PoolKey | None) -> None:
        super().__init__(session)
        self.key = key
        state = session.state
        self.zoom: int | None = None  # address of the one region shown
        # `moment`: show the map of the moment when an allocation failed. After a process has ended, users most likely
        # want to see that moment.
        self.moment = key is not None and not can_be_read(state, key) and exhausted(state, key) is not None
        self.chosen: int | None = None  # address of the region under the cursor
        self.view: PoolMap | None = None
        self._follow = True
        self._spots: dict[int, int] = {}  # index of the region that is drawn on a line
        self.holders = MapHolders()

    def show(self, state: State) -> None:
        self.state = state
        known = pools(state)
        if self.key not in known:
            # The pool of the same device in the next run replaces it.
            self.key = next((key for key in known if self.key and key[1] == self.key[1]), choose(state))
            self.zoom, self.moment = None, False
        self.redraw()

    def _look(self) -> None:
        """Compute the newest view of the pool."""
        self.view = None
        if self.key is not None:
            moment = self.moment and exhausted(self.state, self.key) is not None
            self.view = pool_map(self.state, self.key, zoom=self.zoom, out_of_memory=moment)
            if self.view and self.zoom is not None and self._index(self.view, self.zoom) is None:
                self.zoom = None  # the region has been freed
                self.view = pool_map(self.state, self.key, out_of_memory=moment)
        self.holders.look(self.state, self.key, self.view)

    @staticmethod
    def _index(view: PoolMap, address: int | None) -> int | None:
        return next((i for i, region in enumerate(view.regions) if region.address == address), None)

    @property
    def at(self) -> int:
        """The index of the region under the cursor; at first, that of the largest."""
        view = self.view
        if view is None or not view.regions:
            return 0
        index = self._index(view, self.zoom if self.zoom is not None else self.chosen)
        if index is None:
            index = max(range(len(view.regions)), key=lambda i: view.regions[i].size)
        return index

    def build(self, width: int, height: int) -> list[Line]:
        self._look()
        self._spots = {}
        lines = [self.title_line(width, self._title(), self._right(), chosen=False)]
        view = self.view
        if view is None or not view.regions:
            return lines + self._without(width, view)
        assert self.key is not None
        hooked = self.state.processes[self.key[0]].hooked
        reading = hooked.allocators.get(self.key[1]) if hooked else None
        lines += map_figures.figures(view, None if view.exhausted else reading, width, 2)
        beside = width >= _SIDE_FROM
        map_width = width - _SIDE if beside else width
        room = height - len(lines) - 1
        below = 0 if beside or room < 14 else room * 2 // 5
        faced = self.holders.seen
        rows = max(1, room - below - 2 - faced)
        labels = 0 if self.zoom is not None else chunk_map.label_width(map_width)
        offsets = 9 if self.zoom is not None else 0
        arranged = chunk_map.arrange(view.regions, map_width - labels - offsets, rows)
        self.holders.arrange(view, arranged, map_width - labels - offsets)
        legend = self.holders.legend(arranged, width) if faced else map_figures.legend(view, arranged, width)
        lines.append(legend)
        body = self._map(view, arranged, map_width, rows, len(lines))
        body.append(map_figures.region_line(view.regions[self.at], map_width))
        if faced:
            body.append(self.holders.line(view.regions[self.at], map_width))
        tables = map_figures.sections(view, (_SIDE if beside else width // 2) - 1)
        if beside:
            side = map_figures.stack(tables, _SIDE - 1, height - len(lines))
            return lines + self._beside(body, side, map_width)
        return lines + body + (self._below(tables, width // 2, below) if below else [])

    def _map(self, view: PoolMap, arranged: chunk_map.Arranged, width: int, rows: int, above: int) -> list[Line]:
        """Return the heading, and *rows* rows of cells. *above* is how many lines of the panel are above them."""
        count, chosen = len(arranged.rows), self.at
        cursor = self.holders.cursor if self.holders.seen else None
        first = last = None  # the rows that must be in view
        if self._follow and (self.zoom is None or cursor is not None):
            places = [index for index, row in enumerate(arranged.rows) if row.region == chosen]
            if cursor is not None:
                places = [at for at in places if arranged.rows[at].start <= cursor][-1:]
            first, last = (places[0], places[-1]) if places else (None, None)
        self.in_view(count, rows, last)
        seen = self.in_view(count, rows, first)
        self._spots = {line: arranged.rows[row].region for line, row in enumerate(seen, above + 1)}
        head = chunk_map.heading(width) if self.zoom is None else [Segment(f"{'offset':>8}", DIM)]
        label = chunk_map.region_labels(view.regions, width, chosen)
        label = label if self.zoom is None else chunk_map.offset_label
        drawn = chunk_map.draw(arranged, width, seen, label, self._paint)
        if count > rows:
            head = [*head, Segment(f"  rows {seen.start + 1} to {seen.stop} of {count}", DIM)]
        head = Segment.adjust_line_length(head, width)
        return [head, *drawn, *[[Segment(" " * width)]] * (rows - len(drawn))]

    def _paint(self, row: chunk_map.MapRow) -> Line:
        if self.view is None or not self.holders.seen:
            return chunk_map.draw_cells(row.cells)
        return self.holders.paint(row, self.view.regions[row.region], row.region == self.at)

    def _below(self, tables: list[map_figures.Section], width: int, height: int) -> list[Line]:
        """Return the tables in two columns: the first table on the left, the others on the right."""
        left, right = (map_figures.stack(part, width - 1, height) for part in (tables[:1], tables[1:]))
        return self._beside(left, right, width)

    def _beside(self, left: list[Line], right: list[Line], width: int) -> list[Line]:
        """Return the lines *left*, in *width* cells, and beside them the lines *right*."""
        border = Segment(CURSOR, RULE)
        both = zip_longest(left, right, fillvalue=list[Segment]())
        return [[*Segment.adjust_line_length(one, width), border, *other] for one, other in both]

    def _title(self) -> str:
        if self.key is None:
            return "Inside the pool"
        process = self.state.processes.get(self.key[0])
        reading = process.hooked.allocators.get(self.key[1]) if process and process.hooked else None
        allocator = f", {reading.allocator}" if reading and reading.allocator else ""
        alone = f", region {self.at + 1} alone" if self.view and self.zoom is not None else ""
        return f"Pool of {place(self.state, self.key)}{allocator}, process {self.key[0]}{alone}"

    def _right(self) -> str:
        if self.view is None:
            return ""
        at = chunk_map.clock(self.view.at_s)
        if self.view.exhausted:
            return f"when an allocation failed, {at}"
        alive = self.key is not None and can_be_read(self.state, self.key)
        return f"as of {at}" if alive else f"as it was last, at {at}"

    def _without(self, width: int, view: PoolMap | None) -> list[Line]:
        """Return why there is no map, and what helps."""
        if view is not None:
            text, remedy = "the pool is empty: TensorFlow has taken no memory for it yet", ""
        else:
            text, remedy = no_map(self.state, self.key)
        told = paragraph(sentence(f"no map: {text}"), width, BOLD, "  ")
        return [[], *told, *paragraph(remedy, width, KEY, "  ")]

    # What keys and the mouse do.

    def move(self, count: int) -> None:
        """Move the cursor by *count* regions; in a region that is shown alone, by rows of cells, or scroll."""
        self._follow = True
        view = self.view
        if self.zoom is not None:
            if self.holders.seen and view and view.regions:
                self.holders.move_row(view.regions[self.at], count)
                self.redraw()
            else:
                self.scroll_rows(count)
        elif view and view.regions:
            self.chosen = view.regions[clamp(self.at + count, 0, len(view.regions) - 1)].address
            self.holders.cursor = None
            self.redraw()

    def scroll_rows(self, count: int) -> None:
        """Scroll by *count* rows, down if positive; the cursor stays."""
        self._follow = False
        self.top = max(0, self.top + count)
        self.redraw()

    def on_click(self, click: textual_events.Click) -> None:
        index = self._spots.get(click.y)
        if index is not None and self.view and self.zoom is None:
            self.chosen = self.view.regions[index].address
            self.redraw()

    def leave(self) -> bool:
        if self.zoom is None:
            return False
        self._show_region(None)
        return True

    def _show_region(self, address: int | None) -> None:
        """Show the region at *address* alone, or all of them."""
        self.zoom, self.top, self._follow = address, 0, True
        self.holders.cursor = None

    def action_zoom(self) -> None:
        """Show the region under the cursor alone; if one is shown alone, show all again."""
        if self.zoom is None and self.view and self.view.regions:
            self.chosen = self.view.regions[self.at].address
            self._show_region(self.chosen)
        else:
            self._show_region(None)
        self.changed()

    def action_other(self, step: int) -> None:
        """Show the next pool (+1) or the one before (-1)."""
        if known := pools(self.state):
            self.key = beside(known, self.key, step)
            self.chosen, self.moment = None, False
            self._show_region(None)
            self.changed()

    def action_sideways(self, step: int) -> None:
        """Move to another cell if the cells have faces, else to another pool."""
        if self.holders.seen:
            self.action_cell(step)
        else:
            self.action_other(step)

    def action_cell(self, step: int) -> None:
        """Move by *step* cells in the region under the cursor, to show the holder of that cell."""
        if self.holders.seen and self.view and self.view.regions:
            self._follow = True
            self.holders.move(self.view.regions[self.at], step)
            self.changed()

    def action_faces(self) -> None:
        """Switch between drawing the cells by their holders and by how much of them is in use."""
        if self.holders.faces is None:
            self.app.notify(NO_FACES, timeout=4)
        self.holders.shown = not self.holders.shown
        self.changed()

    def action_moment(self) -> None:
        """Switch between the map of the moment when an allocation failed and the newest one."""
        if self.key is not None and exhausted(self.state, self.key):
            self.moment = not self.moment
            self.zoom = None
            self.changed()

    def action_holders(self) -> None:
        """Show the holders of this pool instead of this screen."""
        self.post_message(PoolWanted(self.key, holders=True))

    @property
    def wish(self) -> events.MapWanted | None:
        if self.key is None or self.moment or not can_be_read(self.session.state, self.key):
            return None
        return events.MapWanted(pid=self.key[0], device=self.key[1], pace_s=MAP_PACE_S, region=self.zoom)

    def hints(self) -> list[tuple[str, str]]:
        hints = [(ARROWS, "region"), ("Enter", "zoom")] if self.zoom is None else [(ARROWS, "scroll")]
        if self.holders.faces is not None:
            hints += [(self.sideways, "cell")] * self.holders.shown
            hints += [("b", "in use" if self.holders.shown else "by holder"), ("B", "holders")]
        hints += next_pool(pools(self.state), self.key)
        if self.key is not None and exhausted(self.state, self.key):
            hints.append(("o", "now" if self.moment else "as memory ran out"))
        if self.session.may_change:
            hints += [("L", "limit"), ("A", "allocator"), ("R", "relaunch")]
        return hints
