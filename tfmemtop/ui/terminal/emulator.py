"""A terminal emulator: turns what a program has written into lines of segments, with scroll-back."""

import re
from itertools import islice

from pyte.streams import Stream

from tfmemtop.ui.draw.cells import crop, render
from tfmemtop.ui.draw.lines import Line
from tfmemtop.ui.terminal.pyte_screen import CompleteScreen

_TOKEN = re.compile(
    "([^\x00-\x1f\x7f-\x9f]{1,512})"  # 1: text
    "|\x1b\\[([0-?]*)([ -/]*)([@-~])"  # 2, 3, 4: CSI: parameters, intermediates, final
    "|\x1b([ -/]*)([0-Z\\\\-~])"  # 5, 6: other escape sequences: intermediates, final
    "|([\x00-\x1a\x1c-\x1f])"  # 7: control characters
    "|\x1b\\[[0-?]*[ -/]*|[\x1b\x7f-\x9f]"  # an incomplete sequence, or a character without a meaning here
)
_UNFINISHED = re.compile("\x1b(?:\\[[0-?]*)?[ -/]*\\Z")
_LONGEST = 512  # characters; a longer sequence is neither waited for nor carried out
_STRING_END = re.compile("[\x07\x18\x1a\x1b\x9c]")
_STRINGS = "]PX^_"  # OSC, DCS, SOS, PM, APC: titles, links, pictures, none of them shown
_MOST = 9999
_CONTROLS = {code: name for code, name in Stream.basic.items() if name != "bell"}
_ESCAPES = {**Stream.escape, "E": "next_line"}
_CSI = {
    **{code: name for code, name in Stream.csi.items() if not name.startswith(("report", "select"))},
    **{"b": "repeat", "s": "save_cursor", "u": "restore_cursor", "S": "scroll_up", "T": "scroll_down", "Z": "back_tab"},
}
"""The methods of the screen, by the code that calls them."""
_RENDITIONS = {2: (5,), 22: (22, 25), 5: (), 6: ()}

# What pyte raises at parameters that it does not expect: a wrong number of them, an unknown way to erase
# (a local variable is never set), origin mode without margins.
_REFUSED = (TypeError, ValueError, LookupError, NameError, AssertionError)


class Parser:
    """Parses text for a screen. The text may be split anywhere between two calls of :meth:`feed`."""

    def __init__(self, screen: CompleteScreen) -> None:
        self._screen = screen
        self._pending = ""
        self._in_string = False
        self._controls, self._escapes, self._csi = (
            {code: getattr(screen, name) for code, name in names.items()} for names in (_CONTROLS, _ESCAPES, _CSI)
        )

    def feed(self, text: str) -> None:
        """Parse *text*, and pass all that is recognised to the screen. No text makes this raise."""
        text, self._pending = self._pending + text, ""
        last = text.rfind("\x1b")
        if last >= 0 and _UNFINISHED.match(text, last):
            text, self._pending = text[:last], text[last:] if len(text) - last <= _LONGEST else ""
        at, end, match, draw = 0, len(text), _TOKEN.match, self._screen.draw
        while at < end:
            if self._in_string:
                stop = _STRING_END.search(text, at)
                if stop is None:
                    break
                self._in_string = False
                # An ESC ends a string too. The sequence that it begins, even if just the terminator, is read next.
                at = stop.start() if stop[0] == "\x1b" else stop.end()
                continue
            token = match(text, at)
            assert token is not None  # every character is one of the alternatives
            at = token.end()
            if token.lastindex == 1:
                draw(token[1])
            elif token.lastindex == 7:
                if control := self._controls.get(token[7]):
                    control()
            elif token.lastindex is not None:
                # Caught for each sequence: if the screen refuses one, only that one is lost.
                try:
                    if token.lastindex == 4:
                        self._control_sequence(token[2], token[3], token[4])
                    else:
                        self._escape(token[5], token[6])
                except _REFUSED:
                    pass

    def _escape(self, intermediates: str, final: str) -> None:
        if intermediates in ("(", ")"):
            self._screen.define_charset(final, mode=intermediates)
        elif intermediates == "#" and final == "8":
            self._screen.alignment_display()
        elif not intermediates:
            if final in _STRINGS:
                self._in_string = True
            elif escape := self._escapes.get(final):
                escape()

    def _control_sequence(self, parameters: str, intermediates: str, final: str) -> None:
        private = parameters.startswith("?")
        parameters = parameters[private:]
        if len(parameters) > _LONGEST or intermediates or any(mark in parameters for mark in "<=>?"):
            return  # too long; or specific to xterm, kitty and others: keyboard protocols, queries, cursor shapes
        if final == "m":
            if not private and (attributes := rendition(parameters)):
                self._screen.select_graphic_rendition(*attributes)
            return
        handler = self._csi.get(final)
        if handler is None or ":" in parameters:
            return
        numbers = [_number(number) for number in parameters.split(";")] if parameters and final not in "su" else []
        if private:
            if final in "hl":
                handler(*numbers, private=True)
            elif final in "JK":
                handler(*numbers[:1])
        else:
            handler(*numbers)


def rendition(parameters: str) -> list[int]:
    """Return SGR *parameters* in the form that pyte takes: a flat list, with the sixteen colours by their own codes.

    Dim (2) becomes blink (5): pyte's cells have no dim, and blinking is not shown. The list is empty if none of the
    parameters changes anything. It must not be passed to pyte then, which would reset all attributes.
    """
    result: list[int] = []
    parts = parameters.split(";")
    at = 0
    while at < len(parts):
        code, *values = parts[at].split(":")
        at += 1
        number = _number(code)
        if number == 4 and values:
            result.append(4 if _number(values[0]) else 24)
        elif number in (38, 48, 58):
            if values:
                if len(values) > 4 and values[0] == "2":
                    del values[1]  # the colour space
            else:
                count = {"2": 4, "5": 2}.get(parts[at] if at < len(parts) else "", 1)
                values = parts[at : at + count]
                at += count
            result += _colour(number, [_number(value) for value in values])
        else:
            result += _RENDITIONS.get(number, (number,))
    return result


def _number(text: str) -> int:
    # Python's ``int`` raises for a text of thousands of digits.
    return min(int(text[:8] or 0), _MOST)


def _colour(code: int, values: list[int]) -> list[int]:
    kind, *numbers = values or [0]
    if code == 58 or any(number > 255 for number in numbers):
        return []  # an underline's colour, or an invalid one
    if kind == 2 and len(numbers) == 3:
        return [code, 2, *numbers]
    if kind == 5 and len(numbers) == 1:
        index = numbers[0]
        if index >= 16:
            return [code, 5, index]
        # The first sixteen are the colours of the user's terminal, whatever they look like.
        return [code - 8 + index if index < 8 else code + 44 + index]
    return []


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

    def feed(self, text: str) -> None:
        """Draw *text*, which the program has written. No text makes this raise."""
        self._parser.feed(text)

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
