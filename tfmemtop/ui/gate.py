"""The gate before the terminal: a filter through which every character of every widget passes.

Textual passes each line that it has drawn (of panels, dialogs, fields, borders, notifications) to its filters. Besides
these lines, only Textual's own sequences reach the terminal.
"""

from rich.segment import Segment
from textual.color import Color
from textual.filter import LineFilter

from tfmemtop.safe import safe
from tfmemtop.ui.draw.text import exactly


class Gate(LineFilter):
    """Makes text safe that is not safe yet, and keeps the width of each piece of a line."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        """Return *segments* with their text made safe."""
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
