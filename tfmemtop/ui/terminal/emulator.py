"""A terminal emulator: turns what a program has written into lines of segments, with scroll-back."""

import math
from itertools import islice

from tfmemtop.ui.draw.cells import crop, render
from tfmemtop.ui.draw.lines import Line
from tfmemtop.ui.terminal.escapes import Parser
from tfmemtop.ui.terminal.pyte_screen import CompleteScreen

HISTORY_LINES = 5000

_SMALLEST = 2  # columns, so that a wide character fits
_CURSOR_KEYS, _PASTE = 1 << 5, 2004 << 5  # pyte stores private modes shifted by 5 bits


class TerminalScreen:
    """A terminal of *columns* by *rows* cells that shows what a program has written.

    *history* is the number of lines that are kept after they scrolled off the top.
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
        """How many lines have scrolled off the top since the start, less those that came back to a larger screen."""
        return self._screen.pushed

    @property
    def application_cursor(self) -> bool:
        """Whether the program has requested arrow keys in their application form."""
        return _CURSOR_KEYS in self._screen.mode

    @property
    def bracketed_paste(self) -> bool:
        """Whether the program has requested that pasted text is marked as such."""
        return _PASTE in self._screen.mode

    def feed(self, text: str, until: float = math.inf) -> int:
        """Draw *text*, which the program has written. No text makes this raise.

        Return the number of characters taken: all, unless this thread's CPU time (``time.thread_time``)
        reaches *until*. The caller must then pass the others again.
        """
        return self._parser.feed(text, until)

    def resize(self, columns: int, rows: int) -> None:
        """Change the size of the screen, without reflow."""
        self._screen.resize(max(1, rows), max(_SMALLEST, columns))
        self._rows = []

    def rule(self, line: Line) -> None:
        """Begin a new run: move all lines, and *line* after them, into the history, and reset the screen."""
        screen = self._screen
        screen.leave_alternate()
        used = self._used()
        # An empty line at the end, where only the cursor stands, does not count: a line feed has led there.
        if not self._rows[used - 1]:
            used -= 1
        for y in range(used):
            screen.push_row(screen.buffer.get(y, {}))
        screen.push(line)
        screen.reset()
        self._parser = Parser(screen)

    def note(self, text: str) -> None:
        """Write *text*, dim, after what was written so far. It marks where output was lost."""
        self._parser = Parser(self._screen)
        self._screen.put(text)

    def lines(self, offset: int, height: int) -> list[Line]:
        """Return *height* lines, the last of which is *offset* lines above the end, or :meth:`most` if that is less."""
        first = self._first(offset, height)
        history = self._screen.history
        result = [crop(line, self.columns) for line in islice(history, first, first + height)]
        start = max(0, first - len(history))
        return result + self._drawn()[start : start + height - len(result)]

    @property
    def oldest(self) -> int:
        """The number of the oldest line that is kept. The first line ever written has number 0."""
        return self._screen.pushed - len(self._screen.history)

    def number(self, offset: int, height: int) -> int:
        """Return the number of the first line that :meth:`lines` returns."""
        return self.oldest + self._first(offset, height)

    def offset_of(self, number: int, height: int) -> int:
        """Return the offset at which line *number* is about in the middle of *height* lines."""
        return min(max(0, self.most(height) - max(0, number - self.oldest - height // 2)), self.most(height))

    def texts(self, begin: int, end: int | None = None) -> list[str]:
        """Return the text of the lines from number *begin* up to *end*, which is left out.

        Without *end*, the lines go up to the last one that was written to.
        """
        first = begin - self.oldest
        last = len(self._screen.history) + self._used() if end is None else end - self.oldest
        history = len(self._screen.history)
        lines = list(islice(self._screen.history, max(0, first), min(last, history)))
        lines += self._drawn()[max(0, first - history) : max(0, last - history)]
        return ["".join(segment.text for segment in line) for line in lines]

    def most(self, height: int) -> int:
        """Return the largest offset for *height* lines; the oldest line is then the first of them."""
        return self._first(0, height)

    def cursor(self, offset: int, height: int) -> tuple[int, int] | None:
        """Return the cursor's column and its line within :meth:`lines`; ``None`` if it is hidden or not in them."""
        cursor = self._screen.cursor
        y: int = len(self._screen.history) + cursor.y - self._first(offset, height)
        if cursor.hidden or not 0 <= y < height:
            return None
        return min(int(cursor.x), self.columns - 1), y

    def _first(self, offset: int, height: int) -> int:
        # A view that is lower than the screen follows the written lines, not the blank ones below them.
        used = self._used() if height < self.rows else 0
        end = len(self._screen.history) + (max(used, height) if used else self.rows)
        return max(0, end - height - max(0, offset))

    def _used(self) -> int:
        rows = self._drawn()
        last = next((y for y in range(len(rows), 0, -1) if rows[y - 1]), 0)
        return max(last, int(self._screen.cursor.y) + 1)

    def _drawn(self) -> list[Line]:
        """Return the screen's lines. Only those that were written to since the last call are made anew."""
        screen = self._screen
        dirty = range(screen.lines) if len(self._rows) != screen.lines else sorted(screen.dirty)
        if not self._rows:
            self._rows = [[] for _ in range(screen.lines)]
        for y in dirty:
            if y < screen.lines:
                self._rows[y] = crop(render(screen.buffer.get(y, {})), screen.columns)
        screen.dirty.clear()
        return self._rows
