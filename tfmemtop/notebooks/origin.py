"""The origin of a kernel: the key that all its starts share, and its notebook, if that can be found."""

import re
from collections.abc import Mapping, Sequence
from pathlib import PurePath

_VISUAL_STUDIO_CODE = re.compile(r"kernel-v\d\S*\.json")
_ENDING = ".ipynb"


def shared_by_starts(connection: str, command: Sequence[str], folder: str, parent: tuple[int, int]) -> str:
    """Return the key that is the same for all starts of one kernel. It identifies the kernel's next start.

    The process that restarts a kernel is the one that has started it: the *parent*, given by its process id and the
    time of its start. Jupyter restarts a kernel with the same *connection* file; another Jupyter may use that file's
    name again, so the parent is part of the key, too. VS Code makes a new connection file for each start, and gives no
    hint of the notebook. There the parent is the window, and the key contains the *command* without that file, and the
    working *folder*.
    """
    apart = starts_are_told_apart(connection)
    told = [connection] if apart else [*(word for word in command if connection not in word), folder]
    return "\0".join([*told, *map(str, parent)])


def starts_are_told_apart(connection: str) -> bool:
    """Return whether the key of :func:`shared_by_starts` never confuses two notebooks: not if VS Code starts them."""
    return not _VISUAL_STUDIO_CODE.fullmatch(PurePath(connection).name)


def notebook(environment: Mapping[str, str], parent: Sequence[str]) -> str | None:
    """Return the name of the notebook's file; ``None`` if it is not known.

    Jupyter's server sets a variable in the *environment*. ``jupyter execute`` and papermill have the name in their
    command line, which is that of the kernel's *parent*. papermill names first the notebook that it reads, then the one
    that it writes.
    """
    if said := environment.get("JPY_SESSION_NAME"):
        return PurePath(said).name or None
    named = [PurePath(word).name for word in parent if word.endswith(_ENDING)]
    runs_one = len(named) == 1 or any(PurePath(word).name == "papermill" for word in parent[:3])
    return named[0] if named and runs_one else None
