"""What the command line and the screen tell each other."""

from dataclasses import dataclass


@dataclass(frozen=True)
class UiOptions:
    """How the screen shall look and what it may do.

    ``ascii``: draw with ASCII only. ``readonly``: nothing on the screen may change the script or
    any process. ``color``: false where ``NO_COLOR`` asks for none.
    """

    ascii: bool = False
    readonly: bool = False
    color: bool = True


@dataclass(frozen=True)
class Outcome:
    """How the screen was left: tfmemtop's exit code, and whether the script goes on without it.

    ``trouble`` says in one line what went wrong, if the screen ended for that.
    """

    exit_code: int
    left_running: bool = False
    trouble: str = ""


class Refusal(Exception):
    """What was asked for cannot be done.

    Its message is one line for the user, who sees it after ``tfmemtop:`` on stderr;
    ``exit_code`` is what tfmemtop then ends with.
    """

    def __init__(self, message: str, exit_code: int = 2) -> None:
        super().__init__(message)
        self.exit_code = exit_code
