"""``tfmemtop replay FILE``: the screens again, from a recording."""

import os
from pathlib import Path

from tfmemtop.commands.arguments import Arguments
from tfmemtop.commands.saying import say
from tfmemtop.commands.screen import terminal_size
from tfmemtop.options import Refusal
from tfmemtop.recording import RecordingError, read


def run(arguments: Arguments) -> int:
    """Show the recording until the user has seen enough; 0.

    Raises:
        Refusal: it cannot be read, or there is no terminal to show it on.
    """
    path = Path(arguments.target or "")
    try:
        read(path)  # before anything is drawn, and before the import that takes longest
        terminal_size()
        from tfmemtop.ui.main import run_replay

        outcome = run_replay(path, arguments.ui_options(dict(os.environ)))
    except RecordingError as error:
        raise Refusal(str(error)) from error
    if outcome.trouble:
        say(f"the screen has failed: {outcome.trouble}")
    return outcome.exit_code
