"""The user's choices in the view of a pool's holders: the window, the grouping, the moment, the open rows."""

from collections.abc import Hashable

import msgspec
from textual.geometry import clamp

from tfmemtop import events
from tfmemtop.state import State
from tfmemtop.state.holder_views import (
    Lifetimes,
    course_slices,
    hooked_at,
    lifetimes,
    pools_with_holders,
    windows,
)
from tfmemtop.state.holders import By, Holder, Part, Standing, StepSlice, standing
from tfmemtop.state.model import Hooked
from tfmemtop.state.pool_views import PoolKey
from tfmemtop.state.windows import fullest, higher_peak, moment, nearest
from tfmemtop.ui.screens.full_screen import beside


class Entry(msgspec.Struct, frozen=True):
    """A line of the table that the cursor can stand on: a row, or a part of it."""

    key: Hashable
    row: Holder
    part: Part | None = None


class HoldersChoice:
    """The user's choices for the pool ``key``. Until the user chooses, the window of the highest peak is shown."""

    def __init__(self, state: State, key: PoolKey | None) -> None:
        self.state = state
        self.key = key
        self.by = By.LAYER
        self.chosen: events.Holders | None = None  # the window that is shown; None: that of the highest peak
        self.newest = False  # whether the newest window is shown in its place
        self.at: int | None = None  # the event under the cursor; None: the peak
        self._held = False  # whether `chosen` is set only because `at` is an event of that window
        self.line: Hashable = None  # key of the line under the cursor
        self.open: set[Hashable] = set()
        self.buffers = False
        """Whether the buffers of the window are shown, each with its lifetime, in place of a table."""

    def follow(self, state: State) -> None:
        """Use *state* as the newest. If the pool has gone, show that of the same device in the next run."""
        self.state = state
        known = pools_with_holders(state)
        if self.key not in known:
            key = next((key for key in known if self.key and key[1] == self.key[1]), next(iter(known), None))
            self._look_at(key)
        elif self.chosen is not None and self.window != self.chosen:
            self.chosen, self.at, self._held = None, None, False  # the chosen window is no longer kept

    def look_at(self, state: State, key: PoolKey) -> None:
        """Use *state* as the newest, and show the pool *key*. Another pool begins with its highest peak."""
        self.state = state
        if key != self.key:
            self._look_at(key)

    # What is shown.

    @property
    def window(self) -> events.Holders | None:
        """The window that is shown; ``None`` if no window is known."""
        known = windows(self.state, self.key)
        first = known[-1] if known and self.newest else fullest(known)
        return next((one for one in known if one == self.chosen), first)

    @property
    def higher(self) -> int | None:
        """The pool's peak in bytes if the shown window does not contain it, else ``None``."""
        window = self.window
        return higher_peak(self._hooked(), self.key[1], window) if window and self.key else None

    def standing(self, window: events.Holders, at: int | None = None, by: By | None = None) -> Standing:
        """Return the holders in *window* after the event *at* (the peak if none), grouped *by* that or the choice."""
        return standing(window, self._hooked(), by or self.by, at)

    def course(self, window: events.Holders, count: int) -> tuple[StepSlice, ...]:
        """Return the course of *window* in *count* slices."""
        return course_slices(window, self._hooked(), count)

    def entries(self) -> list[Entry]:
        """Return all lines of the table, in order."""
        window = self.window
        if window is None:
            return []
        found = []
        for row in self.standing(window, self.at).rows:
            key = row.name, row.kind
            found.append(Entry(key, row))
            if key in self.open:
                found += [Entry((key, number), row, part) for number, part in enumerate(row.parts)]
        return found

    def lifetimes(self, window: events.Holders) -> Lifetimes:
        """Return the buffers of *window*."""
        return lifetimes(window, self._hooked())

    @property
    def has_calls(self) -> bool:
        """Whether it is known of some operation which calls of the script led there."""
        return any(len(line.stack) > 1 for line in self._hooked().lines.values())

    def lines(self) -> list[Hashable]:
        """Return the keys of the lines that the cursor can stand on."""
        if self.buffers and self.window is not None:
            return [*range(len(self.lifetimes(self.window).buffers))]
        return [entry.key for entry in self.entries()]

    def index(self, lines: list[Hashable]) -> int:
        """Return the index of the cursor's line in *lines*; 0 if it is not among them."""
        return lines.index(self.line) if self.line in lines else 0

    def _hooked(self) -> Hooked:
        hooked = hooked_at(self.state, self.key)
        assert hooked is not None  # callers have a window, which only a process with the hook has
        return hooked

    # What keys do.

    def move(self, count: int) -> None:
        """Move the cursor by *count* lines."""
        if lines := self.lines():
            self.line = lines[clamp(self.index(lines) + count, 0, len(lines) - 1)]

    def enter(self) -> None:
        """Open the row under the cursor, or close it."""
        if not self.buffers and (entries := self.entries()):
            row = entries[self.index([entry.key for entry in entries])].row
            self.line = row.name, row.kind
            self.open ^= {self.line}

    def leave(self) -> bool:
        """Go back to the peak, else close the open rows; return false if there are none."""
        if self.at is not None:
            self.to_peak()
        elif self.open:
            self.open = set()
        else:
            return False
        return True

    @property
    def next_group(self) -> By:
        """The grouping that comes after the present one."""
        every = list(By)
        return every[(every.index(self.by) + 1) % len(every)]

    def regroup(self) -> None:
        """Group the rows by the next of: layer, operation, kind, shape, line; after the last comes the first."""
        self.by = self.next_group
        self.open, self.line = set(), None

    def switch(self) -> None:
        """Show the buffers with their lifetimes in place of the table, or the table again."""
        self.buffers = not self.buffers
        self.line = None

    def go_to(self, event: int) -> None:
        """Show the moment after *event*."""
        window = self.window
        if window is None or event == window.peak_at:
            self.to_peak()
            return
        self.at = event
        if self.chosen is None:  # stay with this window, since another one has other events
            self.chosen, self._held = window, True

    def to_peak(self) -> None:
        """Go back to the peak."""
        self.at, self.newest = None, False
        if self._held:
            self.chosen, self._held = None, False

    def to_end(self) -> None:
        """Go to the end of what was recorded."""
        if found := moment(windows(self.state, self.key), None):
            self.chosen, self.at, self._held = *found, True

    def to_column(self, begin: float, end: float) -> bool:
        """Show the moment between *begin* and *end*, in session seconds, at which most was in use.

        If nothing was recorded in that time, show the peak of the step that was recorded nearest to it, and return
        false.
        """
        found = nearest(windows(self.state, self.key), begin, end)
        if found is None:
            return False
        self.chosen, self.at, self._held = *found, False
        return found[1] is not None

    def other_window(self) -> None:
        """Show the window before this one; from the first window, go to the newest."""
        known = windows(self.state, self.key)
        shown = self.window
        if shown is not None and len(known) > 1:
            self.chosen = known[known.index(shown) - 1]
            self.at, self._held = None, False

    def other_pool(self, step: int) -> None:
        """Show the next pool (+1) or the one before (-1)."""
        if known := pools_with_holders(self.state):
            self._look_at(beside(known, self.key, step))

    def _look_at(self, key: PoolKey | None) -> None:
        self.key = key
        self.chosen = self.at = self.line = None
        self.open, self._held, self.newest = set(), False, False
