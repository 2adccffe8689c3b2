"""The screen: Textual's app and its widgets, which draw the state.

Here are the values that the command line passes to the screen, and those that the screen returns to it.
"""

from collections.abc import Callable
from pathlib import Path

import msgspec


class UiOptions(msgspec.Struct, frozen=True, dict=True):
    """How the screen looks and what it may do.

    ``ascii``: draw with ASCII only. ``readonly``: no key may change the script or any process. ``color``: false if
    ``NO_COLOR`` is set. ``notify``: ring the bell and notify when a run ends or memory runs out.
    ``choices``: the file that stores the choices that the user made on the screen. ``outside``: tfmemtop did not start
    the process that is shown, and only reads it. ``successor`` takes the name of a Jupyter kernel's session and
    returns the name of the session that is the kernel's next start. ``recording`` takes the name of a session and
    returns the recording that is kept of it. Both return ``None`` if there is none. ``hint`` is what the screen tells
    the user first; empty for nothing.
    """

    ascii: bool = False
    readonly: bool = False
    color: bool = True
    notify: bool = True
    choices: Path | None = None
    outside: bool = False
    successor: Callable[[str], str | None] | None = None
    recording: Callable[[str], Path | None] | None = None
    hint: str = ""


class ScreenOutcome(msgspec.Struct, frozen=True, dict=True):
    """How the screen ended: tfmemtop's exit code, and whether the script goes on without a screen.

    ``trouble`` is the error in one line, if the screen ended because of one. ``summary``: lines about the
    newest run. ``follow`` is the name of the session to show next; empty if there is none.
    """

    exit_code: int
    left_running: bool = False
    trouble: str = ""
    summary: tuple[str, ...] = ()
    follow: str = ""
