"""M: the full screen of the inside of one pool: its address space, what is in it, how it grew."""

from typing import ClassVar

from rich.segment import Segment
from textual import events as textual_events
from textual.binding import Binding, BindingType
from textual.geometry import clamp

from tfmemtop import events
from tfmemtop.experiments.session.session import Session
from tfmemtop.findings.holders import NO_FACES
from tfmemtop.reports import labels
from tfmemtop.reports.labels import EMPTY_POOL, NO_POOL
from tfmemtop.state import State
from tfmemtop.state.pool_views import (
    PoolKey,
    PoolMap,
    can_be_read,
    choose,
    exhausted,
    pool_map,
    pools,
    why_no_map,
)
from tfmemtop.ui.draw import chunk_map, map_figures
from tfmemtop.ui.draw import map_text as words
from tfmemtop.ui.draw.lines import Line
from tfmemtop.ui.draw.map_text import remedy_text, why_text
from tfmemtop.ui.draw.palette import BOLD, DIM, KEY, RULE, UNICODE, Glyphs
from tfmemtop.ui.draw.text import wrap
from tfmemtop.ui.map_requests import PACE_S
from tfmemtop.ui.panels.map_holders import MapHolders
from tfmemtop.ui.screens.drawn import Changed, PoolWanted
from tfmemtop.ui.screens.full_screen import FullScreen, MovedPanel
from tfmemtop.units import sentence

_SIDE, _SIDE_FROM = 46, 112  # cells of the tables beside the map; width from which they stand there


