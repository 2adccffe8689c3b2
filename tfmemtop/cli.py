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
from tfmemtop.commands.arguments import Arguments, parse, parser
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
    "once": "tfmemtop.commands.once",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``tfmemtop`` with *argv* (the process's own without it) and return its exit code."""
    if sys.stderr is None:  # closed; print would take stdout instead, which is the script's
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115, PTH123 (as long as the process)
    try:
        code = _main(sys.argv[1:] if argv is None else argv)
        if sys.stdout is not None:
            sys.stdout.flush()
        return code
    except Refusal as refusal:
        # One line, whatever a file's name or an argument may hold.
        print("tfmemtop:", " ".join(str(refusal).splitlines()), file=sys.stderr)
        return refusal.exit_code
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        _drop_stdout()
        return 128 + signal.SIGPIPE  # who read us has enough
    except OSError as error:
        _drop_stdout()
        about = f"{error.filename}: " if error.filename else ""
        print(f"tfmemtop: {about}{error.strerror or error}", file=sys.stderr)
        return 1


def _drop_stdout() -> None:
    """Let go of what cannot be written, which the interpreter would else try again at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def _main(argv: Sequence[str]) -> int:
    arguments = parse(argv)
    if arguments == "help":
        print(parser().format_help(), end="")
        return 0
    if arguments == "version":
        print("tfmemtop", __version__)
        return 0
    run: Callable[[Arguments], int] = import_module(_MODULES[arguments.subcommand]).run
    return run(arguments)


if __name__ == "__main__":
    sys.exit(main())
