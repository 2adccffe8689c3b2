"""One file for each command of ``tfmemtop``. Each has:

- a docstring, which is the command's help (its lines ``usage:`` and ``example:`` are used in refusals as well),
- ``declare(parser)``, which adds the command's options, and
- ``run(arguments)``, which does the work and returns the exit code.

To add a command, write its file and add its name to :data:`NAMES`.
"""

DEFAULT = "live"
"""The command that runs if none is named: ``tfmemtop -- COMMAND…`` and ``tfmemtop``."""

ONCE = "--once"
"""The command ``once`` as the user types it."""

NAMES = (
    DEFAULT,
    "demo",
    "record",
    "attach",
    "kernel",
    "ls",
    "replay",
    "why",
    "holders",
    "compare",
    "whatif",
    "cluster",
    "convert",
    "dashboard",
    "fit",
    "doctor",
    "once",
    "completion",
    "help",
)
"""The commands in the order of the help."""
