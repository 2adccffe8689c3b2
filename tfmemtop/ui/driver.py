"""The terminal's driver: Textual's own, but a stop from outside costs neither threads nor the terminal's modes."""

import termios
from typing import Any

from textual import constants
from textual.driver import Driver
from textual.drivers.linux_driver import LinuxDriver


def driver_class() -> type[Driver] | None:
    """Ours; or none, so that Textual takes the one which the environment asks for."""
    return None if constants.DRIVER else TerminalDriver


class TerminalDriver(LinuxDriver):
    """Textual's driver for terminals, continued rightly after a SIGSTOP.

    Textual takes every SIGCONT for the end of its own Ctrl-Z: it starts its threads once more beside those
    that still run, and remembers the raw modes as those to restore at the end.
    """

    _modes: list[Any] | None = None

    def start_application_mode(self) -> None:
        """As Textual's; the modes it sets are remembered."""
        super().start_application_mode()  # type: ignore[no-untyped-call]
        self._modes = self._modes_now()

    def _sigcont_application(self, *_: object) -> None:
        if not self._must_signal_resume:  # else it has stopped itself, for Ctrl-Z
            if self._modes_now() == self._modes:
                return  # nobody has used the terminal meanwhile
            self.suspend_application_mode()
        super()._sigcont_application()

    def _modes_now(self) -> list[Any] | None:
        try:
            return termios.tcgetattr(self.fileno)
        except termios.error:
            return None  # no terminal, or no longer
