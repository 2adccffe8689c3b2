"""Why a script or its engine could not be started, as values; ``findings/starting.py`` has the texts for users."""

from enum import Enum

import msgspec

from tfmemtop.bounds import Name, Number, Size, Text
from tfmemtop.limits import HostOwner


class Why(Enum):
    """The reason. In brackets: the fields of :class:`Unstarted` that belong to it."""

    NO_COMMAND = "no_command"
    NOT_FOUND = "not_found"  # the command is not in PATH (name)
    NO_FILE = "no_file"  # (name)
    IS_DIRECTORY = "is_directory"  # (name)
    NOT_EXECUTABLE = "not_executable"  # (name)
    NO_INTERPRETER = "no_interpreter"  # the one that the script's first line names is missing (name)
    SYSTEM = "system"  # the system refuses to start it (name, detail)
    SPAWN = "spawn"  # Python cannot start it (name, detail)
    NO_PROCESS = "no_process"  # there is no such process to read from outside (name: its number)
    DRIVER_SILENT = "driver_silent"  # the driver does not answer, so that the settings cannot be checked
    METRICS_ADDRESS = "metrics_address"  # it is taken, or cannot be used (name: the address, detail)
    METRICS_FILE = "metrics_file"  # it cannot be written (name: its path, detail)
    METRICS_NO_FILE = "metrics_no_file"  # the path is a device or a folder (name: the path)
    TOO_MUCH = "too_much"  # a setting needs more memory than there is (name: as typed, size, whole, owner or index)
    NO_SUCH_GPU = "no_such_gpu"  # a setting needs a GPU that this machine lacks (index, count: how many it has)
    RECORDING = "recording"  # it cannot be written (name: its path, detail, count, of)
    REFUSED = "refused"  # the settings or a file cannot be used (detail)
    ENGINE_FAILED = "engine_failed"  # (detail, which is empty if the engine printed nothing; output_path)


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
    Why.TOO_MUCH: 2,
    Why.NO_SUCH_GPU: 2,
    Why.RECORDING: 2,
    Why.REFUSED: 2,
    Why.ENGINE_FAILED: 1,
}


class Unstarted(msgspec.Struct, frozen=True):
    """A start that failed. ``name`` is usually the command as the user typed it; ``detail`` is the system's message.

    ``output_path`` is where the command's output is kept, if the command may run nevertheless. The other fields are as
    in :class:`tfmemtop.limits.TooMuch`, :class:`tfmemtop.settings.NoSuchGpu` and
    :class:`tfmemtop.events.recording.errors.RecordingError`, whose ``trouble`` is in ``of``.
    """

    why: Why
    name: Text = ""
    detail: Text = ""
    output_path: Text | None = None
    size: Size | None = None
    whole: Size | None = None
    owner: HostOwner | None = None
    index: Number | None = None
    count: Size | None = None
    of: Name = ""

    @property
    def exit_code(self) -> int:
        """The exit code: a shell's code for commands, 2 for a mistake in the user's request, 1 for all else."""
        return _EXIT_CODES[self.why]


class StartError(Exception):
    """The script could not be started, for the reason *unstarted*."""

    def __init__(self, unstarted: Unstarted) -> None:
        super().__init__(unstarted)
        self.unstarted = unstarted
