"""The base of a session's app and of a cluster's: look, terminal, errors, the keys of every screen; and its pace.

Unlike Textual's app, it lets no text control the terminal, and shows an error in one line.
"""

import asyncio
import math
import sys
from collections.abc import Callable, Sequence

from rich.console import RenderableType
from rich.segment import Segment
from textual.app import App
from textual.color import Color
from textual.filter import LineFilter
from textual.notifications import SeverityLevel

from tfmemtop.exit_codes import SIGNALLED
from tfmemtop.failure import UNKNOWN_ERROR, describe, part_not_drawn
from tfmemtop.safe import safe
from tfmemtop.ui import ScreenOutcome, UiOptions
from tfmemtop.ui.draw.palette import ASCII, UNCOLOURED, UNICODE
from tfmemtop.ui.draw.text import exactly
from tfmemtop.ui.driver import TerminalDriver, driver_class


class Gate(LineFilter):
    """Makes text safe that is not safe yet, and keeps the width of each piece of a line.

    Textual passes each line that it has drawn (of panels, dialogs, fields, borders, notifications) to its filters.
    Besides these lines, only Textual's own sequences reach the terminal.
    """

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


_GATE = Gate()


class ScreenApp(App[ScreenOutcome]):
    """An app that draws on the user's terminal, in the terminal's colours. Every character passes the gate."""

    ENABLE_COMMAND_PALETTE = False
    CSS = """
    Screen { layout: vertical; background: ansi_default; color: ansi_default; }
    ModalScreen { background: transparent; }
    """
    trouble = ""
    """The error that ended the screen, in one line; empty if there was none."""
    _told: frozenset[str] = frozenset()

    def __init__(self, options: UiOptions) -> None:
        super().__init__(driver_class(), ansi_color=True)
        self.animation_level = "none"
        self.ascii_only = options.ascii
        self.glyphs = ASCII if options.ascii else UNICODE if options.color else UNCOLOURED

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

    @property
    def script_goes_on(self) -> bool:
        """Whether a script goes on without the screen."""
        return False

    def end_for(self, number: int) -> None:
        """Leave at once because of signal *number*, without a question."""
        self.exit(ScreenOutcome(SIGNALLED + number, left_running=self.script_goes_on))

    def give_terminal_back(self) -> None:
        """Restore the terminal at once: the last resort for a screen that does not end by itself."""
        if isinstance(self._driver, TerminalDriver):
            self._driver.give_back()


PACES_S = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
"""The times between two frames that the user can choose from, in seconds."""

LEAST_S = 0.1
"""The shortest time between two frames, in seconds."""
_SLACK = 0.1
"""How much later than due a frame may be, as a share of the time between two frames.

A frame waits for readings, which arrive anyway: to wake up for both costs twice as much."""


class FramePacer:
    """Calls *draw* every ``every_s`` seconds, or sooner when urged. In between it calls *draw_output* for new output.

    :meth:`look` must be called whenever events have arrived.
    """

    def __init__(
        self,
        *,
        draw: Callable[[], None],
        draw_output: Callable[[], None],
        has_new_output: Callable[[], bool],
        later: Callable[[Callable[[], None]], object],
    ) -> None:
        self._draw = draw
        self._draw_output = draw_output
        self._has_new_output = has_new_output
        self._later = later  # calls a function where its error is reported; an error in a timer's callback is not
        self._urgent = False
        self._drawn = self._output_drawn = self._due = -math.inf  # on the loop's clock
        self._timer: asyncio.TimerHandle | None = None
        self.every_s = 1.0

    def change(self, step: int) -> None:
        """Draw more often (-1) or less often (+1)."""
        at = PACES_S.index(self.every_s) + step
        self.every_s = PACES_S[min(max(0, at), len(PACES_S) - 1)]

    def urge(self) -> None:
        """Note that the user waits for the next frame."""
        self._urgent = True

    def look(self) -> None:
        """Draw what is due now, and set a timer for what is due next."""
        loop = asyncio.get_running_loop()
        now = loop.time()
        if now >= self._drawn + (LEAST_S if self._urgent else self.every_s):
            self._urgent = False
            self._drawn = self._output_drawn = now
            self._draw()
        elif now >= self._output_drawn + LEAST_S and self._has_new_output():
            self._output_drawn = now
            self._draw_output()
        if self._urgent:
            due = self._drawn + LEAST_S
        elif self._has_new_output():
            due = self._output_drawn + LEAST_S
        else:
            due = self._drawn + self.every_s * (1 + _SLACK)
        if self._timer is None or due != self._due:
            if self._timer is not None:
                self._timer.cancel()
            self._due = due
            self._timer = loop.call_at(due, self._wake)

    def _wake(self) -> None:
        self._timer = None
        self._later(self.look)
