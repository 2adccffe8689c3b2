"""Who holds a pool: one step as it was recorded, and who stands there at its peak or at any moment of it."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import TypeVar

from rich.segment import Segment
from textual import events as textual_events
from textual.geometry import clamp

from tfmemtop import events
from tfmemtop.state import State
from tfmemtop.state.holder_views import (
    Change,
    Happened,
    Listed,
    Row,
    age_s,
    changes,
    course_slices,
    happened,
    hooked_at,
    listed,
    pools_with_holders,
    since_run_s,
    windows,
)
from tfmemtop.state.holders import By, Part
from tfmemtop.state.model import Hooked
from tfmemtop.state.no_holders import why_none
from tfmemtop.state.pool_views import PoolKey, place
from tfmemtop.state.step_slices import Slice
from tfmemtop.ui.draw import holder_facts, holder_table, step_graph
from tfmemtop.ui.draw.axis import GUTTER
from tfmemtop.ui.draw.lines import Line
from tfmemtop.ui.draw.map_figures import duration
from tfmemtop.ui.draw.palette import BOLD, DIM, KEY, UNICODE, Glyphs
from tfmemtop.ui.draw.text import end_of, wrap
from tfmemtop.ui.screens.full_screen import MovedPanel
from tfmemtop.words import holders as words

_GRAPH_FROM, _GRAPH_LEAST, _GRAPH_MOST = 18, 6, 18  # lines of the panel from which there is a graph, and of that
_BESIDE = 2  # cells between two graphs
_NOTE_CELLS = (90, 60, 40, 28)
_OPERATION_MOST = 44  # cells of an operation's name in a title

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Entry:
    """A line of the table that the cursor can stand on: a row, or a part of it."""

    key: Hashable
    row: Row
    part: Part | None = None
    unknown: bool = False


class HoldersPanel(MovedPanel):
    """``key`` is the pool it shows; it keeps to the newest window until another is chosen."""

    def __init__(
        self, state: State, key: PoolKey | None, *, glyphs: Glyphs = UNICODE, color: bool = True, id: str | None = None
    ) -> None:
        super().__init__(glyphs=glyphs, id=id)
        self.state = state
        self.key = key
        self.by = By.LAYER
        self.chosen_window: int | None = None  # its number; the newest if none
        self.against: int | None = None  # the number of the window before, if two are laid beside each other
        self.at: int | None = None  # the event under the cursor; the peak if none
        self._letters = glyphs.ascii or not color
        self._chosen: Hashable = None
        self._open: set[Hashable] = set()
        self._top = 0
        self._page = 1
        self._spots: dict[int, int] = {}  # index of an entry by line
        self._first_line = 0  # of the table
        self._graph_lines = range(0)
        self._slices: tuple[Slice, ...] = ()
        self._kept: dict[str, tuple[tuple[object, ...], object]] = {}

    # What is shown.

    def show(self, state: State) -> None:
        self.state = state
        known = pools_with_holders(state)
        if self.key not in known:
            # The next run's pool takes the place of the one before.
            self.key = next((key for key in known if self.key and key[1] == self.key[1]), next(iter(known), None))
            self.chosen_window = self.against = self.at = None
        self.redraw()

    @property
    def window(self) -> events.Holders | None:
        """The window that is shown."""
        known = windows(self.state, self.key)
        return next((one for one in known if one.window == self.chosen_window), known[-1] if known else None)

    @property
    def before(self) -> events.Holders | None:
        """The window beside it."""
        shown = self.window
        known = windows(self.state, self.key)
        return next((one for one in known if one.window == self.against and one is not shown), None)

    def listed(self, window: events.Holders, at: int | None = None, by: By | None = None) -> Listed:
        """Who stands there, as it was worked out last if nothing has changed."""
        hooked = hooked_at(self.state, self.key)
        assert hooked is not None
        by = by or self.by
        known = window, by, at, *_knowledge(hooked)
        return self._once(f"rows {window.window} {by.name}", known, lambda: listed(window, hooked, by, at))

    def _course(self, window: events.Holders, count: int) -> tuple[Slice, ...]:
        hooked = hooked_at(self.state, self.key)
        assert hooked is not None
        known = window, count, *_knowledge(hooked)
        return self._once(f"course {window.window}", known, lambda: course_slices(window, hooked, count))

    def _once(self, name: str, known: tuple[object, ...], work: Callable[[], T]) -> T:
        """What *work* answered when it last was asked for *name*, if that was from the same *known*."""
        before = self._kept.get(name)
        if before is None or len(before[0]) != len(known) or not all(map(_same, before[0], known)):
            if len(self._kept) >= 16:
                self._kept.clear()
            before = self._kept[name] = known, work()
        return before[1]  # type: ignore[return-value]

    def build(self, width: int, height: int) -> list[Line]:
        self._spots, self._graph_lines = {}, range(0)
        window = self.window
        lines = [self.title_line(width, self._title(), self._right(window))]
        if window is None or self.key is None:
            return lines + self._without(width)
        before = self.before
        shown = self.listed(window, None if before else self.at)
        began = since_run_s(self.state, self.key[0], window.began)
        # The drawing names the operation at the peak itself.
        made = happened(window, window.peak_at) if height < _GRAPH_FROM or before else None
        lines += holder_facts.facts(window, made, began, width, 2 if height >= 30 else 1, self.glyphs)
        if height >= _GRAPH_FROM:
            rows = clamp((height - len(lines) - 5) * 2 // 5, _GRAPH_LEAST, _GRAPH_MOST)
            self._graph_lines = range(len(lines), len(lines) + rows)
            lines += self._graphs(window, before, width, rows)
        by_kind = self.listed(window, None if before else self.at, By.KIND)
        lines.append(holder_facts.legend(by_kind, width, self.glyphs))
        self._first_line = len(lines)
        if before is not None:
            return lines + self._changes(window, before, width, height - len(lines))
        return lines + self._table(window, shown, width, height - len(lines))

    def _title(self) -> str:
        if self.key is None:
            return words.TITLE
        return words.title(place(self.state, self.key), self.key[0])

    def _right(self, window: events.Holders | None) -> str:
        if window is None:
            return ""
        known = windows(self.state, self.key)
        numbers = [one.window for one in known]
        return words.which(numbers.index(window.window), len(numbers), age_s(self.state, window))

    def _without(self, width: int) -> list[Line]:
        """Why there is nothing to see, and what helps."""
        text, remedy = words.none_text(why_none(self.state, self.key))
        lines: list[Line] = [[]]
        for told, style in ((text, BOLD), (remedy, KEY)):
            lines += [[Segment(f"  {line}", style)] for line in (wrap(told, width - 4) if told else [])]
        lines.append([])
        for line in wrap(words.WHAT_THIS_IS, width - 4):
            lines.append([Segment(f"  {line}", DIM)])
        return lines

    # The step.

    def _graphs(self, window: events.Holders, before: events.Holders | None, width: int, height: int) -> list[Line]:
        if before is None:
            return self._graph(window, window.peak, width, height, gutter=True)
        # The older one stands at the left, on the same scale.
        first, second = sorted((window, before), key=lambda one: one.window)
        top = max(first.peak, second.peak)
        left = (width - _BESIDE - GUTTER) // 2 + GUTTER
        right = width - left - _BESIDE
        one = self._graph(first, top, left, height, gutter=True)
        other = self._graph(second, top, right, height, gutter=False)
        blank = Segment(" " * _BESIDE)
        return [
            [*Segment.adjust_line_length(a, left), blank, *b] for a, b in zip(one, other, strict=False)
        ]  # as many lines

    def _graph(self, window: events.Holders, top: int, width: int, height: int, *, gutter: bool) -> list[Line]:
        slices = self._course(window, step_graph.samples(width, letters=self._letters, gutter=gutter))
        alone = self.before is None
        if alone:
            self._slices = slices
        did = happened(window, window.peak_at)
        known = windows(self.state, self.key)
        number = "" if alone else words.window_name(known.index(window), len(known))
        step = step_graph.Step(
            slices=slices,
            top=top,
            whole_us=slices[-1].at_us if slices else 0,
            peak=window.peak_at,
            cursor=self.at if alone else None,
            notes=words.peak_notes(window.peak, self._lengths(did), number),
        )
        return step_graph.draw(step, width, height, self.glyphs, letters=self._letters, gutter=gutter)

    def _lengths(self, did: Happened | None) -> list[str]:
        """The operation of an event, written in several lengths."""
        name = words.operation(did.operation) if did and did.operation else ""
        return [end_of(name, cells, self.glyphs.ellipsis) for cells in _NOTE_CELLS] if name else []

    # The table.

    def entries(self) -> list[Entry]:
        """All lines of the table, as they follow each other."""
        window = self.window
        if window is None or self.before is not None:
            return []
        shown = self.listed(window, self.at)
        found = []
        for row in [*shown.rows, *([shown.unknown] if shown.unknown else [])]:
            key = row.name, row.kind
            found.append(Entry(key, row, unknown=row is shown.unknown))
            if key in self._open:
                found += [Entry((key, number), row, part) for number, part in enumerate(row.parts)]
        return found

    @staticmethod
    def _index(keys: list[Hashable], chosen: Hashable) -> int:
        return keys.index(chosen) if chosen in keys else 0

    def _scrolled(self, count: int, at: int, rows: int) -> range:
        """Which of *count* lines are shown in *rows* of them, the one *at* the cursor among them."""
        self._page = max(1, rows)
        self._top = clamp(self._top, at - self._page + 1, at)
        self._top = clamp(self._top, 0, max(0, count - self._page))
        return range(self._top, min(count, self._top + self._page))

    def _table(self, window: events.Holders, shown: Listed, width: int, height: int) -> list[Line]:
        entries = self.entries()
        at = self._index([entry.key for entry in entries], self._chosen)
        seen = self._scrolled(len(entries), at, height - 4)
        lines = [self.title_line(width, self._moment(shown), self._did(window, seen, len(entries)))]
        lines.append(holder_table.heading(self.by, width))
        top = self._first_line
        for index in seen:
            entry = entries[index]
            self._spots[top + len(lines)] = index
            if entry.part is not None:
                lines.append(holder_table.part_line(entry.part, width, self.glyphs, chosen=index == at))
                continue
            row = holder_table.with_reason(entry.row, window.lost) if entry.unknown else entry.row
            looks = {"letters": self._letters, "chosen": index == at, "opened": entry.key in self._open}
            lines.append(holder_table.row_line(row, self.by, shown.largest_share, width, self.glyphs, **looks))
        lines += [[]] * (height - len(lines) - 2)
        lines.append(holder_table.sum_line(shown, self.by, width))
        detail = holder_facts.detail(entries[at].row, entries[at].part, width, self.glyphs) if entries else []
        return [*lines, detail]

    def _moment(self, shown: Listed) -> str:
        when = None
        if self.at is not None:
            when = words.UNKNOWN_TIME if shown.at_us is None else duration(shown.at_us)
        return words.table_title(words.moment(shown.total, when), self.by)

    def _did(self, window: events.Holders, seen: range, count: int) -> str:
        """What the event under the cursor did; at the peak, which lines are in view."""
        did = happened(window, self.at) if self.at is not None else None
        if did is not None:
            operation = (
                end_of(words.operation(did.operation), _OPERATION_MOST, self.glyphs.ellipsis) if did.operation else None
            )
            return words.happened(did.change, operation)
        return words.seen(seen.start + 1, seen.stop, count) if len(seen) < count else ""

    def _changes(self, window: events.Holders, before: events.Holders, width: int, height: int) -> list[Line]:
        first, second = sorted((window, before), key=lambda one: one.window)
        rows: list[Change] = changes(self.listed(first), self.listed(second))
        keys: list[Hashable] = [(row.name, row.kind) for row in rows]
        at = self._index(keys, self._chosen)
        known = windows(self.state, self.key)
        names = tuple(words.window_name(known.index(one), len(known)) for one in (first, second))
        seen = self._scrolled(len(rows), at, height - 3)
        right = words.seen(seen.start + 1, seen.stop, len(rows)) if len(seen) < len(rows) else ""
        lines = [self.title_line(width, words.changes_title(self.by), right)]
        lines.append(holder_table.change_heading(self.by, width, (names[0], names[1])))
        lines += [
            holder_table.change_line(
                rows[index], self.by, width, self.glyphs, letters=self._letters, chosen=index == at
            )
            for index in seen
        ]
        lines += [[]] * (height - len(lines) - 1)
        return [*lines, holder_table.change_sum(self.listed(first), self.listed(second), self.by, width)]

    # What keys and the mouse do.

    def move(self, count: int) -> None:
        """Go to another line."""
        keys = self._keys()
        if keys:
            self._chosen = keys[clamp(self._index(keys, self._chosen) + count, 0, len(keys) - 1)]
            self.redraw()

    def _keys(self) -> list[Hashable]:
        before, window = self.before, self.window
        if window is None:
            return []
        if before is None:
            return [entry.key for entry in self.entries()]
        first, second = sorted((window, before), key=lambda one: one.window)
        return [(row.name, row.kind) for row in changes(self.listed(first), self.listed(second))]

    def page(self, count: int) -> None:
        """Go on by what fits on the screen."""
        self.move(count * max(1, self._page - 1))

    def enter(self) -> None:
        """Open the row under the cursor, or close it."""
        entries = self.entries()
        keys = [entry.key for entry in entries]
        if entries:
            entry = entries[self._index(keys, self._chosen)]
            row = entry.row.name, entry.row.kind
            self._open ^= {row}
            self._chosen = row
            self.redraw()

    def leave(self) -> bool:
        """Close what is open: the other window, the moment, the rows; false if nothing is."""
        if self.before is not None:
            self.against = None
        elif self.at is not None:
            self.at = None
        elif self._open:
            self._open = set()
        else:
            return False
        self.redraw()
        return True

    @property
    def next_group(self) -> By:
        """What the rows are grouped by next."""
        every = list(By)
        return every[(every.index(self.by) + 1) % len(every)]

    def regroup(self) -> None:
        """Group the rows by the next of: layer, operation, kind, shape, line."""
        self.by = self.next_group
        self._open, self._chosen, self._top = set(), None, 0
        self.redraw()

    def move_moment(self, step: int) -> None:
        """Go through the step: to the highest moment of the next column of its drawing, or of the one before."""
        window = self.window
        if window is None or self.before is not None or not self._slices:
            return
        per_cell = 1 if self._letters else 2
        now = window.peak_at if self.at is None else self.at
        cells = range(-(-len(self._slices) // per_cell))
        cell = step_graph.slice_at(self._slices, now) // per_cell + step
        while cell in cells:
            highest = max(self._slices[cell * per_cell :][:per_cell], key=lambda one: one.total)
            # A column in which nothing happened is as the one before it.
            if (highest.event > now) == (step > 0) and highest.event != now:
                self.at = None if highest.event == window.peak_at else highest.event
                break
            cell += step
        self.redraw()

    def to_peak(self) -> None:
        """Back to the peak."""
        self.at = None
        self.redraw()

    def other_window(self) -> None:
        """Show the window before; after the first one the newest again."""
        known = windows(self.state, self.key)
        shown = self.window
        if shown is not None and len(known) > 1:
            at = known.index(shown) - 1
            self.chosen_window = known[at].window if at >= 0 else None
            self.at = None
            self.redraw()

    def compare(self) -> bool:
        """Lay the first window beside the shown one, then the one after it, and so on, then none; false if alone."""
        known = windows(self.state, self.key)
        shown = self.window
        others = [one.window for one in known if one is not shown]
        if not others:
            return False
        at = others.index(self.against) + 1 if self.against in others else 0
        self.against = others[at] if at < len(others) else None
        self.at, self._chosen, self._top = None, None, 0
        self.redraw()
        return True

    def other(self, step: int) -> None:
        """The next pool, or the one before."""
        known = pools_with_holders(self.state)
        if known:
            at = known.index(self.key) if self.key in known else 0
            self.key = known[(at + step) % len(known)]
            self.chosen_window = self.against = self.at = None
            self._open, self._chosen, self._top = set(), None, 0
            self.redraw()

    def on_click(self, click: textual_events.Click) -> None:
        if click.y in self._graph_lines and self.before is None and self._slices:
            per_cell = 1 if self._letters else 2
            at = clamp((click.x - GUTTER) * per_cell, 0, len(self._slices) - 1)
            event = max(self._slices[at : at + per_cell], key=lambda one: one.total).event
            self.at = None if self.window is None or event == self.window.peak_at else event
            self.redraw()
            return
        keys = self._keys()
        index = self._spots.get(click.y)
        if index is not None and index < len(keys):
            again = self._index(keys, self._chosen) == index
            self._chosen = keys[index]
            if again:
                self.enter()
            self.redraw()

    def on_mouse_scroll_down(self, event: textual_events.MouseScrollDown) -> None:
        event.stop()
        self.move(3)

    def on_mouse_scroll_up(self, event: textual_events.MouseScrollUp) -> None:
        event.stop()
        self.move(-3)


def _knowledge(hooked: Hooked) -> tuple[object, ...]:
    """What the rows of a window follow besides the window itself."""
    return hooked.census, hooked.look, len(hooked.lines), len(hooked.clusters)


def _same(one: object, other: object) -> bool:
    return one is other or (isinstance(one, (int, By, type(None))) and one == other)
