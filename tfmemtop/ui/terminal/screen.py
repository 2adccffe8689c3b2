"""The script's terminal: turns what a program has written into lines of segments, with scroll-back.

pyte parses the text and draws it. It lacks the alternate screen, a scroll-back, and wide characters at the right edge.
Text in ASCII is drawn here in runs, which is ten times as fast as drawing it character by character.
"""

import unicodedata
from collections import deque
from functools import partial
from itertools import islice
from typing import Any

from pyte import modes
from pyte.charsets import LAT1_MAP
from pyte.screens import Margins, Screen
from pyte.streams import Stream

from tfmemtop.ui.draw.lines import Line
from tfmemtop.ui.terminal.cells import LONGEST, between_words, cell, crop, render, width

HISTORY_LINES = 5000
_RECENT = 200  # rows that can come back from the history when the screen grows
_MARKS = 8  # code points in one cell
_SMALLEST = 2  # columns, so that a wide character fits
_ALTERNATE = {47, 1047, 1049}
_CURSOR_MODES = {1048, 1049}
_COLUMNS_132 = 3
_CURSOR_KEYS, _PASTE = 1 << 5, 2004 << 5  # pyte stores private modes shifted by 5 bits

# What pyte raises at parameters that it does not expect: a wrong number of them, an unknown way to erase
# (a local variable is never set), origin mode without margins.
_REFUSED = (TypeError, ValueError, LookupError, NameError, AssertionError)


class _Forgiving:
    """A screen for pyte's parser. If it refuses a sequence, only that one is lost."""

    def __init__(self, screen: "TerminalScreen") -> None:
        self._screen = screen
        self.draw = screen.draw

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._screen, name)

        def call(*arguments: Any, **options: Any) -> None:
            try:
                method(*arguments, **options)
            except _REFUSED:
                pass

        return call


class _Parser(Stream):  # type: ignore[misc]
    """pyte's parser, with a sequence that curses takes for granted."""

    csi = Stream.csi | {"b": "repeat"}

    def __init__(self, screen: "TerminalScreen") -> None:
        super().__init__(_Forgiving(screen))
        self.use_utf8 = False  # programs in a C locale draw their lines with another set of characters


