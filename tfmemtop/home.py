"""The user's folders. ``pyproject.toml`` forbids ``Path.home`` elsewhere."""

import errno
import os
from pathlib import Path


def user_folder(variable: str, below_home: str) -> Path:
    """Return the folder that *variable* names, such as ``XDG_CACHE_HOME``; without it, the folder *below_home*."""
    given = os.environ.get(variable) or ""
    return Path(given) if given.startswith("/") else _home() / below_home  # the XDG standard ignores relative paths


def _home() -> Path:
    """Return the user's home folder; ``/``, as in most container runtimes, if it is not known.

    It is not known if ``HOME`` is not set and the system has no entry for the user, such as the ``runAsUser`` of a pod.
    """
    try:
        return Path.home()  # noqa: TID251 (here only)
    except RuntimeError:
        return Path("/")


def output_folder() -> Path:
    """Return the folder in which recordings and scripts' outputs are kept. Make it if it is missing.

    Raises:
        OSError: the folder cannot be made.
    """
    folder = user_folder("XDG_STATE_HOME", ".local/state") / "tfmemtop"
    if not folder.is_dir():  # mkdir would wait for a file system that answers no writer, though the folder is there
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder


def writable_output_folder() -> Path:
    """Return the same folder for a file that is to be written there.

    Raises:
        OSError: the folder cannot be made, or this user may not write to it.
    """
    folder = output_folder()
    if not os.access(folder, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(folder))
    return folder


def jupyter_folder() -> Path:
    """Return the folder of Jupyter's files for this user."""
    return Path(os.environ.get("JUPYTER_DATA_DIR") or user_folder("XDG_DATA_HOME", ".local/share") / "jupyter")
