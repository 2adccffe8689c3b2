"""Begins the first picture, and ends it when the screen takes over or before other text is printed on the terminal.

This module runs at the very start of the command, before packages can be found. It imports only what costs next to
nothing.
"""

import os
import signal
import termios
import time
from collections.abc import Mapping
from types import FrameType
from typing import Any, NamedTuple

DRIVER = "/dev/nvidiactl"
"""A device file that exists if NVIDIA's driver is there."""

SMALLEST = (40, 12)
"""Columns and rows of the smallest terminal, as in ``commands/screen.py``."""

_ENDS_S, _LOOK_S = 1.0, 0.005
_RESTORED = b"\x1b[?1049l\x1b[?25h"
_NOTHING = 3  # the painter's exit code

_painter = 0  # the PID of the process that draws; 0 if there is none
_modes: list[Any] = []  # the terminal's modes before the picture


class Drawn(NamedTuple):
    """A picture that was drawn. ``modes`` are the terminal's before it; ``whole`` is false if a part may be missing."""

    modes: list[Any]
    whole: bool


def begin(arguments: list[str]) -> None:
    """Start to draw the first picture, if *arguments* are those of the GPUs' screen and the terminal can show it."""
    global _painter, _modes
    if arguments or not _can_be_drawn(os.environ):
        return
    try:
        _modes = termios.tcgetattr(0)
        _painter = os.fork()
    except (OSError, termios.error):
        return
    if _painter == 0:
        _paint(os.getppid())
    # Also for Ctrl-C: a KeyboardInterrupt while a C library is being imported can make that library crash.
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGINT):
        if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
            signal.signal(number, _end_for)


def take_over() -> Drawn | None:
    """Return the picture, for the screen to draw over it; ``None`` if there is none."""
    global _painter
    drawn, _painter = _finished(), 0
    return drawn


def end() -> None:
    """Restore the terminal as it was before the picture. Do nothing if there is no picture."""
    global _painter
    if _finished() is not None:
        try:
            os.write(2, _RESTORED)
            termios.tcsetattr(0, termios.TCSANOW, _modes)
        except (OSError, termios.error):
            pass  # the terminal has been closed
    _painter = 0  # not earlier: a second signal may interrupt this, and must then restore the terminal


def _can_be_drawn(environment: Mapping[str, str]) -> bool:
    """Return whether the screen will be shown, and will look like the picture."""
    if not os.path.exists(DRIVER):  # noqa: PTH110 (pathlib takes longer to import than all of this)
        return False
    if environment.get("TERM", "dumb") in ("", "dumb") or environment.get("NO_COLOR"):
        return False
    if any(environment.get(name) for name in ("TEXTUAL_DRIVER", "TEXTUAL_COLOR_SYSTEM", "TEXTUAL_FILTERS")):
        return False
    charset = next((environment[name] for name in ("LC_ALL", "LC_CTYPE", "LANG") if environment.get(name)), "utf8")
    if "utf8" not in charset.lower().replace("-", ""):
        return False
    if signal.getsignal(signal.SIGCHLD) == signal.SIG_IGN:  # the painter's exit code could not be read
        return False
    try:
        if len({os.fstat(number).st_rdev for number in (0, 1, 2)}) > 1 or not os.isatty(0):
            return False
        size = os.get_terminal_size(1)
        if os.tcgetpgrp(0) != os.getpgrp() or size.columns < SMALLEST[0] or size.lines < SMALLEST[1]:
            return False
    except OSError:
        return False
    return not _looks_otherwise(environment)


def _looks_otherwise(environment: Mapping[str, str]) -> bool:
    """Return whether the user has a configuration file, or has chosen another scale or order the last time."""
    home = environment.get("HOME", "")
    kept = environment.get("XDG_CONFIG_HOME", "")
    if os.path.exists(f"{kept if kept.startswith('/') else home + '/.config'}/tfmemtop/config.toml"):  # noqa: PTH110
        return True
    state = environment.get("XDG_STATE_HOME", "")
    path = f"{state if state.startswith('/') else home + '/.local/state'}/tfmemtop/choices.json"
    try:
        with open(path, "rb") as file:  # noqa: PTH123
            chosen = file.read(4096).replace(b" ", b"")
    except OSError:
        return False
    return not all(part in chosen for part in (b'"scale":"auto"', b'"sort":"GPU"', b'"inverted":false'))


def _paint(parent: int) -> None:
    """Draw in this process, and exit with code 0 if the picture is there, 3 if nothing of it is, else 1."""
    code = 1
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the command handles it, and ends this process
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
            signal.signal(number, signal.SIG_DFL)
        from tfmemtop.first.paint import paint

        code = 0 if paint(parent) else _NOTHING
    except Exception:  # the terminal takes no more output for now
        code = 1
    finally:
        os._exit(code)


def _finished() -> Drawn | None:
    """End the painter if it still runs. Return what it has drawn; ``None`` if it has drawn nothing."""
    if not _painter:
        return None
    until = time.monotonic() + _ENDS_S
    try:
        # The painter blocks this signal while it draws, so that it draws the whole picture or nothing.
        os.kill(_painter, signal.SIGTERM)
        while True:
            found, status = os.waitpid(_painter, os.WNOHANG)
            if found:
                break
            if time.monotonic() > until:  # the terminal takes no output, or the driver hangs
                os.kill(_painter, signal.SIGKILL)
                return Drawn(_modes, whole=False)
            time.sleep(_LOOK_S)
    except (ProcessLookupError, ChildProcessError):  # an earlier call, which was interrupted, has already waited for it
        return Drawn(_modes, whole=False)
    code = os.waitstatus_to_exitcode(status)
    return None if code in (_NOTHING, -signal.SIGTERM) else Drawn(_modes, whole=code == 0)


def _end_for(number: int, _: FrameType | None) -> None:
    end()
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    os._exit(128 + number)  # the first process of a container is not ended by its own signal


__all__ = ["Drawn", "begin", "end", "take_over"]
