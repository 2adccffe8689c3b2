"""Why a script or its engine could not be started, as facts; ``words/starting.py`` has the words."""

from enum import Enum

import msgspec


class Why(Enum):
    """What stood in the way; in brackets, which fields of :class:`Unstarted` belong to it."""

    NO_COMMAND = "no_command"
    NOT_FOUND = "not_found"  # in PATH (name)
    NO_FILE = "no_file"  # (name)
    IS_DIRECTORY = "is_directory"  # (name)
    NOT_EXECUTABLE = "not_executable"  # (name)
    NO_INTERPRETER = "no_interpreter"  # the one that its first line names (name)
    SYSTEM = "system"  # the kernel refuses (name, detail)
    SPAWN = "spawn"  # Python cannot start it (name, detail)
    NO_PROCESS = "no_process"  # that could be read from outside (name: its number)
    DRIVER_SILENT = "driver_silent"  # so that the settings cannot be checked
    METRICS_ADDRESS = "metrics_address"  # is taken, or cannot be had (name: the address, detail)
    METRICS_FILE = "metrics_file"  # cannot be written (name: its path, detail)
    METRICS_NO_FILE = "metrics_no_file"  # but a device or a folder (name: its path)
    REFUSED = "refused"  # settings or a recording (detail)
    ENGINE_FAILED = "engine_failed"  # (detail, which is empty if it said nothing; output_path)


_EXIT_CODES = {
    Why.NO_COMMAND: 2,
    Why.NOT_FOUND: 127,
    Why.NO_FILE: 127,
    Why.IS_DIRECTORY: 126,
    Why.NOT_EXECUTABLE: 126,
    Why.NO_INTERPRETER: 127,
    Why.SYSTEM: 126,
    Why.SPAWN: 126,
    Why.NO_PROCESS: 1,
    Why.DRIVER_SILENT: 1,
    Why.METRICS_ADDRESS: 2,
    Why.METRICS_FILE: 2,
    Why.METRICS_NO_FILE: 2,
    Why.REFUSED: 2,
    Why.ENGINE_FAILED: 1,
}


class Unstarted(msgspec.Struct, frozen=True):
    """A start that failed: ``name`` as the user typed the command, ``detail`` what others said of it.

    ``output_path`` is where the command's output is kept, if it may run nevertheless.
    """

    why: Why
    name: str = ""
    detail: str = ""
    output_path: str | None = None

    @property
    def exit_code(self) -> int:
        """As a shell's for a command, 2 for what the user has asked for wrongly, 1 for the rest."""
        return _EXIT_CODES[self.why]


class StartError(Exception):
    """The script could not be started, for the reason *unstarted*."""

    def __init__(self, unstarted: Unstarted) -> None:
        super().__init__(unstarted)
        self.unstarted = unstarted
