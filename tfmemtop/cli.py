"""The ``tfmemtop`` command: reads the command line, does what it says, gives the exit code.

What is slow to import is imported by the one thing that needs it, so that ``--help``,
``--version`` and ``--once`` start without Textual.
"""

import os
import signal
import sys
from collections.abc import Callable, Sequence
from importlib import import_module

from tfmemtop import __version__
from tfmemtop.charset import fit_streams
from tfmemtop.commands.arguments import Arguments, parse, parser
from tfmemtop.commands.saying import let_go_of_stdout, open_all_three, say, tell
from tfmemtop.failure import describe
from tfmemtop.options import Refusal

INTERRUPTED = 130

_MODULES = {
    "live": "tfmemtop.commands.live",
    "demo": "tfmemtop.commands.live",
    "record": "tfmemtop.commands.record",
    "attach": "tfmemtop.commands.attach",
    "replay": "tfmemtop.commands.replay",
    "why": "tfmemtop.commands.why",
    "compare": "tfmemtop.commands.compare",
    "fit": "tfmemtop.commands.fit",
    "doctor": "tfmemtop.commands.doctor",
    "once": "tfmemtop.commands.once",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``tfmemtop`` with *argv* (the process's own without it) and return its exit code."""
    open_all_three()
    fit_streams(os.environ)
    try:
        return _main(sys.argv[1:] if argv is None else argv)
    except Refusal as refusal:
        say(str(refusal))
        return refusal.exit_code
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        let_go_of_stdout()
        return 128 + signal.SIGPIPE  # who read us has enough
    except OSError as error:
        let_go_of_stdout()
        about = f"{error.filename}: " if error.filename else ""
        say(f"{about}{error.strerror or error}")
        return 1
    except Exception as error:
        let_go_of_stdout()
        say(f"{describe(error)}: tfmemtop has failed; this is an error of its own")
        return 1


def _main(argv: Sequence[str]) -> int:
    arguments = parse(argv)
    if arguments == "help":
        tell(parser().format_help().splitlines())
        return 0
    if arguments == "version":
        tell([f"tfmemtop {__version__}"])
        return 0
    run: Callable[[Arguments], int] = import_module(_MODULES[arguments.subcommand]).run
    return run(arguments)


if __name__ == "__main__":
    sys.exit(main())
