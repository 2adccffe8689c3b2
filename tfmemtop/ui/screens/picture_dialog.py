"""S: write a picture of the screen to a file, as the screen was when the key was pressed."""

import os
import time
from functools import partial
from pathlib import Path

from tfmemtop.ui.draw.palette import Glyphs
from tfmemtop.ui.screens.choice_dialog import InputDialog


def picture_dialog(svg: str, text: str, glyphs: Glyphs) -> InputDialog[Path]:
    """Return the dialog that asks for the file's name. Its suffix, ``.svg`` or ``.txt``, is the format.

    The dialog writes the file, and its result is the file's absolute path. *svg* and *text* are the screen.
    """
    name = time.strftime("tfmemtop-%Y%m%d-%H%M%S")
    formats = {".svg": svg, ".txt": text}

    def read(typed: str) -> Path:
        path = Path(os.path.expanduser(typed.strip()))  # noqa: PTH111 (Path's own fails if there is no such user)
        if path.suffix.lower() not in formats:
            raise ValueError("End the name in .svg for a picture, or in .txt for text.")
        _write(path, formats[path.suffix.lower()])
        return path.absolute()

    return InputDialog(
        "The picture of the screen",
        text=["The name of a new file. Its ending sets the format: .svg or .txt"],
        value=f"{name}.svg",
        read=read,
        suggestions=[(f"{name}.svg", "in colour, for a browser"), (f"{name}.txt", "plain text")],
        glyphs=glyphs,
    )


def _write(path: Path, content: str) -> None:
    """Write a new file that only its owner may read.

    Raises:
        ValueError: a file of that name exists already, or the file cannot be written.
    """
    try:
        with open(path, "x", encoding="utf-8", opener=partial(os.open, mode=0o600)) as file:
            file.write(content)
    except FileExistsError:
        raise ValueError(f"{path} exists already. Choose another name.") from None
    except OSError as error:
        raise ValueError(f"{path} cannot be written: {error.strerror or error}.") from error
