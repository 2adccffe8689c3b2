"""A search in the output: its text, the lines that contain it, and how matches are marked. It uses no widget."""

import re
from itertools import pairwise
from typing import TYPE_CHECKING

from rich.segment import Segment
from rich.style import Style

from tfmemtop.ui.draw.lines import Line
from tfmemtop.ui.draw.palette import WARNING

if TYPE_CHECKING:
    from tfmemtop.ui.terminal.screen import TerminalScreen

_FOUND = Style(reverse=True)
_HERE = WARNING + Style(reverse=True, bold=True, underline=True)


class OutputSearch:
    """The lines that contain a text. Case matters only if the text has a capital letter, as in ``less -i``."""

    def __init__(self) -> None:
        self.wanted = ""
        self.at: int | None = None
        """Number of the line with the current match; ``None`` if there is none."""
        self._pattern = re.compile("")
        self.found: list[int] = []
        """The numbers of the lines that contained the text when :meth:`look` was last called, the oldest first."""

    def want(self, text: str) -> None:
        """Search for *text* from now on; if it is empty, for nothing."""
        self.wanted = text
        self._pattern = re.compile(re.escape(text), re.IGNORECASE if text == text.lower() else 0)
        self.found, self.at = [], None

    def look(self, terminal: "TerminalScreen") -> None:
        """Search the lines of *terminal*."""
        if self.wanted:
            lines = enumerate(terminal.texts(), terminal.oldest)
            self.found = [number for number, text in lines if self._pattern.search(text)]

    def go_near(self, number: int) -> None:
        """Go to the last match that is not below line *number*; if there is none, to the first match."""
        above = [found for found in self.found if found <= number]
        self.at = above[-1] if above else next(iter(self.found), None)

    def go(self, step: int) -> None:
        """Go to the next match below, or above if *step* is negative; after the last one comes the first."""
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
        """Return which match is the current one, counted from 1, and how many there are; ``(0, 0)`` if none."""
        found = self.found
        return (found.index(self.at) + 1 if self.at in found else 0), len(found)

    def mark(self, line: Line, number: int) -> Line:
        """Return *line*, whose number is *number*, with every match in it marked."""
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
