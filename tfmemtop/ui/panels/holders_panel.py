"""The panel of a pool's holders: one recorded step as a graph, and the holders at its peak or any other moment."""

from collections.abc import Callable, Hashable
from typing import ClassVar, NamedTuple

from rich.segment import Segment
from textual import events as textual_events
from textual.binding import Binding, BindingType
from textual.geometry import clamp

from tfmemtop import events
from tfmemtop.experiments.session.session import Session
from tfmemtop.findings import holders as words
from tfmemtop.findings.missing import no_window
from tfmemtop.state import State
from tfmemtop.state.attribution import Kind
from tfmemtop.state.holder_views import (
    Happened,
    age_s,
    at_us,
    happened,
    pools_with_holders,
    since_run_s,
    windows,
)
from tfmemtop.state.holders import By, StepSlice
from tfmemtop.state.pool_views import PoolKey, can_be_read
from tfmemtop.state.windows import seconds_of
from tfmemtop.ui.draw import holder_table, step_graph
from tfmemtop.ui.draw.glyphs import ARROWS
from tfmemtop.ui.draw.lines import Line, paragraph
from tfmemtop.ui.draw.map_figures import place
from tfmemtop.ui.draw.palette import BOLD, DIM, KEY
from tfmemtop.ui.draw.scale import GUTTER
from tfmemtop.ui.draw.text import end_of
from tfmemtop.ui.panels.holders_choice import HoldersChoice
from tfmemtop.ui.screens import PoolWanted
from tfmemtop.ui.screens.full_screen import CoveringPanel, next_pool
from tfmemtop.units import duration

_GRAPH_FROM, _GRAPH_LEAST, _GRAPH_MOST = 18, 6, 18  # panel's lines for a graph; the graph's
_CALLS_FROM = 8  # a table's lines for one with the calls of the script
_TITLE_CELLS = 44  # cells of an operation's name in a title
_NOTE_CELLS = (90, 60, 40, 28)  # lengths, in cells, of the name of the operation that made the peak


class _Rows(NamedTuple):
    """What stands below the graph. ``draw`` returns the row of an index, and gets whether the cursor is on it.

    ``right`` is the right end of the title; without it, that says which rows are in view.
    """

    title: str
    right: str
    heading: Line
    keys: list[Hashable]
    draw: Callable[[int, bool], Line]
    below: list[Line]


