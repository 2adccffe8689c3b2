"""The terminal's driver: Textual's own, but a stop from outside costs neither threads nor the terminal's modes."""

import codecs
import os
import sys
import termios
from functools import partial
from typing import Any

from textual import constants
from textual.driver import Driver
from textual.drivers import linux_driver
from textual.drivers.linux_driver import LinuxDriver

from tfmemtop.charset import to_ascii
from tfmemtop.first.begin import take_over
from tfmemtop.ui.sturdy import SturdyApp

_GIVEN_BACK = (
    b"".join(b"\x1b[?%dl" % mode for mode in (1000, 1003, 1015, 1006, 1004, 2004, 2048))
    + b"\x1b[?7h\x1b[<u\x1b[?1049l\x1b[?25h"
)
"""Mouse, focus, bracketed paste and reports of the size off, lines wrapped, Kitty's keys and the alternate screen left,
the cursor shown: what Textual turns on, undone in its order."""

_ALTERNATE = "\x1b[?1049h"


def _lenient_decoder(encoding: str) -> Any:
    return partial(codecs.getincrementaldecoder(encoding), errors="replace")


# One byte that is no UTF-8, such as a Latin-1 keyboard's "é", would end Textual's thread of input and the screen.
linux_driver.getincrementaldecoder = _lenient_decoder  # type: ignore[attr-defined]


def driver_class() -> type[Driver] | None:
    """Ours; or none, so that Textual takes the one which the environment asks for."""
    return None if constants.DRIVER else TerminalDriver


class TerminalDriver(LinuxDriver):
    """Textual's driver for terminals, continued rightly after a SIGSTOP.

    Textual takes every SIGCONT for the end of its own Ctrl-Z: it starts its threads once more beside those
    that still run, and remembers the raw modes as those to restore at the end.
    """

    _modes: list[Any] | None = None
    _drawn_over = False
    """Whether the first picture is there, and the alternate screen with it: to enter that again would clear it."""

    def __init__(self, app: Any, **options: Any) -> None:
        super().__init__(app, **options)
        # Textual writes to stderr, which may be redirected. Python's own stdout will not do either: if the terminal was
        # closed, its buffer cannot be flushed at the end, and the exit code changes.
        if (out := sys.__stdout__) is not None:
            self._file = open(out.fileno(), "w", encoding=out.encoding, errors=out.errors, closefd=False)  # noqa: SIM115

    def write(self, data: str) -> None:
        """As Textual's; a terminal that takes ASCII only gets nothing else, whatever widget drew it.

        Once the terminal takes nothing more (it was closed), *data* is let go, not waited for.
        """
        if self._drawn_over and data == _ALTERNATE:
            return
        ascii_only = isinstance(self._app, SturdyApp) and self._app.ascii_only
        if self._writer_thread is not None and self._writer_thread.is_alive():
            super().write(to_ascii(data) if ascii_only else data)

    def start_application_mode(self) -> None:
        """As Textual's; the modes it sets are remembered. If it fails, the terminal is given back.

        Raises:
            RuntimeError: the system allows no more threads.
        """
        before = take_over()
        self._drawn_over = before is not None and before.whole
        started = False
        try:
            super().start_application_mode()  # type: ignore[no-untyped-call]
            started = True
        finally:
            self._drawn_over = False
            if before is not None:
                self.attrs_before = before.modes
            if not started:
                self._leave()
        self._modes = self._modes_now()

    def _leave(self) -> None:
        """Give the terminal back after a start that failed half-way: Textual does not."""
        if self._writer_thread is not None and self._writer_thread.is_alive():
            self._writer_thread.stop()
        self._writer_thread = None  # Textual would wait for it, which is an error if it was not started
        self.give_back()

    def _sigcont_application(self, *_: object) -> None:
        if self._must_signal_resume:  # it has stopped itself, for Ctrl-Z
            super()._sigcont_application()
        elif not self._loop.is_closed():
            # The handler does not draw: it may have interrupted a write, and would wait for that write's lock for ever.
            self._loop.call_soon_threadsafe(self._resume)

    def _resume(self) -> None:
        """Draw anew, if somebody has used the terminal meanwhile."""
        now = self._modes_now()
        if now is None or now == self._modes or self._writer_thread is None:
            return
        self.suspend_application_mode()
        super()._sigcont_application()

    def alert(self, title: str, text: str) -> None:
        """Ring the bell, and notify by OSC 9; by OSC 777 where the terminal is known to have only that.

        *title* and *text* are safe. Both sequences end at a control character, and 777 separates by semicolons.
        """
        parts = title.replace(";", ","), text.replace(";", ",")
        if os.environ.get("VTE_VERSION") or os.environ.get("TERM", "").startswith(("rxvt", "foot")):
            self.write(f"\a\x1b]777;notify;{parts[0]};{parts[1]}\a")
        else:
            self.write(f"\a\x1b]9;{parts[0]}: {parts[1]}\a")
        self.flush()

    def give_back(self) -> None:
        """Leave the terminal as it was, at once and with no thread's help; what it does not take now is lost."""
        try:
            os.set_blocking(self.fileno, False)
            os.write(self.fileno, _GIVEN_BACK)
            os.set_blocking(self.fileno, True)
        except OSError:
            pass  # there is no terminal any more, or it is stopped
        if self.attrs_before is not None:
            try:
                termios.tcsetattr(self.fileno, termios.TCSANOW, self.attrs_before)
            except termios.error:
                pass

    def _modes_now(self) -> list[Any] | None:
        try:
            return termios.tcgetattr(self.fileno)
        except termios.error:
            return None  # no terminal, or no longer
