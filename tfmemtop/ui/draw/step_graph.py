"""Draws one step: the memory in use over its course, stacked by kind of holder. Pure.

In Braille a cell shows two slices of the step and four parts of the height, otherwise one of each. A band that is wide
enough contains its name, so that the kinds can be distinguished without colours too.
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise

import msgspec
from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style

from tfmemtop.findings import holders as words
from tfmemtop.state.holders import ORDER, StepSlice
from tfmemtop.ui.draw.braille import DOTS
from tfmemtop.ui.draw.lines import Line, styled
from tfmemtop.ui.draw.palette import BOLD, HOLDER, LETTER, PEAK, PLAIN, Glyphs
from tfmemtop.ui.draw.scale import GUTTER, Places, axis, gutters
from tfmemtop.ui.draw.text import end_of
from tfmemtop.units import duration, format_short

_CODES = "abcdefghijklmnop"
_CURSOR, _BLANK = "|", " "
_LOOKS: dict[str, Style] = {
    **{code: HOLDER[kind.value] for code, kind in zip(_CODES, ORDER, strict=False)},
    **{code.upper(): HOLDER[kind.value] + BOLD for code, kind in zip(_CODES, ORDER, strict=False)},
    _CURSOR: BOLD,
    _BLANK: PLAIN,
}
_LETTERS = str.maketrans({code: LETTER[kind.value] for code, kind in zip(_CODES, ORDER, strict=False)})
_WHOLE = chr(0x28FF)
_BESIDE = 4  # cells of a band beside its name


class Step(msgspec.Struct, frozen=True):
    """The step to draw: ``slices`` on a scale of 0 to ``top`` bytes, over ``whole_us`` microseconds.

    ``peak`` and ``cursor`` are numbers of events; ``cursor`` is ``None`` if it is at the peak. ``notes`` is the text at
    the peak in several lengths, the longest first.
    """

    slices: tuple[StepSlice, ...]
    top: int
    whole_us: int
    peak: int
    cursor: int | None
    notes: tuple[str, ...]


def samples(width: int, glyphs: Glyphs, *, gutter: bool = True) -> int:
    """Return how many slices of a step a graph of *width* cells shows."""
    cells = max(1, width - (GUTTER if gutter else 0))
    return 2 * cells if glyphs.braille else cells


def draw(step: Step, width: int, height: int, glyphs: Glyphs, *, gutter: bool = True) -> list[Line]:
    """Return *height* lines of *width* cells: a note at the peak, the area, and the axis; none if there is no room.

    Without Braille the area is made of the kinds' letters.
    """
    cells, rows = width - (GUTTER if gutter else 0), height - 2
    if cells < 8 or rows < 1 or not step.slices:
        return []
    per_cell = 2 if glyphs.braille else 1
    text, codes = _area(step.slices, max(1, step.top), rows, glyphs.braille)
    cursor = None if step.cursor is None else _place(step.slices, step.cursor) // per_cell
    peak = _place(step.slices, step.peak) // per_cell
    left = [Segment(" " * GUTTER)] if gutter else []
    lines: list[Line] = [[*left, *_peak_note(step.notes, peak, cells, glyphs)]]
    figures = {rows // 2: format_short(step.top // 2)} if rows >= 7 else {}
    scale = gutters({**figures, 0: format_short(step.top)}, rows, glyphs) if gutter else [[]] * rows
    for row in range(rows):
        line, looks = text[row], codes[row]
        if cursor is not None and looks[cursor : cursor + 1].islower() | (looks[cursor : cursor + 1] == _BLANK):
            line = line[:cursor] + glyphs.cursor + line[cursor + 1 :]
            looks = looks[:cursor] + _CURSOR + looks[cursor + 1 :]
        lines.append([*scale[row], *styled(line, looks, _LOOKS)])
    lines.append(_axis(step, cursor, cells, glyphs, gutter))
    return lines


def _place(slices: Sequence[StepSlice], event: int) -> int:
    """Return the index of the slice that contains *event*; of the last slice if none does."""
    return next((at for at, slice_ in enumerate(slices) if event <= slice_.last), len(slices) - 1)


def _peak_note(notes: Sequence[str], peak: int, cells: int, glyphs: Glyphs) -> Line:
    """Return the mark over the peak, and beside it the longest of *notes* that fits."""
    right, left = cells - peak - 2, peak - 1
    for note in notes:
        if cell_len(note) <= right:
            return [Segment(" " * peak), Segment(glyphs.down, PEAK), Segment(f" {note}", PLAIN)]
        if cell_len(note) <= left:
            blank = " " * (left - cell_len(note))
            return [Segment(f"{blank}{note} ", PLAIN), Segment(glyphs.down, PEAK)]
    room = max(right, left)
    if notes and room >= 12:
        return _peak_note((end_of(notes[-1], room, glyphs.ellipsis),), peak, cells, glyphs)
    return [Segment(" " * peak), Segment(glyphs.down, PEAK)]


def _axis(step: Step, cursor: int | None, cells: int, glyphs: Glyphs, gutter: bool) -> Line:
    whole, bottom = duration(step.whole_us), "0" if gutter else None
    ends: list[Places] = [((cells - len(whole) - 2, f" {whole} "),)]
    if cursor is None or step.cursor is None:
        return axis(cells, ends, [], glyphs, bottom=bottom)
    at = step.slices[_place(step.slices, step.cursor)].at_us
    label = f" {duration(at)} "
    first = min(max(0, cursor - len(label) // 2), cells - len(label))
    return axis(cells, [((first, label),), *ends], [], glyphs, bottom=bottom)


@lru_cache(maxsize=8)
def _area(slices: tuple[StepSlice, ...], top: int, rows: int, braille: bool) -> tuple[list[str], list[str]]:
    """Return the rows' characters, top first, and each cell's code of its style. Capital codes belong to names."""
    units = rows * 4 if braille else rows
    halves = [_layers(one, top, units) for one in slices]
    columns = list(zip(halves[::2], [*halves[1::2], *halves[-1:]], strict=False))
    text: list[str] = []
    codes: list[str] = []
    for row in reversed(range(rows)):
        if not braille:
            looks = "".join(column[row : row + 1] or _BLANK for column in halves)
            text.append(looks.translate(_LETTERS))
        else:
            cells = [_cell(*(half[row * 4 : row * 4 + 4] for half in column)) for column in columns]
            looks = "".join(code for _, code in cells)
            text.append("".join(character for character, _ in cells))
        codes.append(looks)
    _write_names(text, codes, braille)
    return text, codes


def _layers(one: StepSlice, top: int, units: int) -> str:
    """Return the kinds' codes, one for each unit of height, bottom up. *units* is the height of the scale."""
    ends = [(2 * min(end, top) * units + top) // (2 * top) for end in one.ends]
    found = "".join(_CODES[at] * (high - low) for at, (low, high) in enumerate(pairwise([0, *ends])) if high > low)
    if not found and one.ends[-1] > 0:  # memory that is too little to have a height is drawn nevertheless
        found = _CODES[max(range(len(ORDER)), key=lambda at: one.ends[at] - (one.ends[at - 1] if at else 0))]
    return found


def _cell(left: str, right: str) -> tuple[str, str]:
    both = left + right
    if not both:
        return " ", _BLANK
    bits = sum(DOTS[0][: len(left)]) | sum(DOTS[1][: len(right)])
    return chr(0x2800 + bits), max(both, key=both.count)


def _write_names(text: list[str], codes: list[str], braille: bool) -> None:
    """Write each kind's name, or else its letter, into the longest stretch of its band."""
    for at, kind in enumerate(ORDER):
        code = _CODES[at]
        runs = [
            (found.end() - found.start(), row, found.start())
            for row, looks in enumerate(codes)
            for found in re.finditer(f"{code}+", looks)
            if not braille or set(text[row][found.start() : found.end()]) == {_WHOLE}
        ]
        if not runs:
            continue
        most = max(length for length, _, _ in runs)
        # If several stretches are the longest, take the one in the middle of the band.
        same = [(row, start) for length, row, start in runs if length == most]
        row, start = same[len(same) // 2]
        name = f" {words.kind(kind)} "
        if len(name) + _BESIDE > most:
            name = LETTER[kind.value]
        if len(name) + 2 > most:
            continue
        first = start + (most - len(name)) // 2
        text[row] = text[row][:first] + name + text[row][first + len(name) :]
        codes[row] = codes[row][:first] + code.upper() * len(name) + codes[row][first + len(name) :]
