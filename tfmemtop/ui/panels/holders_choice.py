"""What of a pool's holders the user has chosen to see: the window, the grouping, the moment, the rows that are open."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import TypeVar

from textual.geometry import clamp

from tfmemtop import events
from tfmemtop.state import State
from tfmemtop.state.holder_views import (
    Change,
    Listed,
    Row,
    changes,
    course_slices,
    hooked_at,
    listed,
    pools_with_holders,
    windows,
)
from tfmemtop.state.holders import By, Part
from tfmemtop.state.model import Hooked
from tfmemtop.state.pool_views import PoolKey
from tfmemtop.state.step_slices import Slice

T = TypeVar("T")
_KEPT = 16


@dataclass(frozen=True, slots=True)
class Entry:
    """A line of the table that the cursor can stand on: a row, or a part of it."""

    key: Hashable
    row: Row
    part: Part | None = None
    unknown: bool = False


class HoldersChoice:
    """``key`` is the pool. The newest window is shown until another is chosen, at its peak."""

    def __init__(self, state: State, key: PoolKey | None) -> None:
        self.state = state
        self.key = key
        self.by = By.LAYER
        self.number: int | None = None  # of the window; the newest if none
        self.against: int | None = None  # of the window beside it
        self.at: int | None = None  # the event under the cursor; the peak if none
        self._held = False  # whether the window is kept to for the sake of that event only
        self.line: Hashable = None  # under the cursor
        self.open: set[Hashable] = set()
        self._kept: dict[str, tuple[tuple[object, ...], object]] = {}

    def follow(self, state: State) -> None:
        """Take *state* as the newest; the next run's pool takes the place of the one before."""
        self.state = state
        known = pools_with_holders(state)
        if self.key not in known:
            key = next((key for key in known if self.key and key[1] == self.key[1]), next(iter(known), None))
            self._look_at(key)
        elif self.number is not None and self.window is not None and self.window.window != self.number:
            self.number, self.at, self._held = None, None, False  # it has been forgotten

    def look_at(self, state: State, key: PoolKey) -> None:
        """The newest window of the pool *key*."""
        self.state = state
        if key != self.key:
            self._look_at(key)

    # What that is.

    @property
    def window(self) -> events.Holders | None:
        """The window that is shown."""
        known = windows(self.state, self.key)
        return next((one for one in known if one.window == self.number), known[-1] if known else None)

    @property
    def before(self) -> events.Holders | None:
        """The window beside it."""
        shown = self.window
        known = windows(self.state, self.key)
        return next((one for one in known if one.window == self.against and one is not shown), None)

    @property
    def pair(self) -> tuple[events.Holders, events.Holders] | None:
        """The two windows that are laid beside each other, the older one first."""
        shown, before = self.window, self.before
        if shown is None or before is None:
            return None
        return (shown, before) if shown.window < before.window else (before, shown)

    def listed(self, window: events.Holders, at: int | None = None, by: By | None = None) -> Listed:
        """Who stands there, as it was worked out last if nothing has changed."""
        hooked, by = self._hooked(), by or self.by
        known = window, by, at, *_knowledge(hooked)
        return self._once(f"rows {window.window} {by.name}", known, lambda: listed(window, hooked, by, at))

    def course(self, window: events.Holders, count: int) -> tuple[Slice, ...]:
        """The course of *window* in *count* slices, likewise."""
        hooked = self._hooked()
        known = window, count, *_knowledge(hooked)
        return self._once(f"course {window.window}", known, lambda: course_slices(window, hooked, count))

    def changes(self) -> list[Change]:
        """What differs between the two windows, likewise."""
        if self.pair is None:
            return []
        first, second = (self.listed(window) for window in self.pair)
        return self._once("changes", (first, second), lambda: changes(first, second))

    def entries(self) -> list[Entry]:
        """All lines of the table of one window, as they follow each other."""
        window = self.window
        if window is None:
            return []
        shown = self.listed(window, self.at)
        found = []
        for row in [*shown.rows, *([shown.unknown] if shown.unknown else [])]:
            key = row.name, row.kind
            found.append(Entry(key, row, unknown=row is shown.unknown))
            if key in self.open:
                found += [Entry((key, number), row, part) for number, part in enumerate(row.parts)]
        return found

    def lines(self) -> list[Hashable]:
        """The lines that the cursor can stand on."""
        if self.pair is not None:
            return [(row.name, row.kind) for row in self.changes()]
        return [entry.key for entry in self.entries()]

    def index(self, lines: list[Hashable]) -> int:
        """Where the cursor stands."""
        return lines.index(self.line) if self.line in lines else 0

    def _hooked(self) -> Hooked:
        hooked = hooked_at(self.state, self.key)
        assert hooked is not None  # a window of it is known
        return hooked

    def _once(self, name: str, known: tuple[object, ...], work: Callable[[], T]) -> T:
        """What *work* answered when it was last asked for *name*, if that was from the same *known*."""
        before = self._kept.get(name)
        if before is None or len(before[0]) != len(known) or not all(map(_same, before[0], known)):
            if len(self._kept) >= _KEPT:
                self._kept.clear()
            before = self._kept[name] = known, work()
        return before[1]  # type: ignore[return-value]

    # What keys do.

    def move(self, count: int) -> None:
        """Go to another line."""
        if lines := self.lines():
            self.line = lines[clamp(self.index(lines) + count, 0, len(lines) - 1)]

    def enter(self) -> None:
        """Open the row under the cursor, or close it."""
        if self.pair is None and (entries := self.entries()):
            row = entries[self.index([entry.key for entry in entries])].row
            self.line = row.name, row.kind
            self.open ^= {self.line}

    def leave(self) -> bool:
        """Close what is open: the other window, the moment, the rows; false if nothing is."""
        if self.pair is not None:
            self.against = None
        elif self.at is not None:
            self.to_peak()
        elif self.open:
            self.open = set()
        else:
            return False
        return True

    @property
    def next_group(self) -> By:
        """What the rows are grouped by next."""
        every = list(By)
        return every[(every.index(self.by) + 1) % len(every)]

    def regroup(self) -> None:
        """Group the rows by the next of: layer, operation, kind, shape, line."""
        self.by = self.next_group
        self.open, self.line = set(), None

    def go_to(self, event: int) -> None:
        """Look at the moment after *event*."""
        window = self.window
        if window is None or event == window.peak_at:
            self.to_peak()
            return
        self.at = event
        if self.number is None:  # a newer window has other events
            self.number, self._held = window.window, True

    def to_peak(self) -> None:
        """Back to the peak."""
        self.at = None
        if self._held:
            self.number, self._held = None, False

    def other_window(self) -> None:
        """Show the window before; after the first one the newest again."""
        known = windows(self.state, self.key)
        shown = self.window
        if shown is not None and len(known) > 1:
            at = known.index(shown) - 1
            self.number = known[at].window if at >= 0 else None
            self.at, self._held = None, False

    def compare(self) -> bool:
        """Lay the first window beside the shown one, then the one after it, and so on, then none; false if alone."""
        shown = self.window
        others = [one.window for one in windows(self.state, self.key) if one is not shown]
        if not others:
            return False
        at = others.index(self.against) + 1 if self.against in others else 0
        self.against = others[at] if at < len(others) else None
        self.to_peak()
        self.line = None
        return True

    def other_pool(self, step: int) -> None:
        """The next pool, or the one before."""
        if known := pools_with_holders(self.state):
            at = known.index(self.key) if self.key in known else 0
            self._look_at(known[(at + step) % len(known)])

    def _look_at(self, key: PoolKey | None) -> None:
        self.key = key
        self.number = self.against = self.at = self.line = None
        self.open, self._held = set(), False


def _knowledge(hooked: Hooked) -> tuple[object, ...]:
    """What the rows of a window follow besides the window itself."""
    newest_line = next(reversed(hooked.lines.values()), None)
    newest_cluster = next(reversed(hooked.clusters.values()), None)
    counts = len(hooked.lines), len(hooked.clusters)
    return hooked, hooked.census, hooked.look, newest_line, newest_cluster, *counts


def _same(one: object, other: object) -> bool:
    return one is other or (isinstance(one, int) and one == other)
