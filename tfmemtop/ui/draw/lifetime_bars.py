"""The buffers of a window, each in a line with a bar from its allocation to its release. Pure."""

from rich.segment import Segment

from tfmemtop.findings import holders as words
from tfmemtop.findings.names import spot
from tfmemtop.state.holder_views import Lifetime, Lifetimes
from tfmemtop.ui.draw.holder_table import shape_text
from tfmemtop.ui.draw.lines import Line, fit, width_of
from tfmemtop.ui.draw.palette import BOLD, CHOSEN, DIM, HOLDER, LETTER, PEAK, PLAIN, Glyphs
from tfmemtop.ui.draw.scale import Places, axis, label_places
from tfmemtop.ui.draw.text import end_of, exactly
from tfmemtop.units import duration, format_short

_BYTES = 8
_HALVES = {(True, True): "█", (True, False): "▌", (False, True): "▐"}


def bars_from(width: int) -> int:
    """Return the cells left of the bars in a line of *width* cells."""
    return min(width // 2, 20 + width // 6)


def heading(shown: Lifetimes, width: int, glyphs: Glyphs) -> Line:
    """Return the line with the names of the columns, and the time over the bars with the moment of the peak."""
    left = bars_from(width)
    cells = width - left
    whole = f" {duration(shown.whole_us)} "
    peak = label_places(shown.cell(shown.peak_us, cells), glyphs.down, "peak", left=True)
    ends: Places = ((cells - len(whole) - 1, whole),)
    text = exactly("    BUFFER", left - _BYTES - 1) + f"{'BYTES':>{_BYTES}} "
    return [Segment(text, DIM), *axis(cells, [peak, ends], [], glyphs, bottom=None)]


def row_line(
    shown: Lifetimes,
    buffer: Lifetime,
    cursor_us: int | None,
    width: int,
    glyphs: Glyphs,
    *,
    chosen: bool = False,
) -> Line:
    """Return *buffer* in one line of *width* cells. The peak and the moment *cursor_us* cross its free time."""
    left, kind = bars_from(width), buffer.part.kind.value
    room = left - _BYTES - 5
    name = exactly(end_of(words.buffer(buffer.part), room, glyphs.ellipsis), room)
    mark = glyphs.here if chosen else " "
    line: Line = [Segment(f"{mark} ", BOLD), Segment(f"{LETTER[kind]} ", HOLDER[kind] + BOLD)]
    line += [Segment(name, CHOSEN if chosen else PLAIN), Segment(f"{format_short(buffer.part.bytes):>{_BYTES}} ", BOLD)]
    cells = width - left
    used = shown.cells(buffer, 2 * cells)
    halves = [(2 * cell in used, 2 * cell + 1 in used) for cell in range(cells)]
    crossing = {shown.cell(shown.peak_us, cells): (glyphs.mark, PEAK)}
    if cursor_us is not None:
        crossing[shown.cell(cursor_us, cells)] = glyphs.cursor, BOLD
    for cell, half in enumerate(halves):
        blank = crossing.get(cell, (" ", PLAIN))
        text, look = (_HALVES[half] if glyphs.braille else LETTER[kind], HOLDER[kind]) if any(half) else blank
        line.append(Segment(text, look))
    return list(Segment.simplify(line))


def detail(buffer: Lifetime, width: int, glyphs: Glyphs) -> Line:
    """Return what is known of *buffer*: its time, its shape, its name, and the script's line that makes it."""
    part = buffer.part
    since = "before" if buffer.from_us is None else duration(buffer.from_us)
    until = "end" if buffer.to_us is None else duration(buffer.to_us)
    line: Line = [Segment(f" {since} to {until}  ", DIM), Segment(f"{shape_text(part)}  ")]
    code = f"  {spot(part.line.file, part.line.line)}  {part.line.code.strip()}" if part.line else ""
    room = width - width_of(line)
    name = words.holder(part.python_name or part.operation, part.kind)
    line.append(Segment(end_of(name, max(16, room - min(len(code), room // 2)), glyphs.ellipsis), BOLD))
    return [*line, Segment(fit(code, max(0, width - width_of(line)), glyphs), DIM)]
