"""The settings that were chosen on a screen for a Jupyter kernel's next start.

They lie beside the recordings, by the kernel's connection file, which all its starts share.
"""

import hashlib
import os
import time
from pathlib import Path

import msgspec

from tfmemtop.engine.stream.folders import output_folder
from tfmemtop.settings import Settings

_ENDING = ".kernel.json"
_KEPT_DAYS = 30


def choose(connection: str, settings: Settings) -> None:
    """Keep *settings* for the next starts of the kernel, whole or not at all.

    Raises:
        OSError: they cannot be written.
    """
    path = _place(connection)
    new = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        new.touch(mode=0o600)
        new.write_bytes(msgspec.json.encode(settings))
        new.replace(path)
    finally:
        new.unlink(missing_ok=True)


def chosen(connection: str) -> Settings | None:
    """What was chosen for the kernel; ``None`` if nothing was, or it cannot be read."""
    try:
        return msgspec.json.decode(_place(connection).read_bytes(), type=Settings)
    except (OSError, msgspec.DecodeError):
        return None


def forget_old() -> None:
    """Remove what was chosen thirty days ago or earlier.

    Raises:
        OSError: it cannot be removed, or the folder cannot be read.
    """
    oldest = time.time() - _KEPT_DAYS * 86_400
    for path in output_folder().glob(f"*{_ENDING}"):
        if path.stat().st_mtime < oldest:
            path.unlink()


def _place(connection: str) -> Path:
    name = hashlib.sha256(os.fsencode(connection)).hexdigest()[:16]
    return output_folder() / f"{name}{_ENDING}"
