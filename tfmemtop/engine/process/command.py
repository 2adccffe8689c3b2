"""The script's command: whether it can be started, and how its text is shown."""

import os
import shutil
from pathlib import Path

from tfmemtop.engine.process.unstarted import StartError, Unstarted, Why


def readable(text: str) -> str:
    """*text*, as :func:`os.fsdecode` gives it, as valid UTF-8: other bytes are written as ``\\xff``."""
    return os.fsencode(text).decode("utf-8", "backslashreplace")


def check_command(argv: list[str], cwd: str, environment: dict[str, str]) -> None:
    """Check all that can be known of a command before it is started.

    Raises:
        StartError: it cannot be started.
    """
    if not argv or not argv[0]:
        raise StartError(Unstarted(Why.NO_COMMAND))
    name = argv[0]
    if "/" not in name:
        if shutil.which(name, path=environment.get("PATH", os.defpath)) is None:
            raise StartError(Unstarted(Why.NOT_FOUND, name))
        return
    path = Path(cwd, name)
    if not Path(cwd).is_dir():
        return  # it has been removed and holds nothing; the kernel looks for what an absolute path names
    if not path.exists():
        raise StartError(Unstarted(Why.NO_FILE, name))
    if path.is_dir():
        raise StartError(Unstarted(Why.IS_DIRECTORY, name))
    if not os.access(path, os.X_OK):
        raise StartError(Unstarted(Why.NOT_EXECUTABLE, name))


def start_error(name: str, error: OSError) -> StartError:
    """What *error* means of the start of a command that :func:`check_command` found in order."""
    if isinstance(error, FileNotFoundError):
        # The file was there: so its interpreter is missing.
        return StartError(Unstarted(Why.NO_INTERPRETER, name))
    return StartError(Unstarted(Why.SYSTEM, name, error.strerror or str(error)))
