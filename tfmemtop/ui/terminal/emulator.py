"""What a program has written, as its terminal shows it: lines of segments, with scroll-back."""

import math
from itertools import islice

from tfmemtop.ui.draw.cells import crop, render
from tfmemtop.ui.draw.lines import Line
from tfmemtop.ui.terminal.escapes import Parser
from tfmemtop.ui.terminal.pyte_screen import CompleteScreen

HISTORY_LINES = 5000

_SMALLEST = 2  # columns: a wide character must fit
_CURSOR_KEYS, _PASTE = 1 << 5, 2004 << 5  # as pyte keeps private modes


class TerminalScreen:
    """What a program has written, as a terminal of *columns* by *rows* cells shows it.

    *history* is how many lines that scrolled off the top are kept.
    """

    def __init__(self, columns: int, rows: int, history: int = HISTORY_LINES) -> None:
        self._screen = CompleteScreen(max(_SMALLEST, columns), max(1, rows), history)
        self._parser = Parser(self._screen)
        self._rows: list[Line] = []

    @property
    def columns(self) -> int:
        return self._screen.columns

    @property
    def rows(self) -> int:
        return self._screen.lines

    @property
    def scrolled_off(self) -> int:
        """Lines that ever scrolled off the top, less those that a larger screen took back."""
        return self._screen.pushed

    @property
    def application_cursor(self) -> bool:
        """Whether the program wants arrow keys in their application form."""
        return _CURSOR_KEYS in self._screen.mode

    @property
    def bracketed_paste(self) -> bool:
        """Whether the program wants pasted text marked as such."""
        return _PASTE in self._screen.mode

    def feed(self, text: str, until: float = math.inf) -> int:
        """Take what the program has written; whatever it is, nothing is raised.

        Gives the number of characters taken: all, unless this thread's CPU time (``time.thread_time``)
        reaches *until*. The others are then to be given again.
        """
        return self._parser.feed(text, until)

    def resize(self, columns: int, rows: int) -> None:
        """Give the screen another size, without reflow."""
        self._screen.resize(max(1, rows), max(_SMALLEST, columns))
        self._rows = []

    def rule(self, line: Line) -> None:
        """Begin anew, as a new run does, below all there is and below *line*."""
        screen = self._screen
        screen.leave_alternate()
        used = self._used()
        # A progress bar's line feed, or a cursor left alone below the last line, is no line of its own.
        if not self._rows[used - 1]:
            used -= 1
        for y in range(used):
            screen.push_row(screen.buffer.get(y, {}))
        screen.push(line)
        screen.reset()
        self._parser = Parser(screen)

    def note(self, text: str) -> None:
        """Put a dim *text* between what was written so far and what comes, some of it having been lost."""
        self._parser = Parser(self._screen)
        self._screen.put(text)

    def lines(self, offset: int, height: int) -> list[Line]:
        """*height* lines, of which the last lies *offset* lines above the end; at most :meth:`most`."""
        first = self._first(offset, height)
        history = self._screen.history
        result = [crop(line, self.columns) for line in islice(history, first, first + height)]
        start = max(0, first - len(history))
        return result + self._drawn()[start : start + height - len(result)]

    @property
    def oldest(self) -> int:
        """The number of the oldest line that is kept; lines are numbered from the first that was ever written."""
        return self._screen.pushed - len(self._screen.history)

    def number(self, offset: int, height: int) -> int:
        """The number of the first line of :meth:`lines`."""
        return self.oldest + self._first(offset, height)

    def offset_of(self, number: int, height: int) -> int:
        """The offset at which line *number* is about in the middle of *height* lines."""
        return min(max(0, self.most(height) - max(0, number - self.oldest - height // 2)), self.most(height))

    def texts(self, begin: int, end: int | None = None) -> list[str]:
        """The lines from number *begin* to before *end*, or to the last that was written to, as text."""
        first = begin - self.oldest
        last = len(self._screen.history) + self._used() if end is None else end - self.oldest
        history = len(self._screen.history)
        lines = list(islice(self._screen.history, max(0, first), min(last, history)))
        lines += self._drawn()[max(0, first - history) : max(0, last - history)]
        return ["".join(segment.text for segment in line) for line in lines]

    def most(self, height: int) -> int:
        """The largest offset at which *height* lines still change."""
        return self._first(0, height)

    def cursor(self, offset: int, height: int) -> tuple[int, int] | None:
        """Column and line of the cursor among :meth:`lines`; ``None`` if it is hidden or out of sight."""
        cursor = self._screen.cursor
        y: int = len(self._screen.history) + cursor.y - self._first(offset, height)
        if cursor.hidden or not 0 <= y < height:
            return None
        return min(int(cursor.x), self.columns - 1), y

    def _first(self, offset: int, height: int) -> int:
        # A view lower than the screen follows what is written, not the blank lines below it.
        used = self._used() if height < self.rows else 0
        end = len(self._screen.history) + (max(used, height) if used else self.rows)
        return max(0, end - height - max(0, offset))

    def _used(self) -> int:
        rows = self._drawn()
        last = next((y for y in range(len(rows), 0, -1) if rows[y - 1]), 0)
        return max(last, int(self._screen.cursor.y) + 1)

    def _drawn(self) -> list[Line]:
        """The screen's lines, of which only those that were written to are made anew."""
        screen = self._screen
        dirty = range(screen.lines) if len(self._rows) != screen.lines else sorted(screen.dirty)
        if not self._rows:
            self._rows = [[] for _ in range(screen.lines)]
        for y in dirty:
            if y < screen.lines:
                self._rows[y] = crop(render(screen.buffer.get(y, {})), screen.columns)
        screen.dirty.clear()
        return self._rows
