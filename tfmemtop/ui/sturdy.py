"""What an app of Textual's lacks: no text steers the terminal, and what fails is told in one line."""

import sys
from collections.abc import Callable, Sequence

from rich.console import RenderableType
from textual.app import App
from textual.filter import LineFilter
from textual.notifications import SeverityLevel

from tfmemtop.options import Outcome
from tfmemtop.ui.gate import Gate
from tfmemtop.words.failure import UNKNOWN_ERROR, describe, part_not_drawn
from tfmemtop.words.safe import safe

_GATE = Gate()


class SturdyApp(App[Outcome]):
    """An app behind the gate that every character passes; what fails is told in one line."""

    trouble = ""
    """What ended the screen, if nobody asked for that."""
    ascii_only = False
    """Whether the terminal takes nothing but ASCII."""
    _told: frozenset[str] = frozenset()

    def get_line_filters(self) -> Sequence[LineFilter]:
        """Textual's, behind the gate."""
        return [_GATE, *super().get_line_filters()]

    def notify(
        self,
        message: str,
        *,
        title: str = "",
        severity: SeverityLevel = "information",
        timeout: float | None = None,
        markup: bool = False,
    ) -> None:
        """As Textual's, but *message* is never markup: ``[L]`` is a key, and a name may hold anything."""
        super().notify(safe(message), title=safe(title), severity=severity, timeout=timeout, markup=False)

    def panic(self, *renderables: RenderableType) -> None:
        """After what nobody expected, in Textual's own threads too."""
        self._return_code = 1
        self._fatal_error()

    def _fatal_error(self) -> None:
        # Textual prints pages, with the values of variables as they are. Ours is one line, once the terminal is back.
        error = sys.exc_info()[1] or self._exception
        self.trouble = self.trouble or (describe(error) if error else UNKNOWN_ERROR)
        self._close_messages_no_wait()

    def _try(self, draw: Callable[[], object]) -> None:
        """Draw a part. If that fails, which should never happen, the user is told once and the other parts live on."""
        try:
            draw()
        except Exception as error:
            text = part_not_drawn(error)
            if text not in self._told:
                self._told |= {text}
                self.notify(text, severity="error", timeout=20)
