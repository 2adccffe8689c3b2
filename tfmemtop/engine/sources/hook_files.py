"""Reads a file that a hook wrote into the session's folder. Anything else may have been put in its place."""

import os
import stat
from pathlib import Path

from tfmemtop.events import Damage
from tfmemtop.events.damage import Damaged

_CAREFULLY = os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC


def read_beginning(folder: Path, name: str, size: int) -> bytes:
    """Return the first *size* bytes of the file *name* in *folder*.

    Raises:
        OSError: the file is not there, or cannot be read.
        Damaged: *name* is not a regular file of this folder, or the file is shorter than *size*.
    """
    data = read_from(folder, name, 0, size)
    if len(data) < size:
        raise Damaged(Damage.CUT_SHORT)
    return data


def read_from(folder: Path, name: str, at: int, most: int) -> bytes:
    """Return what the file *name* in *folder* has from byte *at* on, at *most* so many bytes.

    Only a regular file is read: a pipe could make the engine wait for a writer.

    Raises:
        OSError: the file is not there, or cannot be read.
        Damaged: *name* is not a regular file of this folder.
    """
    if "/" in name:
        raise Damaged(Damage.NOT_A_FILE)
    with os.fdopen(os.open(folder / name, os.O_RDONLY | _CAREFULLY), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise Damaged(Damage.NOT_A_FILE)
        file.seek(at)
        return file.read(most)