class HoldersPanel(CoveringPanel):
    """The panel of a pool's holders. ``choice`` contains what the user has chosen to see."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("B", "close", show=False),
        Binding("M", "map", show=False),
        Binding("enter", "choose('enter')", show=False),
        Binding("g", "choose('regroup')", show=False),
        Binding("l", "choose('switch')", show=False),
        Binding("left,left_square_bracket", "moment(-1)", show=False),
        Binding("right,right_square_bracket", "moment(1)", show=False),
        Binding("p", "choose('to_peak')", show=False),
        Binding("e", "choose('to_end')", show=False),
        Binding("v", "choose('other_window')", show=False),
        Binding("n", "now", show=False),
        Binding("tab", "choose('other_pool', 1)", show=False, priority=False),
        Binding("shift+tab", "choose('other_pool', -1)", show=False),
    ]

    def __init__(self, session: Session, key: PoolKey | None, *, braille: bool = True) -> None:
        super().__init__(session)
        self.braille = braille
        known = pools_with_holders(session.state)
        # If no window of the pool is known, another pool is shown, of the same process if possible.
        if not windows(session.state, key):
            key = next((one for one in known if key and one[0] == key[0]), next(iter(known), key))
        self.choice = HoldersChoice(session.state, key)
        self._spots: dict[int, Hashable] = {}  # keys of the table's lines, by line of the panel
        self._graph_lines = range(0)
        self._graph_from = GUTTER  # the first column of the graph
        self._slices: tuple[StepSlice, ...] = ()  # the step as it is drawn

    def show(self, state: State) -> None:
        self.state = state
        self.choice.follow(state)
        self.redraw()

    def build(self, width: int, height: int) -> list[Line]:
        self._spots, self._graph_lines, self._slices = {}, range(0), ()
        choice = self.choice
        window, key = choice.window, choice.key
        lines = [self.title_line(width, self._title(), self._right(window))]
        if window is None or key is None:
            return lines + self._without(width)
        # The graph already names the operation that made the peak.
        made = happened(window, window.peak_at) if height < _GRAPH_FROM else None
        at = since_run_s(self.state, key[0], seconds_of(window, window.peak_at))
        most = 2 if height >= 30 else 1
        lines += holder_table.facts(window, choice.higher, made, at, width, most)
        if height >= _GRAPH_FROM:
            graph = clamp((height - len(lines) - 5) * 2 // 5, _GRAPH_LEAST, _GRAPH_MOST)
            self._graph_lines = range(len(lines), len(lines) + graph)
            # The graph and the bars have the same time.
            self._graph_from = step_graph.bars_from(width) if choice.buffers else GUTTER
            left = self._graph_from - GUTTER
            lines += [[Segment(" " * left), *line] for line in self._graph(window, width - left, graph)]
        lines.append(holder_table.legend(choice.standing(window, choice.at, By.KIND), width))
        above = len(lines)
        calls = height - above >= _CALLS_FROM and choice.has_calls
        rows = (self._lifetimes if choice.buffers else self._table)(window, width, calls)
        return lines + self._in_lines(rows, width, height - above, above)

    def _title(self) -> str:
        key = self.choice.key
        return words.TITLE if key is None else words.title(place(self.state, key), key[0])

    def _right(self, window: events.Holders | None) -> str:
        if window is None:
            return ""
        known = windows(self.state, self.choice.key)
        return words.which(known.index(window), len(known), age_s(self.state, window))

    def _without(self, width: int) -> list[Line]:
        """Return why there is no window to show, and what helps."""
        text, remedy = no_window(self.state, self.choice.key)
        lines: list[Line] = []
        for told, style in ((text, BOLD), (remedy, KEY), (words.WHAT_THIS_IS, DIM)):
            if told:
                lines += [[], *paragraph(told, width, style, "  ")]
        return lines

    # The step.

    def _graph(self, window: events.Holders, width: int, height: int) -> list[Line]:
        self._slices = slices = self.choice.course(window, step_graph.samples(width, self.braille))
        step = step_graph.Step(
            slices=slices,
            top=window.peak,
            whole_us=max((one.last_us for one in slices), default=0),
            peak=window.peak_at,
            cursor=self.choice.at,
            notes=words.peak_notes(window.peak, self._lengths(happened(window, window.peak_at))),
        )
        return step_graph.draw(step, width, height, self.braille)

    def _lengths(self, did: Happened | None) -> list[str]:
        """Return the name of an event's operation, cut to several lengths, the longest first."""
        name = words.operation(did.operation) if did and did.operation else ""
        return [end_of(name, cells) for cells in _NOTE_CELLS] if name else []

    # The table.

    def _in_lines(self, rows: _Rows, width: int, height: int, above: int) -> list[Line]:
        """Return *rows* in *height* lines; *above* is how many lines of the panel stand above them."""
        count, at = len(rows.keys), self.choice.index(rows.keys)
        seen = self.in_view(count, height - 2 - len(rows.below), at)
        right = rows.right or (words.seen(seen.start + 1, seen.stop, count) if len(seen) < count else "")
        self._spots = {line: rows.keys[index] for line, index in enumerate(seen, above + 2)}
        lines = [self.title_line(width, rows.title, right), rows.heading]
        lines += [rows.draw(index, index == at) for index in seen]
        return [*lines, *[[]] * (height - len(lines) - len(rows.below)), *rows.below]

    def _table(self, window: events.Holders, width: int, calls: bool) -> _Rows:
        choice = self.choice
        shown, entries = choice.standing(window, choice.at), choice.entries()
        most = max((entry.row.share for entry in entries), default=1.0)
        keys = [entry.key for entry in entries]
        below = [holder_table.sum_line(shown, choice.by, width)]
        if entries:
            row, part = entries[choice.index(keys)].row, entries[choice.index(keys)].part
            below.append(holder_table.detail(row, part, width))
            below += [holder_table.calls(part, width)] * calls

        def draw(index: int, here: bool) -> Line:
            entry = entries[index]
            if entry.part is not None:
                return holder_table.part_line(entry.part, width, chosen=here)
            row = holder_table.with_reason(entry.row, window.lost) if entry.row.kind is Kind.UNKNOWN else entry.row
            opened = entry.key in choice.open
            return holder_table.row_line(row, choice.by, most, width, self.braille, chosen=here, opened=opened)

        return _Rows(
            self._moment(window, shown.total),
            self._did(window),
            holder_table.heading(choice.by, width),
            keys,
            draw,
            below,
        )

    def _lifetimes(self, window: events.Holders, width: int, calls: bool) -> _Rows:
        shown, keys = self.choice.lifetimes(window), self.choice.lines()
        cursor_us = None if self.choice.at is None else at_us(window, self.choice.at)
        below: list[Line] = []
        if keys:
            chosen = shown.buffers[self.choice.index(keys)]
            below.append(step_graph.lifetime_detail(chosen, width))
            below += [holder_table.calls(chosen.part, width)] * calls

        def draw(index: int, here: bool) -> Line:
            return step_graph.lifetime_line(shown, shown.buffers[index], cursor_us, width, self.braille, chosen=here)

        return _Rows(words.LIFETIMES, "", step_graph.lifetime_heading(shown, width), keys, draw, below)

    def _moment(self, window: events.Holders, total: int) -> str:
        when = None
        if self.choice.at is not None:
            us = at_us(window, self.choice.at)
            when = words.UNKNOWN_TIME if us is None else duration(us)
        return words.table_title(words.moment(total, when), self.choice.by)

    def _did(self, window: events.Holders) -> str:
        """Return what the event under the cursor did; empty at the peak."""
        did = happened(window, self.choice.at) if self.choice.at is not None else None
        if did is None:
            return ""
        return words.happened(did.change, end_of(words.operation(did.operation or ""), _TITLE_CELLS))

    # What keys and the mouse do.

    def move(self, count: int) -> None:
        """Move the cursor by *count* lines."""
        self.choice.move(count)
        self.redraw()

    def leave(self) -> bool:
        return self.choice.leave()

    def hints(self) -> list[tuple[str, str]]:
        choice, known, hints = self.choice, windows(self.state, self.choice.key), []
        if known:
            hints += [
                (ARROWS, "row"),
                *([] if choice.buffers else [("g", f"by {words.group(choice.next_group)}")]),
            ]
            hints += [("p", "peak")] if choice.at is not None else []
            hints += [] if choice.buffers else [("Enter", "parts")]
            hints += [("l", "table" if choice.buffers else "lifetimes"), (self.sideways, "moment"), ("e", "end")]
            hints += [("v", "window")] if len(known) > 1 else []
        if self.session.may_change and choice.key is not None and can_be_read(self.session.state, choice.key):
            hints.append(("n", "now"))
        return [*hints, *next_pool(pools_with_holders(self.state), choice.key), ("M", "map")]

    def action_choose(self, method: str, *arguments: int) -> None:
        """Change the choice by its *method*, and draw the result."""
        getattr(self.choice, method)(*arguments)
        self.changed()

    def action_map(self) -> None:
        """Show the map of this pool instead of this screen."""
        self.post_message(PoolWanted(self.choice.key, holders=False))

    def action_now(self) -> None:
        """Request a window of the process now, or tell the user why that is not possible."""
        key = self.choice.key
        if self.session.replay is not None:
            self.app.notify(words.NOW_IN_REPLAY)
        elif not self.session.may_change:
            self.app.notify(self.session.why_unchangeable)
        elif key is None or not can_be_read(self.session.state, key):
            self.app.notify(words.NOW_ENDED)
        else:
            self.choice.newest = True
            self.session.send(events.HoldersNow(pid=key[0]))
            self.app.notify(words.NOW_ASKED, timeout=4)

    def action_moment(self, step: int) -> None:
        """Go to the highest moment in the next column of the graph (+1), or in the one before (-1)."""
        window, columns = self.choice.window, self._columns()
        if window is None:
            return
        now = window.peak_at if self.choice.at is None else self.choice.at
        at = next((at for at, column in enumerate(columns) if now <= column[-1].last), len(columns) - 1) + step
        while 0 <= at < len(columns):
            highest = max(columns[at], key=lambda one: one.total).event
            # A column without events repeats the one before it, and is passed over.
            if (highest > now) == (step > 0) and highest != now:
                self.choice.go_to(highest)
                break
            at += step
        self.changed()

    def _columns(self) -> list[tuple[StepSlice, ...]]:
        """Return the slices in each column of the graph: two in Braille, else one."""
        per_cell = 2 if self.braille else 1
        return [self._slices[at : at + per_cell] for at in range(0, len(self._slices), per_cell)]

    def on_click(self, click: textual_events.Click) -> None:
        columns = self._columns()
        if click.y in self._graph_lines and columns:
            column = columns[clamp(click.x - self._graph_from, 0, len(columns) - 1)]
            self.choice.go_to(max(column, key=lambda one: one.total).event)
        elif click.y in self._spots:
            again = self.choice.line == self._spots[click.y]
            self.choice.line = self._spots[click.y]
            if again:
                self.choice.enter()
        self.changed()
