"""The panel of the findings: what is true now, the most serious first, each with its remedies."""

from collections.abc import Iterable, Iterator
from functools import lru_cache

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style

from tfmemtop.findings.finding import Group, Severity, grouped, say_group
from tfmemtop.findings.judgement import findings
from tfmemtop.findings.remedy import Remedy, offered
from tfmemtop.safe import safe
from tfmemtop.state import State
from tfmemtop.ui.draw.glyphs import MORE
from tfmemtop.ui.draw.lines import Line, Panel, cut, width_of
from tfmemtop.ui.draw.palette import BOLD, DIM, ERROR, GOOD, KEY, PLAIN, WARNING
from tfmemtop.ui.draw.text import wrap

MARKS = {Severity.ERROR: ("!", ERROR), Severity.WARNING: ("!", WARNING), Severity.INFO: ("i", GOOD)}

_ROOMY = 30  # lines of a screen on which notes stay
_NOTE_S = 10.0


class WhyPanel(Panel):
    """A title and the findings. Findings alike on many devices are drawn as one; those without room are counted."""

    def __init__(self, *, steers: bool = True) -> None:
        """*steers*: whether keys may change anything for the script."""
        super().__init__()
        self._steers = steers
        self._since: dict[str, float] = {}  # when each note was first seen, in session seconds, by its headline

    async def on_click(self) -> None:
        await self.run_action("app.why")

    def build(self, width: int, height: int) -> list[Line]:
        rows: list[Line] = []
        hidden = len(findings(self.state))
        for group in self._groups(self.state):
            room = height - 1 - len(rows)
            lines = next((lines for lines in self._ever_shorter(group, width) if len(lines) <= room), None)
            # If a finding has no room, less serious ones do not take its place. The first is shown even if it is cut.
            if lines is None and rows:
                break
            lines = lines or self._rows(group, width)
            hidden -= 1
            rows += lines
        more = (f"W: {hidden} more {MORE}" if hidden else "W explains") if rows else ""
        return [self.title_line(width, "Why", more), *rows]

    def wanted_height(self, state: State, width: int) -> int:
        """Return how many lines all findings take, with the title; 0 if there are none."""
        groups = self._groups(state)
        return 1 + sum(len(self._rows(group, width)) for group in groups) if groups and width else 0

    def _groups(self, state: State) -> list[Group]:
        """Return the findings to show: on a low screen, those that are for information only leave after a while."""
        groups = grouped(findings(state))
        if self.app.size.height >= _ROOMY:
            return groups
        seen = {say_group(group).headline: group for group in groups if group.first.severity is Severity.INFO}
        self._since = {headline: self._since.get(headline, state.now) for headline in seen}
        old = [seen[headline] for headline, since in self._since.items() if state.now - since > _NOTE_S]
        return [group for group in groups if group not in old]

    def _ever_shorter(self, group: Group, width: int) -> Iterator[list[Line]]:
        """Return the lines of *group* in three lengths: all, without the figures, the headline alone."""
        yield self._rows(group, width)
        yield self._rows(group, width, figures=False)
        yield self._rows(group, width, figures=False, remedies=False)

    def _rows(self, group: Group, width: int, *, figures: bool = True, remedies: bool = True) -> list[Line]:
        """Return the lines of *group*."""
        said = say_group(group)
        # What the headline advises is not said twice.
        told_already = {one for one in group.remedies if one.brief and not one.keys and one.brief in said.headline}
        helps = tuple(one for one in group.remedies if remedies and one not in told_already)
        told = said.figures if figures else ""
        return _finding(group.first.severity, said.headline, told, helps, width, self._steers)


@lru_cache(maxsize=200)
def _finding(
    severity: Severity,
    headline: str,
    figures: str,
    remedies: tuple[Remedy, ...],
    width: int,
    steers: bool,
) -> list[Line]:
    """Return the lines of a finding. They are cached, because a finding mostly stays the same from frame to frame."""
    mark, style = MARKS[severity]
    room = max(10, width - 4)
    rows = finding_lines(headline, figures, room, headline_style(severity))
    rows = [[Segment("   "), *line] for line in rows]
    rows[0][0] = Segment(f" {mark} ", style)
    helps = remedy_lines(remedies, room, steers=steers)
    if len(helps) == 1 and width_of(rows[-1]) + width_of(helps[0]) + 2 <= width:
        rows[-1] += [Segment("  "), *helps.pop()]
    return rows + [[Segment("   "), *line] for line in helps]


def headline_style(severity: Severity) -> Style:
    """Return the style of a headline: bold, unless the finding is only for information."""
    return PLAIN if severity is Severity.INFO else BOLD


def finding_lines(headline: str, figures: str, width: int, style: Style) -> list[Line]:
    """Return a headline in its *style* and the figures after it, dim, in lines of at most *width* cells."""
    lines: list[Line] = [[Segment(line, style)] for line in wrap(headline, width)]
    beside, room = "", width - width_of(lines[-1])
    words = safe(figures).split()
    while words and cell_len(f"{beside} {words[0]}") <= room:
        beside += f" {words.pop(0)}"
    if beside:
        lines[-1].append(Segment(beside, DIM))
    return [*lines, *([Segment(line, DIM)] for line in (wrap(" ".join(words), width) if words else ()))]


# Remedies, with their keys highlighted.

_BETWEEN = Segment("; ", DIM)


def remedy_lines(remedies: Iterable[Remedy], width: int, *, steers: bool = True, whole: bool = False) -> list[Line]:
    """Return *remedies* in lines of at most *width* cells. A remedy is not split between two lines.

    If it is longer than a line, it is cut, or, with *whole*, wrapped to the right of its keys.
    """
    lines: list[Line] = []
    for words in offered(remedies, steers=steers):
        part = _segments(words)
        if lines and width_of([*lines[-1], _BETWEEN, *part]) <= width:
            lines[-1] += [_BETWEEN, *part]
        else:
            lines += _wrapped(part, width) if whole else [cut(part, width)]
    return lines


def _wrapped(part: Line, width: int) -> list[Line]:
    *keys, text = part
    before = width_of(keys) or 2  # where there are no keys, the indent shows where a remedy begins
    if width - before < 2:  # the keys alone fill the line
        return [cut(part, width)]
    first, *rest = [Segment(line, text.style) for line in wrap(text.text, width - before)]
    return [[*keys, first], *([Segment(" " * before), line] for line in rest)]


def _segments(words: Remedy) -> Line:
    keys = [part for key in words.keys for part in (Segment(f"[{key}]", KEY), Segment(" ", DIM))]
    return [*keys, Segment(safe(words.text), PLAIN)]
