"""The user's choices, kept for the next screen: which panels are shown, how graphs are scaled and processes sorted."""

import os
from pathlib import Path
from typing import Annotated

import msgspec

from tfmemtop.ui.draw.scale import ScaleChoice

_LARGEST = 4096  # bytes


class Choices(msgspec.Struct, frozen=True):
    """Which panels are shown; ``sort``, the name of the column to sort by.

    ``steps``: whether the graphs have a line of the steps' time.
    """

    output: bool = True
    allocators: bool = True
    scale: ScaleChoice = ScaleChoice.AUTO
    sort: Annotated[str, msgspec.Meta(max_length=20)] = "GPU"
    inverted: bool = False
    steps: bool = False


def load(path: Path | None) -> Choices:
    """Return the choices saved at *path*; the defaults, if *path* is ``None`` or cannot be read."""
    if path is None:
        return Choices()
    try:
        with path.open("rb") as file:
            return msgspec.json.decode(file.read(_LARGEST), type=Choices)
    except (OSError, msgspec.DecodeError):
        return Choices()


def save(choices: Choices, path: Path) -> None:
    """Save *choices* at *path*, completely or not at all.

    Raises:
        OSError: the file cannot be written.
    """
    new = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        new.write_bytes(msgspec.json.encode(choices))
        new.replace(path)
    finally:
        new.unlink(missing_ok=True)
