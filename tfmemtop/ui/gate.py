"""The last gate before the terminal: every character of every widget passes through it.

Panels, dialogs, fields, borders, notifications: Textual hands each line that it has drawn to its filters, and nothing
else reaches the terminal but Textual's own sequences.
"""

from rich.segment import Segment
from textual.color import Color
from textual.filter import LineFilter

from tfmemtop.ui.draw.text import exactly
from tfmemtop.words.safe import safe


class Gate(LineFilter):
    """Makes safe what nobody has made safe before, and leaves each piece of a line as wide as it was."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        """*segments* with harmless text."""
        for segment in segments:
            if safe(segment.text) is not segment.text and not segment.control:
                return [self._passed(segment) for segment in segments]
        return segments

    @staticmethod
    def _passed(segment: Segment) -> Segment:
        text = safe(segment.text)
        if text is segment.text or segment.control:
            return segment
        return Segment(exactly(text, segment.cell_length), segment.style)
