"""The ``tfmemtop`` command: reads the command line, runs the command that it names, returns the exit code.

Each command's file imports what it needs. So ``--help``, ``--version`` and ``--once`` start without Textual.
"""

import os
import signal
import sys
from collections.abc import Sequence

from tfmemtop.charset import fit_streams
from tfmemtop.cli import Refusal
from tfmemtop.cli.output import discard_stdout, open_standard_streams, say
from tfmemtop.cli.parser import parse
from tfmemtop.exit_codes import INTERRUPTED, SIGNALLED
from tfmemtop.failure import describe, reason
from tfmemtop.uncollected import uncollected


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``tfmemtop`` with *argv*, by default the process's own, and return the exit code."""
    open_standard_streams()
    fit_streams(os.environ)
    try:
        with uncollected():
            call = parse(sys.argv[1:] if argv is None else argv)
        return call.run(call.arguments)
    except Refusal as refusal:
        say(str(refusal))
        return refusal.exit_code
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else 0
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        discard_stdout()
        return SIGNALLED + signal.SIGPIPE  # the reader of our output has closed the pipe
    except OSError as error:
        discard_stdout()
        say(reason(error))
        return 1
    except Exception as error:
        discard_stdout()
        say(f"{describe(error)}: tfmemtop has failed; this is an error in tfmemtop itself")
        return 1


if __name__ == "__main__":
    sys.exit(main())
