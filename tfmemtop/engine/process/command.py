"""Checks whether the script's command can be started, and makes its text fit to be shown."""

import os
import shutil
from pathlib import Path

from tfmemtop.events.unstarted import StartError, Unstarted, Why


def readable(text: str) -> str:
    """Return *text*, which :func:`os.fsdecode` made, as valid UTF-8. Other bytes are written as ``\\xff``."""
    return os.fsencode(text).decode("utf-8", "backslashreplace")


def check_command(argv: list[str], cwd: str, environment: dict[str, str]) -> None:
    """Check everything about a command that can be checked before it is started.

    Raises:
        StartError: the command cannot be started.
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
        return  # the folder has been removed and is empty; for an absolute path, the exec itself reports errors
    if not path.exists():
        raise StartError(Unstarted(Why.NO_FILE, name))
    if path.is_dir():
        raise StartError(Unstarted(Why.IS_DIRECTORY, name))
    if not os.access(path, os.X_OK):
        raise StartError(Unstarted(Why.NOT_EXECUTABLE, name))


def start_error(name: str, error: OSError) -> StartError:
    """Return what *error* means when a command that passed :func:`check_command` was started."""
    if isinstance(error, FileNotFoundError):
        # The file exists, so its interpreter is missing.
        return StartError(Unstarted(Why.NO_INTERPRETER, name))
    return StartError(Unstarted(Why.SYSTEM, name, error.strerror or str(error)))
