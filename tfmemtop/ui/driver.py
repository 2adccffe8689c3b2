"""Textual's driver for terminals, corrected: a stop from outside duplicates no threads and loses no terminal modes."""

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
        """Write *data* as Textual does; if the terminal takes only ASCII, convert it, whatever widget drew it.

        If the writer thread has ended, since the terminal was closed, *data* is dropped: the thread's queue would
        block once it is full.
        """
        ascii_only = getattr(self._app, "ascii_only", False)
        if self._writer_thread is not None and self._writer_thread.is_alive():
            super().write(to_ascii(data) if ascii_only else data)

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
