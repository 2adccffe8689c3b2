"""One file for each command of ``tfmemtop``. Each has:

- a docstring, which is the command's help: the first line is listed by ``tfmemtop --help``, the lines ``usage:`` and
  ``example:`` are used in refusals as well,
- ``ARGUMENTS``, the class that declares the command's options, if it has any, and
- ``run(arguments)``, which does the work and returns the exit code.

To add a command, write its file and add its name to :data:`NAMES`. The file ``live.py`` is for ``tfmemtop`` without the
name of a command.
"""

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


class Refusal(Exception):
    """A command cannot be carried out.

    The message is one line for the user, printed to stderr after ``tfmemtop:``. ``exit_code`` is the exit code.
    """

    def __init__(self, message: str, exit_code: int = 2) -> None:
        super().__init__(message)
        self.exit_code = exit_code
