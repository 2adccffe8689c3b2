"""Show the screens of a recording: pause, step, seek, change the speed.

usage: tfmemtop replay [FILE] [OPTIONS]
example: tfmemtop replay run.jsonl

FILE is a recording, or the name of a session, see tfmemtop ls. Without FILE it is the last session. The keys are in
tfmemtop help keys.
"""

import os

from tfmemtop.cli.arguments import ScreenArguments
from tfmemtop.cli.launch import terminal_size
from tfmemtop.cli.output import say_trouble
from tfmemtop.cli.parser import argument
from tfmemtop.cli.sessions import recording_path
from tfmemtop.events.recording import read


class ReplayArguments(ScreenArguments):
    """``file`` is the recording."""

    file: str | None = argument("FILE", "a recording or a session")


ARGUMENTS = ReplayArguments


def run(arguments: ReplayArguments) -> int:
    """Show the recording until the user leaves the screen; return the screen's exit code.

    Raises:
        Refusal: the recording cannot be read, or there is no terminal to show it on.
    """
    path = recording_path(arguments.file)
    read(path)  # fails early: before anything is drawn, and before the import that takes longest
    terminal_size()
    from tfmemtop.ui.main import run_replay

    outcome = run_replay(path, arguments.ui_options(dict(os.environ)))
    say_trouble(outcome.trouble)
    return outcome.exit_code
