"""Jupyter: kernels that are sessions, the server that can restart them, and the command ``%memtop`` in a notebook.

Here is what a kernel's process says about it: its connection file, and from which notebook it comes.
"""

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import PurePath

_VISUAL_STUDIO_CODE = re.compile(r"kernel-v\d\S*\.json")
_ENDING = ".ipynb"


def connection_file(command: Sequence[str]) -> str | None:
    """Return the connection file in a kernel's command line; ``None`` if *command* starts no kernel."""
    for at, word in enumerate(command):
        if word in ("-f", "--f", "--connection-file", "--IPKernelApp.connection_file") and at + 1 < len(command):
            return command[at + 1]
        for begins in ("--f=", "-f=", "--connection-file=", "--IPKernelApp.connection_file="):
            if word.startswith(begins):
                return word.removeprefix(begins)
    return None


def is_recognised_again(connection: str) -> bool:
    """Return whether the next start of the kernel with this *connection* file will be recognised as such.

    Jupyter restarts a kernel with the same file. VS Code makes a new file for each start, and gives no hint of the
    notebook.
    """
    return not _VISUAL_STUDIO_CODE.fullmatch(PurePath(connection).name)


def notebook(environment: Mapping[str, str], parent: Sequence[str]) -> str | None:
    """Return the name of the notebook's file; ``None`` if it is not known.

    Jupyter's server sets a variable in the *environment*. ``jupyter execute`` and papermill have the name in their
    command line, which is that of the kernel's *parent*. papermill names first the notebook that it reads, then the one
    that it writes; ``jupyter execute`` names the latter after ``--output``.
    """
    if said := environment.get("JPY_SESSION_NAME"):
        return PurePath(said).name or None
    words = [word for before, word in pairwise(["", *parent]) if before != "--output" and not word.startswith("-")]
    named = [PurePath(word).name for word in words if word.endswith(_ENDING)]
    runs_one = len(named) == 1 or any(PurePath(word).name == "papermill" for word in parent[:3])
    return named[0] if named and runs_one else None
