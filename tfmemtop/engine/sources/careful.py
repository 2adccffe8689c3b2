"""Reads a file that a hook wrote into the session's folder, where anything may lie."""

import os
import stat
from pathlib import Path

_CAREFULLY = os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC


def read_beginning(folder: Path, name: str, size: int) -> bytes:
    """The first *size* bytes of a file, which must be one: of a pipe we would wait for a writer.

    Raises:
        OSError: the file is not there.
        ValueError: it is no file of this folder, or it is shorter.
    """
    if "/" in name:
        raise ValueError("its name is none")
    with os.fdopen(os.open(folder / name, os.O_RDONLY | _CAREFULLY), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise ValueError("it is no file")
        data = file.read(size)
    if len(data) < size:
        raise ValueError("it is cut short")
    return data
