"""How the user left the screen: which panels are shown, how graphs are scaled and processes sorted, how often drawn."""

import os
from pathlib import Path
from typing import Annotated

import msgspec

_LARGEST = 4096  # bytes


class Choices(msgspec.Struct, frozen=True):
    """``scale`` is a scale's name, ``sort`` a column's."""

    output: bool = True
    allocators: bool = True
    scale: Annotated[str, msgspec.Meta(max_length=20)] = "auto"
    sort: Annotated[str, msgspec.Meta(max_length=20)] = "GPU"
    inverted: bool = False


def load(path: Path | None) -> Choices:
    """What was saved last at *path*. Where nothing can be read it is as if nothing had ever been chosen."""
    if path is None:
        return Choices()
    try:
        with path.open("rb") as file:
            return msgspec.json.decode(file.read(_LARGEST), type=Choices)
    except (OSError, msgspec.DecodeError):
        return Choices()


def save(choices: Choices, path: Path) -> None:
    """Keep *choices* at *path*, whole or not at all.

    Raises:
        OSError: they cannot be written.
    """
    new = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        new.write_bytes(msgspec.json.encode(choices))
        new.replace(path)
    finally:
        new.unlink(missing_ok=True)