class TerminalScreen(Screen):  # type: ignore[misc]
    """A terminal of ``columns`` by ``lines`` cells that shows what a program has written.

    *history* is the number of lines that are kept after they scrolled off the top.
    """

    columns: int
    lines: int
    mode: set[int]
    buffer: dict[int, Any]  # rows: cells by column, with a default
    cursor: Any

    def __init__(self, columns: int, rows: int, history: int = HISTORY_LINES) -> None:
        self._history: deque[Line] = deque(maxlen=history)
        self._recent: deque[Any] = deque(maxlen=_RECENT)  # the rows from which the history's newest lines were made
        self._main: tuple[dict[int, Any], Any] | None = None  # its rows and cursor, while the alternate screen is shown
        self._drawn: list[Line] = []
        self._last = ""
        self.scrolled_off = 0
        """How many lines have scrolled off the top since the start, less those that came back to a larger screen."""
        super().__init__(max(_SMALLEST, columns), max(1, rows))
        self._parser = _Parser(self)

    @property
    def application_cursor(self) -> bool:
        """Whether the program has requested arrow keys in their application form."""
        return _CURSOR_KEYS in self.mode

    @property
    def bracketed_paste(self) -> bool:
        """Whether the program has requested that pasted text is marked as such."""
        return _PASTE in self.mode

    def feed(self, text: str) -> None:
        """Draw *text*, which the program has written. No text makes this raise."""
        try:
            self._parser.feed(text)
        except ValueError:
            pass  # a number of thousands of digits, which Python does not read

    def rule(self, line: Line) -> None:
        """Begin a new run: move all lines, and *line* after them, into the history, and reset the screen."""
        self.leave_alternate()
        used = self._used()
        # An empty line at the end, where only the cursor stands, does not count: a line feed has led there.
        if not self._drawn[used - 1]:
            used -= 1
        for y in range(used):
            self._push(self.buffer.get(y, {}))
        self._history.append(line)
        self._recent.append(None)
        self.scrolled_off += 1
        self.reset()
        self._parser = _Parser(self)

    def note(self, text: str) -> None:
        """Write *text*, dim, after what was written so far. It marks where output was lost."""
        self._parser = _Parser(self)
        if self._main is None:  # the alternate screen is a picture
            begun = self.cursor.x or self._rendered()[self.cursor.y]  # the program's text may be cut behind its CR
            self._parser.feed("\r\n" * bool(begun) + f"\x1b[0;90m{text}\x1b[0m\r\n")

    # What is shown.

    def view(self, offset: int, height: int) -> list[Line]:
        """Return *height* lines, the last of which is *offset* lines above the end, or :meth:`most` if that is less."""
        return self._part(self._first(offset, height), height)

    def most(self, height: int) -> int:
        """Return the largest offset for *height* lines; the oldest line is then the first of them."""
        return self._first(0, height)

    def cursor_in(self, offset: int, height: int) -> tuple[int, int] | None:
        """Return the cursor's column and its line within :meth:`view`; ``None`` if it is hidden or not in them."""
        y: int = len(self._history) + self.cursor.y - self._first(offset, height)
        if self.cursor.hidden or not 0 <= y < height:
            return None
        return min(int(self.cursor.x), self.columns - 1), y

    def _first(self, offset: int, height: int) -> int:
        # A view that is lower than the screen follows the written lines, not the blank ones below them.
        used = self._used() if height < self.lines else 0
        end = len(self._history) + (max(used, height) if used else self.lines)
        return max(0, end - height - max(0, offset))

    def _part(self, first: int, count: int) -> list[Line]:
        """Return *count* lines from the one with the index *first*: of the history, then of the screen."""
        above = min(first, LONGEST)  # a line may have begun above, and may end below
        begin, end = first - above, first + count + LONGEST
        lines = list(islice(self._history, begin, end))
        start = max(0, begin - len(self._history))
        lines += self._rendered()[start : max(start, start + end - begin - len(lines))]
        lines = [crop(line, self.columns) for line in lines]
        if self._main is None:
            lines = list(between_words(lines, self.columns, len(self._history) + self.cursor.y - begin))
        return lines[above : above + count]

    def _used(self) -> int:
        rows = self._rendered()
        last = next((y for y in range(len(rows), 0, -1) if rows[y - 1]), 0)
        return max(last, int(self.cursor.y) + 1)

    def _rendered(self) -> list[Line]:
        """Return the screen's lines. Only those that were written to since the last call are made anew."""
        if len(self._drawn) != self.lines:
            self._drawn = [[] for _ in range(self.lines)]
            self.dirty.update(range(self.lines))
        for y in self.dirty:
            if y < self.lines:
                self._drawn[y] = render(self.buffer.get(y, {}))
        self.dirty.clear()
        return self._drawn

    # What the parser calls.

    def reset(self) -> None:
        self._main = None
        super().reset()
        # As in xterm: a shift-out sent by mistake must not turn text into line-drawing characters.
        self.g1_charset = LAT1_MAP

    def draw(self, data: str) -> None:
        self._last = data[-1:]
        plain = data.isascii() and data.isprintable() and self.g0_charset is LAT1_MAP
        if plain and not self.charset and modes.IRM not in self.mode:
            self._draw_run(data)
            return
        for character in data:
            cells = width(character)
            if cells == 2 and self.cursor.x == self.columns - 1 and modes.DECAWM in self.mode:
                self.cursor.x = self.columns  # pyte then begins a new line before it draws
            if cells:
                super().draw(character)
            elif unicodedata.category(character)[0] == "M":
                self._mark(character)

    def _mark(self, character: str) -> None:
        """Add an accent to the character before the cursor. pyte knows those of few scripts."""
        row, x = self.buffer[self.cursor.y], self.cursor.x - 1
        before = row[x] if row[x].data else row[x - 1]
        marked = unicodedata.normalize("NFC", before.data + character)
        if x >= 0 and len(marked) <= _MARKS and width(marked) == width(before.data):
            row[x if row[x].data else x - 1] = before._replace(data=marked)
            self.dirty.add(self.cursor.y)

    def _draw_run(self, data: str) -> None:
        draw, cursor = partial(cell, self.cursor.attrs), self.cursor
        while data:
            if cursor.x >= self.columns:
                if modes.DECAWM in self.mode:
                    self.buffer[cursor.y].goes_on = True
                    self.dirty.add(cursor.y)
                    self.carriage_return()
                    self.linefeed()
                else:
                    # Without wrapping, all further characters are drawn in the last column.
                    cursor.x, data = self.columns - 1, data[-1:]
            piece, data = data[: self.columns - cursor.x], data[self.columns - cursor.x :]
            row = self.buffer[cursor.y]
            row.goes_on = False
            row.update(zip(range(cursor.x, cursor.x + len(piece)), map(draw, piece), strict=True))
            self.dirty.add(cursor.y)
            cursor.x += len(piece)

    def repeat(self, count: int = 1) -> None:
        """Draw the last character again (REP)."""
        self.draw(self._last * min(max(count, 1), self.columns * self.lines))

    def index(self) -> None:
        top, bottom = self.margins or Margins(0, self.lines - 1)
        if self.cursor.y == bottom and top == 0 and self._main is None:
            self._push(self.buffer[0])
        super().index()

    def set_mode(self, *wanted: int, private: bool = False) -> None:
        numbers = set(wanted)
        if private:
            if numbers & _CURSOR_MODES:
                self.save_cursor()
            if numbers & _ALTERNATE and self._main is None:
                self._main = (self.buffer, self.cursor)
                attributes = self.cursor.attrs
                self.buffer = self.buffer.copy()
                self.buffer.clear()
                self.cursor = type(self.cursor)(self.cursor.x, self.cursor.y, attributes)
                self.dirty.update(range(self.lines))
            numbers -= _ALTERNATE | _CURSOR_MODES | {_COLUMNS_132}
        super().set_mode(*numbers, private=private)

    def reset_mode(self, *unwanted: int, private: bool = False) -> None:
        numbers = set(unwanted)
        if private:
            if numbers & _ALTERNATE:
                self.leave_alternate()
            if numbers & _CURSOR_MODES:
                self.restore_cursor()
            numbers -= _ALTERNATE | _CURSOR_MODES | {_COLUMNS_132}
        super().reset_mode(*numbers, private=private)

    def leave_alternate(self) -> None:
        """Show the main screen again, if the alternate one is shown."""
        if self._main is None:
            return
        (self.buffer, cursor), self._main = self._main, None
        hidden, self.cursor = self.cursor.hidden, cursor
        self.cursor.hidden = hidden
        self.margins = None
        self.dirty.update(range(self.lines))

    def resize(self, lines: int | None = None, columns: int | None = None) -> None:
        """Change the size, without reflow. Lines that no longer fit go into the history, and come back later."""
        lines, columns = max(1, lines or self.lines), max(_SMALLEST, columns or self.columns)
        shown = self.buffer, self.cursor
        main = (self._main or shown)[0]
        for buffer, cursor in (shown, *([self._main] if self._main else [])):
            shift = -max(0, cursor.y + 1 - lines)
            rows = {y + shift: row for y, row in buffer.items() if 0 <= y + shift < lines}
            if buffer is main:
                for y in range(-shift):
                    self._push(buffer[y])
                grows = cursor.y == self.lines - 1
                while grows and self.lines + shift < lines and self._recent and self._recent[-1] is not None:
                    self._history.pop()
                    self.scrolled_off -= 1
                    shift += 1
                    rows = {0: self._recent.pop(), **{y + 1: row for y, row in rows.items()}}
            buffer.clear()
            buffer.update(rows)
            for row in rows.values():
                for x in [x for x in row if x >= columns]:
                    del row[x]
            cursor.y += shift
            cursor.x = min(cursor.x, columns)
        self.lines, self.columns = lines, columns
        self.margins = None
        self.tabstops = set(range(8, columns, 8))
        self._drawn = []

    def _push(self, row: Any) -> None:
        """Put a row of the screen at the end of the history."""
        self._history.append(render(row))
        self._recent.append(row)
        self.scrolled_off += 1
