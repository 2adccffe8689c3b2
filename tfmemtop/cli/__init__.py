"""One file for each command of ``tfmemtop``. Each has:

- a docstring, which is the command's help: the first line is listed by ``tfmemtop --help``, the lines ``usage:`` and
  ``example:`` are used in refusals as well,
- ``ARGUMENTS``, the class that declares the command's options, if it has any, and
- ``run(arguments)``, which does the work and returns the exit code.

To add a command, write its file and add its name to :data:`NAMES`. The file ``live.py`` is for ``tfmemtop`` without the
name of a command.
"""

from tfmemtop.failure import Refusal as Refusal

NAMES = (
    "demo",
    "record",
    "attach",
    "kernel",
    "ls",
    "replay",
    "why",
    "holders",
    "report",
    "compare",
    "whatif",
    "cluster",
    "convert",
    "dashboard",
    "fit",
    "doctor",
    "completion",
    "help",
)
"""The commands in the order of the help."""
