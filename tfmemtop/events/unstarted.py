"""Why a script or its engine could not be started."""

import msgspec

from tfmemtop.bounds import Text
from tfmemtop.events.base import DescribedEnum


class Why(DescribedEnum):
    """The reason. In curly brackets: the fields of :class:`Unstarted` that belong to it."""

    NO_COMMAND = "no_command", "no command to start"
    NOT_FOUND = "not_found", "{name}: command not found"
    NO_FILE = "no_file", "{name}: no such file"
    IS_DIRECTORY = "is_directory", "{name}: is a directory"
    NOT_EXECUTABLE = "not_executable", "{name}: not executable"
    NO_INTERPRETER = "no_interpreter", "{name}: the interpreter named in its first line is not there"
    SYSTEM = "system", "{name}: {detail}"
    SPAWN = "spawn", "{name}: cannot be started: {detail}"
    NO_PROCESS = "no_process", "there is no process {name}"
    DRIVER_SILENT = "driver_silent", "the NVIDIA driver does not answer: the settings cannot be checked"
    METRICS_ADDRESS = "metrics_address", "no metrics at {name}: {detail}"
    METRICS_FILE = "metrics_file", "no metrics in {name}: {detail}"
    METRICS_NO_FILE = "metrics_no_file", "no metrics in {name}: it is not a regular file"
    REFUSED = "refused", "{detail}"  # the settings or a file cannot be used
    ENGINE_FAILED = "engine_failed", "the engine cannot be started: {detail}"


_EXIT_CODES = {
    **dict.fromkeys((Why.NOT_FOUND, Why.NO_FILE, Why.NO_INTERPRETER), 127),
    **dict.fromkeys((Why.IS_DIRECTORY, Why.NOT_EXECUTABLE, Why.SYSTEM, Why.SPAWN), 126),
    **dict.fromkeys((Why.NO_PROCESS, Why.DRIVER_SILENT, Why.ENGINE_FAILED), 1),
}
_MISTAKE = 2


class Unstarted(msgspec.Struct, frozen=True):
    """A start that failed. ``name`` is usually the command as the user typed it; ``detail`` is the system's message."""

    why: Why
    name: Text = ""
    detail: Text = ""

    @property
    def text(self) -> str:
        """Why the script was not started, as one line without a full stop. It contains text from outside."""
        return self.why.text.format(name=self.name, detail=self.detail or "it ended")

    @property
    def exit_code(self) -> int:
        """The exit code: a shell's code for commands, 2 for a mistake in the user's request, 1 for all else."""
        return _EXIT_CODES.get(self.why, _MISTAKE)


class StartError(Exception):
    """The script could not be started, for the reason *unstarted*."""

    def __init__(self, unstarted: Unstarted) -> None:
        super().__init__(unstarted)
        self.unstarted = unstarted
