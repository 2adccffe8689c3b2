"""W: the findings in detail. The chosen one is shown with its explanation, its remedies and lines for the script."""

from collections.abc import Callable, Hashable
from typing import ClassVar

from rich.segment import Segment
from textual import events
from textual.binding import Binding, BindingType

from tfmemtop.findings.finding import Finding
from tfmemtop.findings.judgement import findings
from tfmemtop.state import State
from tfmemtop.ui.draw.glyphs import ARROWS
from tfmemtop.ui.draw.lines import Line
from tfmemtop.ui.draw.palette import BOLD, CHOSEN, DIM, GOOD
from tfmemtop.ui.draw.text import wrap, wrap_code
from tfmemtop.ui.panels.why_panel import MARKS, finding_lines, headline_style, remedy_lines
from tfmemtop.ui.screens.dialog import COPY_LINES, Hint, PageDialog


class WhyScreen(PageDialog[str]):
    """The dialog of the findings. Its result is the key of a remedy that the user pressed, or ``None``.

    The cursor stays on its finding while others appear and disappear.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q,W", "cancel", show=False),
        Binding("up", "choose(-1)", show=False, priority=True),
        Binding("down", "choose(1)", show=False, priority=True),
        Binding("y", "copy", show=False),
    ]

    def __init__(self, state: Callable[[], State], *, steers: bool = True) -> None:
        super().__init__("Why", width=128)
        self._steers = steers
        self._state = state
        self._chosen: tuple[Hashable, int] | None = None  # kind, and which finding of that kind
        self._spots: list[tuple[int, int]] = []

    def refresh_state(self, state: State) -> None:
        self.redraw()

    def hints(self) -> list[Hint]:
        chosen = self.chosen
        hints: list[Hint] = [(ARROWS, "choose")]
        if chosen and chosen.said.code:
            hints.append(("y", COPY_LINES))
        return [*hints, ("Esc", "close")]

    @property
    def chosen(self) -> Finding | None:
        """The finding that is shown in detail; ``None`` if there are no findings."""
        found = findings(self._state())
        return found[self._index(found)] if found else None

    def body(self, width: int) -> list[Line]:
        found = findings(self._state())
        self._spots = []
        if not found:
            return [[Segment("No findings right now.", DIM)]]
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
        mark, style = MARKS[finding.severity]
        said = finding.said
        headline = BOLD if chosen else headline_style(finding.severity)
        lines = finding_lines(said.headline, said.figures, max(10, width - 3), headline)
        head = Segment(f" {mark} ", CHOSEN if chosen else style)
        return [[Segment("   ") if number else head, *line] for number, line in enumerate(lines)]

    def _at_length(self, finding: Finding, width: int) -> list[Line]:
        room, words = max(10, width - 3), finding.said
        lines: list[Line] = []
        if words.explanation:
            lines += [[Segment("   "), Segment(line)] for line in wrap(words.explanation, room)]
        remedies = remedy_lines(finding.remedies, room, steers=self._steers, whole=True)
        lines += [[Segment("   "), *line] for line in remedies]
        if words.code:
            lines.append([])
            parts = (part for line in words.code for part in wrap_code(line, room - 2))
            lines += [[Segment("     "), Segment(part, GOOD)] for part in parts]
        return lines

    def _index(self, found: list[Finding]) -> int:
        """Return the index in *found* of the chosen finding; 0 if it is no longer there."""
        names = _names(found)
        return names.index(self._chosen) if self._chosen in names else 0

    def _select(self, index: int) -> None:
        names = _names(findings(self._state()))
        if names:
            self._chosen = names[min(max(0, index), len(names) - 1)]
            self.redraw()
            self.scroll_to_line(self._spots[self._index(findings(self._state()))][0])

    def pressed(self, line: int) -> None:
        for index, (first, last) in enumerate(self._spots):
            if first <= line <= last:
                self._select(index)
                return

    def action_choose(self, count: int) -> None:
        self._select(self._index(findings(self._state())) + count)

    def action_copy(self) -> None:
        if chosen := self.chosen:
            self.copy(chosen.said.code)

    def on_key(self, event: events.Key) -> None:
        chosen = self.chosen
        keys = {key for remedy in chosen.remedies for key in remedy.keys} if chosen else set()
        if event.character in keys and event.character.isupper():  # q closes the dialog
            event.stop()
            self.dismiss(event.character)


def _names(found: list[Finding]) -> list[tuple[Hashable, int]]:
    """Return each finding's kind, and how many of that kind come before it."""
    seen: dict[Hashable, int] = {}
    names = []
    for finding in found:
        seen[finding.kind] = seen.get(finding.kind, -1) + 1
        names.append((finding.kind, seen[finding.kind]))
    return names
