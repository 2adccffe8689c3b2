"""Draws the cells of a pool's map by their holders: a letter for each cell, in the colour of its kind. Pure.

A face is the code of a holder's kind, or ``FREE``; see ``state/map_faces.py``.
"""

import re
from collections.abc import Iterable, Sequence

from rich.segment import Segment
from rich.style import Style

from tfmemtop.findings import holder_texts as words
from tfmemtop.safe import safe
from tfmemtop.state.attribution import Kind
from tfmemtop.state.map_faces import FREE, Lies, kind_of
from tfmemtop.state.step_slices import ORDER
from tfmemtop.ui.draw.chunk_map import shades
from tfmemtop.ui.draw.lines import Line, cut, fit, width_of
from tfmemtop.ui.draw.palette import BOLD, CHOSEN, DIM, HOLDER, LETTER, Glyphs
from tfmemtop.ui.draw.text import end_of
from tfmemtop.units import format_short

_FULL = 255
_BLOCK = Style(reverse=True)
_NAME_LEAST = 28


def merged(faces: bytes, shares: bytes, count: int) -> bytes:
    """Merge every *count* cells into one, with the face of most of what is in use there.

    *shares* are how much of each cell is in use, 0 to 255.
    """
    if count <= 1:
        return faces
    found = bytearray()
    for start in range(0, len(faces), count):
        weights: dict[int, int] = {}
        for face, share in zip(faces[start : start + count], shares[start : start + count], strict=True):
            if face != FREE:
                weights[face] = weights.get(face, 0) + share
        found.append(max(weights, key=lambda face: weights[face]) if weights else FREE)
    return bytes(found)


def draw(shares: bytes, faces: bytes, glyphs: Glyphs, cursor: int | None = None) -> Line:
    """Return a letter for each cell: a capital on its colour if all of the cell is in use, else a small letter.

    *cursor* is the number of the cell under the cursor.
    """
    free = shades(glyphs)[0]
    codes = "".join(
        "." if face == FREE else chr((64 if share == _FULL else 96) + face)
        for share, face in zip(shares, faces, strict=True)
    )
    line: Line = []
    for run in re.finditer(r"(.)\1*", codes):
        code, cells = run[1], run.end() - run.start()
        line.append(Segment(free * cells, DIM) if code == "." else _run(kind_of(ord(code) & 31), code < "`", cells))
    if cursor is not None and 0 <= cursor < len(codes):
        before, under, after = Segment.divide(line, [cursor, cursor + 1, len(codes)])
        line = [*before, *(Segment(segment.text, CHOSEN + BOLD) for segment in under), *after]
    return line


def _run(kind: Kind, full: bool, cells: int) -> Segment:
    letter = LETTER[kind.value]
    look = HOLDER[kind.value]
    return Segment(letter * cells, look + _BLOCK) if full else Segment(letter.lower() * cells, look)


def legend(faces: Iterable[bytes], cell_bytes: int, width: int, glyphs: Glyphs) -> Line:
    """Return the line with the kinds among *faces*, and what capitals mean."""
    seen = set().union(*map(set, faces)) - {FREE}
    line: Line = [Segment(" ")]
    for place, kind in enumerate(ORDER, 1):
        if place in seen:
            look = HOLDER[kind.value]
            line += [Segment(LETTER[kind.value], look + _BLOCK), Segment(f" {words.kind(kind)}  ", look)]
    line.append(Segment(words.faces(shades(glyphs)[0], format_short(cell_bytes)), DIM))
    return cut(line, width, glyphs)


def lies_line(lies: Lies, since: str, width: int, glyphs: Glyphs) -> Line:
    """Return the line about the cell under the cursor: who holds it, its shape, and since when."""
    owner = lies.owner
    shape = "" if owner.shape is None else f"{safe(owner.dtype)}[{','.join(map(str, owner.shape))}]  "
    look = HOLDER[owner.kind.value]
    head: Line = [Segment(f" {LETTER[owner.kind.value]} ", look + BOLD), Segment(f"{words.kind(owner.kind)}  ", look)]
    tail = f"  {format_short(lies.size)}  {shape}{since}"
    room = max(_NAME_LEAST, width - width_of(head) - len(tail))
    name = owner.python_name or words.operation(owner.operation) or owner.layer or words.NO_NAME
    return cut([*head, Segment(end_of(name, room, glyphs.ellipsis), BOLD), Segment(tail, DIM)], width, glyphs)


def free_line(neighbours: Sequence[Lies | None], width: int, glyphs: Glyphs) -> Line:
    """Return the line about a free cell: the holders below and above it."""
    below, above = (_short(lies, max(8, width // 2 - 14), glyphs) for lies in neighbours)
    return [Segment(fit(f" {words.free(below, above)}", width, glyphs), BOLD)]


def _short(lies: Lies | None, width: int, glyphs: Glyphs) -> str:
    if lies is None:
        return ""
    owner = lies.owner
    name = owner.python_name or words.operation(owner.operation) or owner.layer or words.kind(owner.kind)
    return f"{LETTER[owner.kind.value]} {end_of(name, width - 10, glyphs.ellipsis)} {format_short(lies.size)}"
