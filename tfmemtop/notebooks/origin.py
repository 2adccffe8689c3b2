"""Where a kernel comes from: what all its starts share, and its notebook, as far as it can be known."""

import re
from collections.abc import Mapping, Sequence
from pathlib import PurePath

_VISUAL_STUDIO_CODE = re.compile(r"kernel-v\d\S*\.json")
_ENDING = ".ipynb"


def shared_by_starts(connection: str, command: Sequence[str], folder: str, parent: tuple[int, float]) -> str:
    """What a kernel's next start is told by.

    Whatever restarts a kernel has started it: the *parent*, told by its process number and when that was started.
    Jupyter restarts a kernel with the same *connection* file, whose name another Jupyter may use again. VS Code makes
    a new one for each start, and says nothing of the notebook: there the parent is the window, and a kernel is told by
    the *command* without that file and the working *folder*.
    """
    apart = starts_are_told_apart(connection)
    told = [connection] if apart else [*(word for word in command if connection not in word), folder]
    return "\0".join([*told, *map(str, parent)])


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
