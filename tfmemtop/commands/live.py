"""``tfmemtop -- COMMAND…``, ``tfmemtop`` and ``tfmemtop demo``: an engine, and the screen onto it."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path

from tfmemtop.commands.arguments import Arguments
from tfmemtop.commands.launching import make_launch
from tfmemtop.commands.saying import say
from tfmemtop.commands.screen import script_terminal_size
from tfmemtop.engine.launch import Launched, start
from tfmemtop.options import Refusal


def run(arguments: Arguments) -> int:
    """Start the engine, show the screen, and give the exit code its user left it with.

    Raises:
        Refusal: what was asked for cannot be started or shown.
    """
    if arguments.subcommand == "demo" and find_spec("tensorflow") is None:
        raise Refusal("the demo needs TensorFlow: pip install 'tfmemtop[demo]'")
    launch = make_launch(arguments, *script_terminal_size())
    return show(lambda: start(launch), arguments)


def show(answer: Callable[[], Launched], arguments: Arguments) -> int:
    """Show the screen onto the session that *answer* starts or names; its exit code.

    Raises:
        Refusal: the session could not be started.
    """
    with ThreadPoolExecutor(1) as other:
        coming = other.submit(answer)
        launched: Launched | None = None
        try:
            # The script is starting by now; the slowest import of all takes place meanwhile.
            from tfmemtop.ui.main import run_live

            launched = coming.result()
            if launched.error is not None:
                raise Refusal(launched.error, launched.exit_code or 1)
            outcome = run_live(Path(launched.socket), arguments.ui_options(dict(os.environ)))
        except Refusal:
            raise
        except BaseException as error:
            # Whatever it is: the script runs by now, and is not to run unseen.
            launched = launched or coming.result()
            if launched.error is None:
                _say_it_goes_on(launched)
            if isinstance(error, OSError):
                raise Refusal(f"the engine of {launched.id} cannot be reached: {error.strerror or error}", 1) from error
            raise
    if outcome.trouble:
        say(f"the screen has failed: {outcome.trouble}")
    if outcome.left_running:
        _say_it_goes_on(launched)
    return outcome.exit_code


def _say_it_goes_on(launched: Launched) -> None:
    where = f"output in {launched.output_path}; " if launched.output_path else ""
    say(f"still running as {launched.id}; {where}tfmemtop attach {launched.id} brings the screen back")
