"""Where a kernel comes from: what all its starts share, and its notebook, as far as it can be known."""

import re
from collections.abc import Mapping, Sequence
from pathlib import PurePath

_VISUAL_STUDIO_CODE = re.compile(r"kernel-v\d\S*\.json")
_ENDING = ".ipynb"


def shared_by_starts(connection: str, command: Sequence[str], folder: str, parent: tuple[int, float]) -> str:
    """What a kernel's next start is told by.

    Jupyter restarts a kernel with the same *connection* file. VS Code makes a new one for each start, and says nothing
    of the notebook: there it is the *command* without that file, the working *folder*, and the *parent*, which is the
    window: its process number and when that was started.
    """
    if not _VISUAL_STUDIO_CODE.fullmatch(PurePath(connection).name):
        return connection
    return "\0".join([*(word for word in command if connection not in word), folder, *map(str, parent)])


def starts_are_told_apart(connection: str) -> bool:
    """Whether a kernel of another notebook is never taken for a start of this one."""
    return not _VISUAL_STUDIO_CODE.fullmatch(PurePath(connection).name)


def notebook(environment: Mapping[str, str], parent: Sequence[str]) -> str | None:
    """The name of the notebook's file; ``None`` if it is not known.

    Jupyter's server says it in the *environment*. ``jupyter execute`` and papermill have it in their command line, the
    kernel's *parent*; papermill names the notebook that it reads before the one that it writes.
    """
    if said := environment.get("JPY_SESSION_NAME"):
        return PurePath(said).name or None
    named = [PurePath(word).name for word in parent if word.endswith(_ENDING)]
    runs_one = len(named) == 1 or any(PurePath(word).name == "papermill" for word in parent[:3])
    return named[0] if named and runs_one else None
