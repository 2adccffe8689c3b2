"""When the screen is drawn: at once if a user waits for it, otherwise at a fixed pace."""

import asyncio
import math
from collections.abc import Callable

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