class MapPanel(MovedPanel):
    """The map of the pool ``key`` with its figures, from the newest state."""

    def __init__(self, state: State, key: PoolKey | None, *, glyphs: Glyphs = UNICODE) -> None:
        super().__init__(glyphs=glyphs)
        self.key = key
        self.zoom: int | None = None  # address of the one region shown
        # `moment`: show the map of the moment when an allocation failed. After a process has ended, users most likely
        # want to see that moment.
        self.moment = key is not None and not can_be_read(state, key) and exhausted(state, key) is not None
        self.chosen: int | None = None  # address of the region under the cursor
        self.view: PoolMap | None = None
        self._trouble: Exception | None = None  # why there is no view
        self._top = 0
        self._follow = True
        self._page = 1
        self._spots: dict[int, int] = {}  # index of the region that is drawn on a line
        self.holders = MapHolders(glyphs)

    def show(self, state: State) -> None:
        self.state = state
        known = pools(state)
        if self.key not in known:
            # The pool of the same device in the next run replaces it.
            self.key = next((key for key in known if self.key and key[1] == self.key[1]), choose(state))
            self.zoom, self.moment = None, False
        self.look()

    def look(self) -> None:
        """Compute the newest view of the pool, and draw it."""
        self.view, self._trouble = None, None
        try:
            self._find()
            self.holders.look(self.state, self.key, self.view)
        except Exception as error:
            self._trouble = error  # raised again in `build`, so that the panel shows it
        self.redraw()

    def _find(self) -> None:
        if self.key is not None:
            moment = self.moment and exhausted(self.state, self.key) is not None
            self.view = pool_map(self.state, self.key, zoom=self.zoom, out_of_memory=moment)
            if self.view and self.zoom is not None and self._zoomed(self.view) is None:
                self.zoom = None  # the region has been freed
                self.view = pool_map(self.state, self.key, out_of_memory=moment)

    @staticmethod
    def _index(view: PoolMap, address: int | None) -> int | None:
        return next((i for i, region in enumerate(view.regions) if region.address == address), None)

    def _zoomed(self, view: PoolMap) -> int | None:
        return self._index(view, self.zoom)

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
        if self._trouble is not None:
            raise self._trouble
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
        legend = (
            self.holders.legend(arranged, width) if faced else map_figures.legend(view, arranged, width, self.glyphs)
        )
        lines.append(legend)
        body = self._map(view, arranged, map_width, rows, len(lines))
        body.append(map_figures.region_line(view.regions[self.at], map_width, self.glyphs))
        if faced:
            body.append(self.holders.line(view.regions[self.at], map_width))
        tables = map_figures.sections(view, (_SIDE if beside else width // 2) - 1, self.glyphs)
        if beside:
            return lines + self._beside(body, tables, map_width, height - len(lines))
        return lines + body + (self._below(tables, width, below) if below else [])

    def _map(self, view: PoolMap, arranged: chunk_map.Arranged, width: int, rows: int, above: int) -> list[Line]:
        """Return the heading, and *rows* rows of cells. *above* is how many lines of the panel are above them."""
        self._page = rows
        count, chosen = len(arranged.rows), self.at
        cursor = self.holders.cursor if self.holders.seen else None
        if self._follow and (self.zoom is None or cursor is not None):
            places = [index for index, row in enumerate(arranged.rows) if row.region == chosen]
            if cursor is not None:
                rows_before = [at for at in places if arranged.rows[at].start <= cursor]
                places = rows_before[-1:]
            if places:
                self._top = clamp(self._top, min(places[-1] - rows + 1, places[0]), places[0])
        self._top = clamp(self._top, 0, max(0, count - rows))
        shown = arranged.rows[self._top : self._top + rows]
        for line, row in enumerate(shown, above + 1):
            self._spots[line] = row.region
        if self.zoom is not None:
            head: Line = [Segment(f"{'offset':>8}", DIM)]
            drawn = chunk_map.draw_zoomed(arranged, width, self._top, rows, self.glyphs, self._paint)
        else:
            head = chunk_map.heading(width)
            drawn = chunk_map.draw(view.regions, arranged, width, self._top, rows, self.glyphs, chosen, self._paint)
        if count > rows:
            head = [*head, Segment(f"  {words.rows_shown(self._top + 1, self._top + len(shown), count)}", DIM)]
        head = Segment.adjust_line_length(head, width)
        return [head, *drawn, *[[Segment(" " * width)]] * (rows - len(drawn))]

    def _paint(self, row: chunk_map.MapRow) -> Line:
        if self.view is None or not self.holders.seen:
            return chunk_map.draw_cells(row.cells, self.glyphs)
        return self.holders.paint(row, self.view.regions[row.region], row.region == self.at)

    def _beside(self, body: list[Line], tables: list[map_figures.Section], width: int, height: int) -> list[Line]:
        side = map_figures.stack(tables, _SIDE - 1, height, map_figures.side_title)
        border = Segment("|" if self.glyphs.ascii else "│", RULE)
        joined = []
        for index in range(max(len(body), min(height, len(side)))):
            left = body[index] if index < len(body) else []
            right = side[index] if index < len(side) else []
            joined.append([*Segment.adjust_line_length(left, width), border, *right])
        return joined

    def _below(self, tables: list[map_figures.Section], width: int, height: int) -> list[Line]:
        """Return the tables in two columns: the first table on the left, the others on the right."""
        half = width // 2
        left = map_figures.stack(tables[:1], half - 1, height, map_figures.side_title)
        right = map_figures.stack(tables[1:], half - 1, height, map_figures.side_title)
        border = Segment("|" if self.glyphs.ascii else "│", RULE)
        lines = []
        for index in range(max(len(left), len(right))):
            first = left[index] if index < len(left) else []
            second = right[index] if index < len(right) else []
            lines.append([*Segment.adjust_line_length(first, half), border, *second])
        return lines

    def _title(self) -> str:
        if self.key is None:
            return words.INSIDE
        process = self.state.processes.get(self.key[0])
        reading = process.hooked.allocators.get(self.key[1]) if process and process.hooked else None
        allocator = reading.allocator or "" if reading else ""
        alone = self.at + 1 if self.view and self.zoom is not None else None
        return words.title(words.place(self.state, self.key), allocator, self.key[0], alone)

    def _right(self) -> str:
        if self.view is None:
            return ""
        at = chunk_map.clock(self.view.at_s)
        alive = self.key is not None and can_be_read(self.state, self.key)
        return words.moment(at, exhausted=bool(self.view.exhausted), living=alive)

    def _without(self, width: int, view: PoolMap | None) -> list[Line]:
        """Return why there is no map, and what helps."""
        if self.key is None:
            text, remedy = NO_POOL, ""
        elif view is not None:
            text, remedy = EMPTY_POOL, ""
        else:
            reason = why_no_map(self.state, self.key)
            text, remedy = why_text(reason), remedy_text(reason)
        lines: list[Line] = [[]]
        for told, style in ((sentence(words.no_map(text)), BOLD), (remedy, KEY)):
            lines += [[Segment(f"  {line}", style)] for line in (wrap(told, width - 4) if told else [])]
        return lines

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

    def page(self, count: int) -> None:
        """Move by *count* times the rows that fit on the screen."""
        self.move(count * max(1, self._page - 1))

    def scroll_rows(self, count: int) -> None:
        """Scroll by *count* rows, down if positive; the cursor stays."""
        self._follow = False
        self._top = max(0, self._top + count)
        self.redraw()

    def move_cell(self, step: int) -> None:
        """Move by *step* cells in the region under the cursor, to show the holder of that cell."""
        if self.holders.seen and self.view and self.view.regions:
            self._follow = True
            self.holders.move(self.view.regions[self.at], step)
            self.redraw()

    def enter(self) -> None:
        """Show the region under the cursor alone; if one is shown alone, show all again."""
        if self.zoom is None and self.view and self.view.regions:
            self.chosen = self.zoom = self.view.regions[self.at].address
            self._top = 0
            self.holders.cursor = None
        else:
            self.leave()
        self.look()

    def leave(self) -> bool:
        """Show all regions again; return false if all are shown already."""
        if self.zoom is None:
            return False
        self.zoom, self._top, self._follow = None, 0, True
        self.holders.cursor = None
        self.look()
        return True

    def other(self, step: int) -> None:
        """Show the next pool (+1) or the one before (-1)."""
        known = pools(self.state)
        if known:
            at = known.index(self.key) if self.key in known else 0
            self.key = known[(at + step) % len(known)]
            self.zoom, self.chosen, self.moment, self._top = None, None, False, 0
            self.holders.cursor = None
            self.look()

    def on_click(self, click: textual_events.Click) -> None:
        index = self._spots.get(click.y)
        if index is not None and self.view and self.zoom is None:
            self.chosen = self.view.regions[index].address
            self.redraw()

    def on_mouse_scroll_down(self, event: textual_events.MouseScrollDown) -> None:
        event.stop()
        self.scroll_rows(3)

    def on_mouse_scroll_up(self, event: textual_events.MouseScrollUp) -> None:
        event.stop()
        self.scroll_rows(-3)


class MapScreen(FullScreen[MapPanel]):
    """The screen of a pool's map."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,ctrl+c", "back", show=False),
        Binding("M,q", "close", show=False),
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

    def __init__(self, session: Session, key: PoolKey | None, *, glyphs: Glyphs, color: bool = True) -> None:
        super().__init__(session, MapPanel(session.state, key, glyphs=glyphs))

    @property
    def wish(self) -> events.MapWanted | None:
        key = self.panel.key
        if key is None or self.panel.moment or not can_be_read(self.session.state, key):
            return None
        return events.MapWanted(pid=key[0], device=key[1], pace_s=PACE_S, region=self.panel.zoom)

    def hints(self) -> list[tuple[str, str]]:
        panel = self.panel
        arrows = f"{panel.glyphs.up}{panel.glyphs.down}"
        hints = [("Esc", "back")]
        hints += [(arrows, "region"), ("Enter", "zoom")] if panel.zoom is None else [(arrows, "scroll")]
        if panel.holders.faces is not None:
            sides = "[ ]" if self.session.replay else "Left Right" if panel.glyphs.ascii else "← →"
            hints += [(sides, "cell")] * panel.holders.shown
            hints += [("b", labels.IN_USE if panel.holders.shown else labels.BY_HOLDER), ("B", "holders")]
        known = pools(panel.state)
        if len(known) > 1 and panel.key in known:
            pid, device = known[(known.index(panel.key) + 1) % len(known)]
            hints.append(("Tab", device + (f" of {pid}" if pid != panel.key[0] else "")))
        if panel.key is not None and exhausted(panel.state, panel.key):
            hints.append(("o", "now" if panel.moment else words.AS_IT_RAN_OUT))
        if self.session.may_change:
            hints += [("L", "limit"), ("A", "allocator"), ("R", "relaunch")]
        return [*hints, ("F1", "help")]

    def _changed(self) -> None:
        self.post_message(Changed())

    def action_holders(self) -> None:
        """Show the holders of this pool instead of this screen."""
        self.post_message(PoolWanted(self.panel.key, holders=True))

    def action_back(self) -> None:
        if self.panel.leave():
            self._changed()
        else:
            self.action_close()

    def action_zoom(self) -> None:
        self.panel.enter()
        self._changed()

    def action_other(self, step: int) -> None:
        self.panel.other(step)
        self._changed()

    def action_sideways(self, step: int) -> None:
        """Move to another cell if the cells have faces, else to another pool."""
        if self.panel.holders.seen:
            self.action_cell(step)
        else:
            self.action_other(step)

    def action_cell(self, step: int) -> None:
        self.panel.move_cell(step)
        self._changed()

    def action_faces(self) -> None:
        """Switch between drawing the cells by their holders and by how much of them is in use."""
        if self.panel.holders.faces is None:
            self.app.notify(NO_FACES, timeout=4)
        self.panel.holders.shown = not self.panel.holders.shown
        self.panel.look()
        self._changed()

    def action_moment(self) -> None:
        if self.panel.key is not None and exhausted(self.panel.state, self.panel.key):
            self.panel.moment = not self.panel.moment
            self.panel.zoom = None
            self.panel.look()
            self._changed()
