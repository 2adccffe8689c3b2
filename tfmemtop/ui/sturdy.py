"""The base of our apps. Unlike Textual's, it lets no text control the terminal, and shows an error in one line."""

import sys
from collections.abc import Callable, Sequence

from rich.console import RenderableType
from textual.app import App
from textual.filter import LineFilter
from textual.notifications import SeverityLevel

from tfmemtop.failure import UNKNOWN_ERROR, describe, part_not_drawn
from tfmemtop.options import ScreenOutcome
from tfmemtop.safe import safe
from tfmemtop.ui.gate import Gate

_GATE = Gate()


class SturdyApp(App[ScreenOutcome]):
    """An app whose every character passes the gate (``ui/gate.py``), and which shows an error in one line."""

    trouble = ""
    """The error that ended the screen, in one line; empty if there was none."""
    ascii_only = False
    """Whether the terminal takes only ASCII."""
    _told: frozenset[str] = frozenset()

    def get_line_filters(self) -> Sequence[LineFilter]:
        """Return the gate, followed by Textual's filters."""
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
        """Notify as Textual does, but never read *message* as markup: ``[L]`` is a key, a name may contain anything."""
        super().notify(safe(message), title=safe(title), severity=severity, timeout=timeout, markup=False)

    def panic(self, *renderables: RenderableType) -> None:
        """End the app after an unexpected error, also one in a thread of Textual's."""
        self._return_code = 1
        self._fatal_error()

    def _fatal_error(self) -> None:
        # Textual prints pages, with the values of variables unchanged. We print one line, after restoring the terminal.
        error = sys.exc_info()[1] or self._exception
        self.trouble = self.trouble or (describe(error) if error else UNKNOWN_ERROR)
        self._close_messages_no_wait()

    def _try(self, draw: Callable[[], object]) -> None:
        """Draw a part of the screen. If that fails, which should never happen, notify the user once.

        The other parts go on.
        """
        try:
            draw()
        except Exception as error:
            text = part_not_drawn(error)
            if text not in self._told:
                self._told |= {text}
                self.notify(text, severity="error", timeout=20)
