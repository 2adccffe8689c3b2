"""Findings: what holds now, most serious first, each with what helps."""

import re

from rich.cells import cell_len
from rich.segment import Segment

from tfmemtop.safe import safe
from tfmemtop.state import State
from tfmemtop.ui.lines import Line, Panel, fit
from tfmemtop.ui.palette import DIM, ERROR, GOOD, KEY, PLAIN, UNICODE, WARNING, Glyphs
from tfmemtop.ui.text import wrap
from tfmemtop.verdicts import Finding, findings
from tfmemtop.verdicts.gather import gathered

MARKS = {"error": ("!", ERROR), "warning": ("!", WARNING), "info": ("i", GOOD)}
_KEYS = re.compile(r"(\[[^\]]+\])")
_WRAPPED = 200  # findings whose lines are kept


class WhyPanel(Panel):
    """A title and the findings, wrapped, those alike on many devices as one; what is not shown is counted."""

    def __init__(self, *, glyphs: Glyphs = UNICODE, id: str | None = None) -> None:
        super().__init__(glyphs=glyphs, id=id)
        self._wrapped: dict[tuple[Finding, int], list[Line]] = {}

    def build(self, width: int, height: int) -> list[Line]:
        rows: list[Line] = []
        found = findings(self.state)
        hidden = len(found)
        for finding in gathered(found):
            lines = self._rows(finding, width)
            # A finding is shown whole or not at all, but for the first.
            if not rows or len(rows) + len(lines) <= height - 1:
                hidden -= 1
                rows += lines
        more = f"W: {hidden} more {self.glyphs.more}" if hidden else "W explains" if rows else ""
        return [self.title_line(width, "Why", more), *rows]

    def wanted_height(self, state: State, width: int) -> int:
        """Lines that all findings take, with the title; 0 if there is none."""
        found = gathered(findings(state))
        return 1 + sum(len(self._rows(finding, width)) for finding in found) if found and width else 0

    def _rows(self, finding: Finding, width: int) -> list[Line]:
        """The lines of *finding*, wrapped once for as long as its words stay."""
        known = self._wrapped.get((finding, width))
        if known is None:
            if len(self._wrapped) > _WRAPPED:
                self._wrapped.clear()
            known = self._wrapped[finding, width] = self._wrap(finding, width)
        return known

    def _wrap(self, finding: Finding, width: int) -> list[Line]:
        mark, style = MARKS[finding.level]
        text = wrap(finding.text, max(10, width - 4))
        rows: list[Line] = [[Segment(f" {mark} ", style), Segment(text[0], PLAIN)]]
        rows += [[Segment("   "), Segment(line)] for line in text[1:]]
        if finding.remedy:
            told = safe(finding.remedy)
            remedy = remedy_line(fit(told, max(10, width - 4), self.glyphs))
            if cell_len(text[-1]) + cell_len(told) + 5 <= width:
                rows[-1] += [Segment("  "), *remedy]
            else:
                rows.append([Segment("   "), *remedy])
        return rows


def remedy_line(text: str) -> Line:
    """*text* with the keys in it, as ``[G]``, made plain."""
    return [Segment(part, KEY if part.startswith("[") else DIM) for part in _KEYS.split(text) if part]
