"""The base of a session's app and of a cluster's: look, terminal, errors, the keys of every screen.

Unlike Textual's app, it lets no text control the terminal, and shows an error in one line. Its driver is Textual's,
corrected: a stop from outside duplicates no threads and loses no terminal modes.
"""

import codecs
import os
import sys
import termios
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from rich.console import RenderableType
from rich.segment import Segment
from textual import constants
from textual.app import App
from textual.color import Color
from textual.driver import Driver
from textual.drivers import linux_driver
from textual.drivers.linux_driver import LinuxDriver
from textual.filter import LineFilter
from textual.notifications import Notification, Notify, SeverityLevel

from tfmemtop.charset import to_ascii
from tfmemtop.exit_codes import SIGNALLED
from tfmemtop.failure import UNKNOWN_ERROR, describe, part_not_drawn
from tfmemtop.safe import safe
from tfmemtop.ui import ScreenOutcome, UiOptions
from tfmemtop.ui.draw.text import exactly

_GIVEN_BACK = (
    b"".join(b"\x1b[?%dl" % mode for mode in (1000, 1003, 1015, 1006, 1004, 2004, 2048))
    + b"\x1b[?7h\x1b[<u\x1b[?1049l\x1b[?25h"
)
"""The sequences that undo what Textual turns on, in Textual's order.

They turn off the mouse, focus reports, bracketed paste and reports of the size, turn on line wrapping, leave Kitty's
keyboard protocol and the alternate screen, and show the cursor."""


def _lenient_decoder(encoding: str) -> Any:
    return partial(codecs.getincrementaldecoder(encoding), errors="replace")


# One byte that is not UTF-8, such as a Latin-1 keyboard's "é", would end Textual's input thread and so the screen.
linux_driver.getincrementaldecoder = _lenient_decoder  # type: ignore[attr-defined]


def driver_class() -> type[Driver] | None:
    """Return our driver, or ``None`` if the environment names another one, which Textual then uses."""
    return None if constants.DRIVER else TerminalDriver


class TerminalDriver(LinuxDriver):
    """Textual's driver for terminals, which also continues correctly after a SIGSTOP.

    Textual takes every SIGCONT for the end of a Ctrl-Z that it handled itself. It then starts its threads a second
    time while the first ones still run, and stores the raw modes as those to restore at the end.
    """

    _modes: list[Any] | None = None

    def __init__(self, app: Any, **options: Any) -> None:
        super().__init__(app, **options)
        # Textual writes to stderr, which may be redirected. Python's own stdout cannot be used either: if the terminal
        # was closed, its buffer cannot be flushed at the end, and the exit code changes.
        if (out := sys.__stdout__) is not None:
            self._file = open(out.fileno(), "w", encoding=out.encoding, errors=out.errors, closefd=False)  # noqa: SIM115

    def write(self, data: str) -> None:
        """Write *data* as Textual does.

        If the writer thread has ended, since the terminal was closed, *data* is dropped: the thread's queue would
        block once it is full.
        """
        if self._writer_thread is not None and self._writer_thread.is_alive():
            super().write(data)

    def start_application_mode(self) -> None:
        """Start as Textual does, and store the modes that this sets. If the start fails, restore the terminal.

        Raises:
            RuntimeError: the system allows no more threads.
        """
        started = False
        try:
            super().start_application_mode()  # type: ignore[no-untyped-call]
            started = True
        finally:
            if not started:
                self._leave()
        self._modes = self._modes_now()

    def _leave(self) -> None:
        """Restore the terminal after a start that failed half-way. Textual does not do this."""
        if self._writer_thread is not None and self._writer_thread.is_alive():
            self._writer_thread.stop()
        self._writer_thread = None  # Textual would join it, which raises an exception for a thread that was not started
        self.give_back()

    def _sigcont_application(self, *_: object) -> None:
        if self._must_signal_resume:  # the process has stopped itself, because of Ctrl-Z
            super()._sigcont_application()
        elif not self._loop.is_closed():
            # The signal handler does not draw: it may have interrupted a write, and would wait for its lock for ever.
            self._loop.call_soon_threadsafe(self._resume)

    def _resume(self) -> None:
        """Draw anew, if another program has changed the terminal's modes in the meantime."""
        now = self._modes_now()
        if now is None or now == self._modes or self._writer_thread is None:
            return
        self.suspend_application_mode()
        super()._sigcont_application()

    def alert(self, title: str, text: str) -> None:
        """Ring the bell, and notify by OSC 9, or by OSC 777 if the terminal is known to have only that.

        *title* and *text* must be safe (see ``safe.py``): both sequences end at a control character. OSC 777
        separates its fields by semicolons, so each semicolon becomes a comma.
        """
        parts = title.replace(";", ","), text.replace(";", ",")
        if os.environ.get("VTE_VERSION") or os.environ.get("TERM", "").startswith(("rxvt", "foot")):
            self.write(f"\a\x1b]777;notify;{parts[0]};{parts[1]}\a")
        else:
            self.write(f"\a\x1b]9;{parts[0]}: {parts[1]}\a")
        self.flush()

    def give_back(self) -> None:
        """Restore the terminal at once, without another thread. Bytes that the terminal does not take now are lost."""
        try:
            os.set_blocking(self.fileno, False)
            os.write(self.fileno, _GIVEN_BACK)
            os.set_blocking(self.fileno, True)
        except OSError:
            pass  # the terminal is closed, or its output is stopped
        if self.attrs_before is not None:
            try:
                termios.tcsetattr(self.fileno, termios.TCSANOW, self.attrs_before)
            except termios.error:
                pass

    def _modes_now(self) -> list[Any] | None:
        try:
            return termios.tcgetattr(self.fileno)
        except termios.error:
            return None  # it is not a terminal, or no longer one


class Gate(LineFilter):
    """Makes text safe that is not safe yet, and ASCII where that is wanted; each piece of a line keeps its width.

    Textual passes each line that it has drawn (of panels, dialogs, fields, borders, notifications) to its filters.
    Besides these lines, only Textual's own sequences reach the terminal.
    """

    def __init__(self, ascii_only: bool) -> None:
        super().__init__()
        self._text = (lambda text: to_ascii(safe(text))) if ascii_only else safe

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        """Return *segments* as they may be shown."""
        for segment in segments:
            if self._text(segment.text) is not segment.text and not segment.control:
                return [self._passed(segment) for segment in segments]
        return segments

    def _passed(self, segment: Segment) -> Segment:
        text = self._text(segment.text)
        if text is segment.text or segment.control:
            return segment
        return Segment(exactly(text, segment.cell_length), segment.style)


class TimedNotification(Notification):
    """A notification whose time left is never below zero.

    Textual starts a timer of this time. A timer of a negative time never gives the loop back, so the screen would stand
    still if a notification ended in the microseconds in which it is drawn on another screen.
    """

    @property
    def time_left(self) -> float:
        """Return the time until the notification ends, in seconds: at least a hundredth."""
        return max(super().time_left, 0.01)

    @property
    def has_expired(self) -> bool:
        """Return whether the notification has ended."""
        return self.raised_at + self.timeout <= time.time()


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
        self.braille = options.color and not options.ascii
        """Whether areas are made of dots. Without colours, as in ASCII, they are made of characters that differ."""
        self._gate = Gate(options.ascii)

    def get_line_filters(self) -> Sequence[LineFilter]:
        """Return the gate, followed by Textual's filters."""
        return [self._gate, *super().get_line_filters()]

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
        seconds = self.NOTIFICATION_TIMEOUT if timeout is None else timeout
        self.post_message(Notify(TimedNotification(safe(message), safe(title), severity, seconds)))

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
