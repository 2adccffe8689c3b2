"""S: write a picture of the screen to a file, as the screen was when the key was pressed."""

import io
import os
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from rich.color import parse_rgb_hex
from rich.console import Console
from rich.segment import SegmentLines
from rich.terminal_theme import TerminalTheme
from textual.color import Color
from textual.strip import Strip

from tfmemtop.ui.base_app import Gate
from tfmemtop.ui.draw.palette import Glyphs
from tfmemtop.ui.screens.dialog import InputDialog


def _colours(row: str) -> list[tuple[int, int, int]]:
    return [parse_rgb_hex(colour) for colour in row.split()]


_NORMAL = _colours("16181d f26d6d 6cc070 e0b152 5b9bf5 bd7fd6 52bccb c9d1d9")
_BRIGHT = _colours("6e7681 ff8a8a 8ad98e f2cc7a 82b5ff d5a1ea 7fd8e4 ffffff")
_DARK = TerminalTheme(_NORMAL[0], _NORMAL[7], _NORMAL, _BRIGHT)
"""The colours of a dark terminal."""
_FRAME = """<svg viewBox="0 0 {terminal_width} {terminal_height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{
    font-family: "DejaVu Sans Mono", Menlo, Consolas, monospace;
    font-size: {char_height}px;
    line-height: {line_height}px;
}}
{styles}
</style>
<defs>{lines}</defs>
<rect width="100%" height="100%" rx="6" fill="#16181d"/>
{backgrounds}
<g class="{unique_id}-matrix">{matrix}</g>
</svg>
"""
"""The SVG around what Rich draws: a plain background, and fonts of the reader's machine."""


def _svg(lines: Sequence[Strip], columns: int) -> str:
    console = Console(width=columns, file=io.StringIO(), record=True, force_terminal=True, legacy_windows=False)
    console.print(SegmentLines([list(line) for line in lines], new_lines=True), end="")
    return console.export_svg(theme=_DARK, code_format=_FRAME)


def picture_dialog(strips: Sequence[Strip], columns: int, glyphs: Glyphs) -> InputDialog[Path]:
    """Return the dialog that asks for the file's name. Its suffix, ``.svg`` or ``.txt``, is the format.

    The dialog writes the file, and its result is the file's absolute path. *strips* are the lines of the screen.
    """
    name = time.strftime("tfmemtop-%Y%m%d-%H%M%S")
    seen = [Strip(Gate().apply(list(strip), Color(0, 0, 0))) for strip in strips]

    def read(text: str) -> Path:
        path = Path(os.path.expanduser(text.strip()))  # noqa: PTH111 (Path's own fails if there is no such user)
        if path.suffix.lower() == ".svg":
            content = _svg(seen, columns)
        elif path.suffix.lower() == ".txt":
            content = "".join(strip.text.rstrip() + "\n" for strip in seen)
        else:
            raise ValueError("End the name in .svg for a picture, or in .txt for text.")
        _write(path, content)
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
