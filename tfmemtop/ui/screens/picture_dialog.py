"""S: write a picture of the screen to a file, as the screen was when the key was pressed."""

import os
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from textual.color import Color
from textual.strip import Strip

from tfmemtop.ui.base_app import Gate
from tfmemtop.ui.draw.palette import Glyphs
from tfmemtop.ui.draw.picture import picture
from tfmemtop.ui.screens.dialog import InputDialog

_SVG, _TEXT = ".svg", ".txt"


def picture_dialog(strips: Sequence[Strip], columns: int, glyphs: Glyphs) -> InputDialog[Path]:
    """Return the dialog that asks for the file's name. Its suffix, ``.svg`` or ``.txt``, is the format.

    The dialog writes the file, and its result is the file's absolute path. *strips* are the lines of the screen.
    """
    name = time.strftime("tfmemtop-%Y%m%d-%H%M%S")
    seen = [Strip(Gate().apply(list(strip), Color(0, 0, 0))) for strip in strips]

    def read(text: str) -> Path:
        path = Path(os.path.expanduser(text.strip()))  # noqa: PTH111 (Path's own fails if there is no such user)
        if path.suffix.lower() == _SVG:
            content = picture(seen, columns)
        elif path.suffix.lower() == _TEXT:
            content = "".join(strip.text.rstrip() + "\n" for strip in seen)
        else:
            raise ValueError("End the name in .svg for a picture, or in .txt for text.")
        _write(path, content)
        return path.absolute()

    return InputDialog(
        "The picture of the screen",
        text=["The name of a new file. Its ending sets the format: .svg or .txt"],
        value=name + _SVG,
        read=read,
        suggestions=[(name + _SVG, "in colour, for a browser"), (name + _TEXT, "plain text")],
        glyphs=glyphs,
    )


def _write(path: Path, content: str) -> None:
    """Write a new file that only its owner may read.

    Raises:
        ValueError: a file of that name exists already, or the file cannot be written.
    """
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        raise ValueError(f"{path} exists already. Choose another name.") from None
    except OSError as error:
        raise _refused(path, error) from error
    try:
        with open(descriptor, "w", encoding="utf-8") as file:  # noqa: PTH123 (a descriptor)
            file.write(content)
    except OSError as error:
        with suppress(OSError):
            path.unlink()  # part of a picture is of no use
        raise _refused(path, error) from error


def _refused(path: Path, error: OSError) -> ValueError:
    return ValueError(f"{path} cannot be written: {error.strerror or error}.")
