"""Draws one step: the memory in use over its course, stacked by kind of holder; and its buffers as bars. Pure.

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
from tfmemtop.findings.names import spot
from tfmemtop.state.holder_views import Lifetime, Lifetimes
from tfmemtop.state.holders import ORDER, StepSlice
from tfmemtop.ui.draw.braille import DOTS
from tfmemtop.ui.draw.glyphs import CURSOR, DOWN, HERE, MARK
from tfmemtop.ui.draw.holder_table import shape_text
from tfmemtop.ui.draw.lines import Line, fit, styled, width_of
from tfmemtop.ui.draw.palette import BOLD, CHOSEN, DIM, HOLDER, LETTER, PEAK, PLAIN
from tfmemtop.ui.draw.scale import GUTTER, Places, axis, gutters, label_places
from tfmemtop.ui.draw.text import end_of, exactly
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


def samples(width: int, braille: bool) -> int:
    """Return how many slices of a step a graph of *width* cells shows."""
    cells = max(1, width - GUTTER)
    return 2 * cells if braille else cells


def draw(step: Step, width: int, height: int, braille: bool) -> list[Line]:
    """Return *height* lines of *width* cells: a note at the peak, the area, and the axis; none if there is no room.

    Without Braille the area is made of the kinds' letters.
    """
    cells, rows = width - GUTTER, height - 2
    if cells < 8 or rows < 1 or not step.slices:
        return []
    per_cell = 2 if braille else 1
    text, codes = _area(step.slices, max(1, step.top), rows, braille)
    cursor = None if step.cursor is None else _place(step.slices, step.cursor) // per_cell
    peak = _place(step.slices, step.peak) // per_cell
    lines: list[Line] = [[Segment(" " * GUTTER), *_peak_note(step.notes, peak, cells)]]
    figures = {rows // 2: format_short(step.top // 2)} if rows >= 7 else {}
    scale = gutters({**figures, 0: format_short(step.top)}, rows)
    for row in range(rows):
        line, looks = text[row], codes[row]
        if cursor is not None and looks[cursor : cursor + 1].islower() | (looks[cursor : cursor + 1] == _BLANK):
            line = line[:cursor] + CURSOR + line[cursor + 1 :]
            looks = looks[:cursor] + _CURSOR + looks[cursor + 1 :]
        lines.append([*scale[row], *styled(line, looks, _LOOKS)])
    lines.append(_axis(step, cursor, cells))
    return lines


def _place(slices: Sequence[StepSlice], event: int) -> int:
    """Return the index of the slice that contains *event*; of the last slice if none does."""
    return next((at for at, slice_ in enumerate(slices) if event <= slice_.last), len(slices) - 1)


def _peak_note(notes: Sequence[str], peak: int, cells: int) -> Line:
    """Return the mark over the peak, and beside it the longest of *notes* that fits."""
    right, left = cells - peak - 2, peak - 1
    for note in notes:
        if cell_len(note) <= right:
            return [Segment(" " * peak), Segment(DOWN, PEAK), Segment(f" {note}", PLAIN)]
        if cell_len(note) <= left:
            blank = " " * (left - cell_len(note))
            return [Segment(f"{blank}{note} ", PLAIN), Segment(DOWN, PEAK)]
    room = max(right, left)
    if notes and room >= 12:
        return _peak_note((end_of(notes[-1], room),), peak, cells)
    return [Segment(" " * peak), Segment(DOWN, PEAK)]


def _axis(step: Step, cursor: int | None, cells: int) -> Line:
    whole = duration(step.whole_us)
    ends: list[Places] = [((cells - len(whole) - 2, f" {whole} "),)]
    if cursor is None or step.cursor is None:
        return axis(cells, ends, [])
    at = step.slices[_place(step.slices, step.cursor)].at_us
    label = f" {duration(at)} "
    first = min(max(0, cursor - len(label) // 2), cells - len(label))
    return axis(cells, [((first, label),), *ends], [])


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


_BYTES = 8
_HALVES = {(True, True): "█", (True, False): "▌", (False, True): "▐"}


def bars_from(width: int) -> int:
    """Return the cells left of the bars in a line of *width* cells."""
    return min(width // 2, 20 + width // 6)


def lifetime_heading(shown: Lifetimes, width: int) -> Line:
    """Return the line with the names of the columns, and the time over the bars with the moment of the peak."""
    left = bars_from(width)
    cells = width - left
    whole = f" {duration(shown.whole_us)} "
    peak = label_places(shown.cell(shown.peak_us, cells), DOWN, "peak")
    ends: Places = ((cells - len(whole) - 1, whole),)
    text = exactly("    BUFFER", left - _BYTES - 1) + f"{'BYTES':>{_BYTES}} "
    return [Segment(text, DIM), *axis(cells, [peak, ends], [], bottom=None)]


def lifetime_line(
    shown: Lifetimes,
    buffer: Lifetime,
    cursor_us: int | None,
    width: int,
    braille: bool,
    *,
    chosen: bool = False,
) -> Line:
    """Return *buffer* in one line of *width* cells. The peak and the moment *cursor_us* cross its free time."""
    left, kind = bars_from(width), buffer.part.kind.value
    room = left - _BYTES - 5
    name = exactly(end_of(words.buffer(buffer.part), room), room)
    mark = HERE if chosen else " "
    line: Line = [Segment(f"{mark} ", BOLD), Segment(f"{LETTER[kind]} ", HOLDER[kind] + BOLD)]
    line += [Segment(name, CHOSEN if chosen else PLAIN), Segment(f"{format_short(buffer.part.bytes):>{_BYTES}} ", BOLD)]
    cells = width - left
    used = shown.cells(buffer, 2 * cells)
    halves = [(2 * cell in used, 2 * cell + 1 in used) for cell in range(cells)]
    crossing = {shown.cell(shown.peak_us, cells): (MARK, PEAK)}
    if cursor_us is not None:
        crossing[shown.cell(cursor_us, cells)] = CURSOR, BOLD
    for cell, half in enumerate(halves):
        blank = crossing.get(cell, (" ", PLAIN))
        text, look = (_HALVES[half] if braille else LETTER[kind], HOLDER[kind]) if any(half) else blank
        line.append(Segment(text, look))
    return list(Segment.simplify(line))


def lifetime_detail(buffer: Lifetime, width: int) -> Line:
    """Return what is known of *buffer*: its time, its shape, its name, and the script's line that makes it."""
    part = buffer.part
    since = "before" if buffer.from_us is None else duration(buffer.from_us)
    until = "end" if buffer.to_us is None else duration(buffer.to_us)
    line: Line = [Segment(f" {since} to {until}  ", DIM), Segment(f"{shape_text(part)}  ")]
    code = f"  {spot(part.line.file, part.line.line)}  {part.line.code.strip()}" if part.line else ""
    room = width - width_of(line)
    name = words.holder(part.python_name or part.operation, part.kind)
    line.append(Segment(end_of(name, max(16, room - min(len(code), room // 2))), BOLD))
    return [*line, Segment(fit(code, max(0, width - width_of(line))), DIM)]
