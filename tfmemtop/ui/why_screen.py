"""W: the findings at length. The chosen one shows why it is so, what helps, and lines for the script."""

import re
from collections.abc import Callable
from typing import ClassVar

from rich.segment import Segment
from textual import events
from textual.binding import Binding, BindingType

from tfmemtop.state import State
from tfmemtop.ui.dialog import Dialog, Hint
from tfmemtop.ui.lines import Line
from tfmemtop.ui.palette import BOLD, CHOSEN, DIM, GOOD, PLAIN, UNICODE, Glyphs
from tfmemtop.ui.text import chop, wrap
from tfmemtop.ui.why_panel import MARKS, remedy_line
from tfmemtop.verdicts import Finding, findings

_KEY = re.compile(r"\[([A-Z])\]")


class WhyScreen(Dialog[str]):
    """Closes with the key of the chosen finding's remedy that was pressed, or with ``None``.

    The choice stays with its finding while others come and go.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q,W", "cancel", show=False),
        Binding("y", "copy", show=False),
    ]

    def __init__(self, state: Callable[[], State], *, glyphs: Glyphs = UNICODE) -> None:
        super().__init__("Why", glyphs=glyphs, width=128)
        self._state = state
        self._chosen: tuple[str, int] | None = None  # kind, and which of them
        self._spots: list[tuple[int, int]] = []

    def refresh_state(self, state: State) -> None:
        """Draw anew, as findings come and go."""
        self.redraw()

    def hints(self) -> list[Hint]:
        chosen = self.chosen
        hints: list[Hint] = [(f"{self.glyphs.up}{self.glyphs.down}", "choose")]
        if chosen and chosen.code:
            hints.append(("y", "copy the lines"))
        return [*hints, ("Esc", "close")]

    @property
    def chosen(self) -> Finding | None:
        """The finding that is shown at length; ``None`` if there is none at all."""
        found = findings(self._state())
        return found[self._index(found)] if found else None

    def body(self, width: int) -> list[Line]:
        found = findings(self._state())
        self._spots = []
        if not found:
            return [[Segment("Nothing to tell: no finding holds now.", DIM)]]
        at = self._index(found)
        lines: list[Line] = []
        for index, finding in enumerate(found):
            first = len(lines)
            lines += self._sentence(finding, width, index == at)
            if index == at:
                lines += self._at_length(finding, width)
            lines.append([])
            self._spots.append((first, len(lines) - 1))
        return lines[:-1]

    def _sentence(self, finding: Finding, width: int, chosen: bool) -> list[Line]:
        mark, style = MARKS[finding.level]
        first, *rest = wrap(finding.text, max(10, width - 3))
        head = [Segment(f" {mark} ", CHOSEN if chosen else style), Segment(first, BOLD if chosen else PLAIN)]
        return [head, *([Segment("   "), Segment(line, BOLD if chosen else PLAIN)] for line in rest)]

    def _at_length(self, finding: Finding, width: int) -> list[Line]:
        room = max(10, width - 3)
        lines: list[Line] = [[Segment("   "), Segment(line)] for line in wrap(finding.explanation, room)]
        if not finding.explanation:
            lines = []
        if finding.remedy:
            lines += [[Segment("   "), *remedy_line(line)] for line in wrap(finding.remedy, room)]
        if finding.code:
            lines.append([])
            lines += [[Segment("     "), Segment(part, GOOD)] for line in finding.code for part in chop(line, room - 2)]
        return lines

    def kept_in_view(self) -> int | None:
        return self._spots[self._index(findings(self._state()))][0] if self._spots else None

    def _index(self, found: list[Finding]) -> int:
        """Which of *found* is chosen; the first where the one chosen has ceased."""
        names = _names(found)
        return names.index(self._chosen) if self._chosen in names else 0

    def _select(self, index: int) -> None:
        names = _names(findings(self._state()))
        if names:
            self._chosen = names[min(max(0, index), len(names) - 1)]
            self.follow()

    def pressed(self, line: int) -> None:
        for index, (first, last) in enumerate(self._spots):
            if first <= line <= last:
                self._select(index)
                return

    def action_move(self, count: int) -> None:
        self._select(self._index(findings(self._state())) + count)

    def action_copy(self) -> None:
        """The lines, by OSC 52: into the clipboard of the terminal, wherever that is."""
        chosen = self.chosen
        if chosen and chosen.code:
            self.app.copy_to_clipboard("\n".join(chosen.code) + "\n")
            self.app.notify("Copied, if the terminal lets programs set the clipboard.", timeout=3)

    def on_key(self, event: events.Key) -> None:
        chosen = self.chosen
        if chosen and event.character and event.character in _KEY.findall(chosen.remedy):
            event.stop()
            self.dismiss(event.character)


def _names(found: list[Finding]) -> list[tuple[str, int]]:
    """Each finding's kind, and how many of that kind stand before it."""
    seen: dict[str, int] = {}
    names = []
    for finding in found:
        seen[finding.key] = seen.get(finding.key, -1) + 1
        names.append((finding.key, seen[finding.key]))
    return names
