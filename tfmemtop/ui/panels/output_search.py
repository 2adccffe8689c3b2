"""A search in the output: what is looked for, where it is found, and how that is shown. It knows no widget."""

import re
from itertools import pairwise
from typing import TYPE_CHECKING

from rich.segment import Segment
from rich.style import Style

from tfmemtop.ui.draw.lines import Line
from tfmemtop.ui.draw.palette import WARNING

if TYPE_CHECKING:
    from tfmemtop.ui.terminal.emulator import TerminalScreen

_FOUND = Style(reverse=True)
_HERE = WARNING + Style(reverse=True, bold=True, underline=True)


class OutputSearch:
    """Lines that contain a text. Its case counts only where it has a capital, as in less with ``-i``."""

    def __init__(self) -> None:
        self.wanted = ""
        self.at: int | None = None
        """Number of the line that the search has come to."""
        self._pattern = re.compile("")
        self._off: list[int] = []  # lines found that have scrolled off the screen, in order
        self._shown: list[int] = []  # lines found on the screen
        self._looked = 0  # number of the first line that has not been looked at since it scrolled off

    @property
    def found(self) -> list[int]:
        """The numbers of the lines that contain the text, the oldest first, as of the last look."""
        return self._off + self._shown

    def want(self, text: str) -> None:
        """Look for *text* from now on; for nothing if it is empty."""
        self.wanted = text
        self._pattern = re.compile(re.escape(text), re.IGNORECASE if text == text.lower() else 0)
        self._off, self._shown, self._looked = [], [], 0

    def look(self, terminal: "TerminalScreen") -> None:
        """Look at the lines that are new since the last look, and at those that may have changed."""
        if not self.wanted:
            return
        oldest, end = terminal.oldest, terminal.scrolled_off
        self._looked = min(max(self._looked, oldest), end)
        self._off = [number for number in self._off if oldest <= number < self._looked]
        self._off += [n for n, text in enumerate(terminal.texts(self._looked, end), self._looked) if self._in(text)]
        self._looked = end
        self._shown = [n for n, text in enumerate(terminal.texts(end), end) if self._in(text)]

    def _in(self, text: str) -> bool:
        return self._pattern.search(text) is not None

    def go_near(self, number: int) -> None:
        """Come to the newest match not below line *number*, else to the first there is."""
        above = [found for found in self.found if found <= number]
        self.at = above[-1] if above else next(iter(self.found), None)

    def go(self, step: int) -> None:
        """Come to the next match below, or above if *step* is negative; from the last on to the first."""
        found = self.found
        if not found:
            self.at = None
        elif self.at is None:
            self.at = found[-1]
        elif step > 0:
            self.at = next((number for number in found if number > self.at), found[0])
        else:
            self.at = next((number for number in reversed(found) if number < self.at), found[-1])

    def place(self) -> tuple[int, int]:
        """Which match it has come to, counted from 1, and how many there are; ``(0, 0)`` if there is none."""
        found = self.found
        return (found.index(self.at) + 1 if self.at in found else 0), len(found)

    def mark(self, line: Line, number: int) -> Line:
        """*line*, which has that *number*, with every match in it marked."""
        if not self.wanted:
            return line
        spans = [match.span() for match in self._pattern.finditer("".join(segment.text for segment in line))]
        if not spans:
            return line
        over = _HERE if number == self.at else _FOUND
        marked: Line = []
        at = 0
        for text, style, _ in line:
            begin = at
            at += len(text)
            cuts = {begin, at, *(edge for span in spans for edge in span if begin < edge < at)}
            edges = sorted(cuts)
            for first, last in pairwise(edges):
                inside = any(start <= first < end for start, end in spans)
                piece = text[first - begin : last - begin]
                marked.append(Segment(piece, (style or Style()) + over if inside else style))
        return marked
