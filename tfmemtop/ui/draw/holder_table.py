"""The holders at a moment as a table: a line for each, and the parts of those that are opened. Pure."""

import msgspec
from msgspec.structs import replace
from rich.cells import cell_len
from rich.segment import Segment

from tfmemtop import events
from tfmemtop.findings import holders as words
from tfmemtop.findings.names import frames, spot
from tfmemtop.safe import safe
from tfmemtop.state.attribution import Kind
from tfmemtop.state.holder_views import Happened
from tfmemtop.state.holders import By, Holder, Part, Standing
from tfmemtop.ui.draw.chunk_map import clock
from tfmemtop.ui.draw.glyphs import ELLIPSIS, FAILED_MARK, HERE, MORE
from tfmemtop.ui.draw.lines import Line, cut, fit, flow, width_of
from tfmemtop.ui.draw.palette import BOLD, CHOSEN, DIM, HOLDER, LETTER, PEAK, PLAIN, WARNING
from tfmemtop.ui.draw.text import end_of, exactly
from tfmemtop.units import duration, format_bytes, format_count, format_short

_KIND, _BYTES, _SHARE, _COUNT = 13, 8, 5, 6
_BAR_MOST, _BAR_LEAST = 60, 6
_NAME_LEAST = 22
_NAME_MOST = {By.LAYER: 36, By.KIND: 36, By.SHAPE: 40, By.OPERATION: 70, By.LINE: 60}
_EIGHTHS = " ▏▎▍▌▋▊▉"
_OPERATION_MOST = 60


class Columns(msgspec.Struct, frozen=True):
    """Cells of each column; ``kind`` and ``bar`` are 0 where they are left out."""

    name: int
    kind: int
    bar: int


def columns(by: By, width: int) -> Columns:
    """Return how the columns share *width* cells."""
    kind = 0 if by is By.KIND else _KIND
    room = width - 2 - (kind + 1 if kind else 0) - _BYTES - 1 - _SHARE - _COUNT
    name = min(_NAME_MOST[by], max(_NAME_LEAST, room * 3 // 5))
    bar = min(_BAR_MOST, room - name - 1)
    if bar < _BAR_LEAST:
        return Columns(max(4, room), kind, 0) if room >= _NAME_LEAST - 8 else Columns(max(4, room + kind), 0, 0)
    return Columns(name, kind, bar)


def heading(by: By, width: int) -> Line:
    """Return the line with the names of the columns."""
    shape = columns(by, width)
    text = f"  {words.group(by).upper():<{shape.name}} "
    text = exactly(text, 2 + shape.name + 1)
    text += f"{'KIND':<{shape.kind}} " if shape.kind else ""
    text += f"{'BYTES':>{_BYTES}} {'':<{shape.bar}}{'SHARE':>{_SHARE}}{'COUNT':>{_COUNT}}"
    return [Segment(exactly(text, width), DIM)]


def row_line(
    row: Holder,
    by: By,
    most: float,
    width: int,
    braille: bool,
    *,
    chosen: bool = False,
    opened: bool = False,
) -> Line:
    """Return a holder in one line of *width* cells.

    A share of *most* (both 0 to 1) fills the bar.
    """
    shape = columns(by, width)
    name = exactly(end_of(words.holder(row.name, row.kind, by), shape.name), shape.name)
    line: Line = [Segment(_mark(chosen, opened), BOLD), Segment(name, CHOSEN if chosen else PLAIN)]
    line.append(Segment(" "))
    if shape.kind:
        line += [*kinds_label(row, shape.kind), Segment(" ")]
    line.append(Segment(f"{format_short(row.bytes):>{_BYTES}} ", BOLD))
    if shape.bar:
        line += bar(row, most, shape.bar, braille)
    line.append(Segment(f"{_percent(row.share):>{_SHARE}}"))
    line.append(Segment(f"{format_count(row.count) if row.count else '':>{_COUNT}}", DIM))
    return Segment.adjust_line_length(line, width)


def kinds_label(row: Holder, width: int) -> Line:
    """Return a row's kinds: a single one by its word, several by their letters, the one with most bytes first."""
    if len(row.kinds) < 2:
        return kind_label(row.kind, width)
    letters = [Segment(f"{LETTER[kind.value]} ", HOLDER[kind.value] + BOLD) for kind, _ in row.kinds[: width // 2]]
    return Segment.adjust_line_length(letters, width)


def kind_label(kind: Kind, width: int) -> Line:
    """Return a kind's letter and its word, in the kind's colour."""
    letter = LETTER[kind.value]
    look = HOLDER[kind.value]
    if width < 3:
        return [Segment(exactly(letter, width), look)]
    return [Segment(letter, look + BOLD), Segment(exactly(f" {words.kind(kind)}", width - 1), look)]


def bar(row: Holder, most: float, width: int, braille: bool) -> Line:
    """Return a row's share as a bar by kind, padded to *width* cells. A share of *most* fills it.

    It is made of the kinds' letters without Braille, else its end is exact to an eighth of a cell.
    """
    eighths = max(1, round(row.share * width * 8 / max(most, row.share, 1e-9)))
    cells = -(-eighths // 8)
    line: Line = []
    begin = 0
    for kind, end in row.mix:
        upto = max(begin, round(end * cells))
        line.append(Segment(("█" if braille else LETTER[kind.value]) * (upto - begin), HOLDER[kind.value]))
        begin = upto
    if braille and eighths % 8:  # the last cell shows how far it is filled
        last = row.mix[-1][0] if row.mix else row.kind
        line = [*_first(line, eighths // 8), Segment(_EIGHTHS[eighths % 8], HOLDER[last.value])]
    return Segment.adjust_line_length(line, width)


def _first(line: Line, cells: int) -> Line:
    return Segment.adjust_line_length(line, cells, pad=False)


def _percent(share: float) -> str:
    if share <= 0:
        return "0%"
    if share >= 1:
        return "100%"
    percent = 100 * share
    if percent < 0.1:
        return "<0.1%"
    return f"{percent:.0f}%" if percent >= 9.95 else f"{percent:.1f}%"


def _mark(chosen: bool, opened: bool) -> str:
    return (HERE if chosen else " ") + (MORE if opened else " ")


def part_line(part: Part, width: int, *, chosen: bool = False) -> Line:
    """Return the line about an operation's allocations of one shape.

    It shows bytes, count, shape, what they are for, the operation, and the script's line.
    """
    shape_cells = 24 if width >= 100 else 18
    region_cells = 8 if width >= 100 else 0
    place = spot(part.line.file, part.line.line) if part.line else ""
    place_cells = min(cell_len(place), 26 if width >= 120 else 16)
    text = f"{format_short(part.bytes):>{_BYTES}} {f'{FAILED_MARK}{part.count}':<6}"
    line: Line = [
        Segment(HERE if chosen else " ", BOLD),
        Segment(f"   {text}", CHOSEN if chosen else PLAIN),
        Segment(exactly(fit(shape_text(part), shape_cells), shape_cells) + " "),
    ]
    if region_cells:
        line.append(Segment(exactly(safe(part.region), region_cells) + " ", DIM))
    used = 4 + len(text) + shape_cells + 1 + (region_cells + 1 if region_cells else 0) + place_cells + 3
    room = max(4, width - used)
    name = part.python_name or words.operation(part.operation) or words.UNKNOWN
    line.append(Segment(exactly(end_of(name, room), room) + "  "))
    line.append(Segment(exactly(end_of(place, place_cells), place_cells), DIM))
    return Segment.adjust_line_length(line, width)


def shape_text(part: Part) -> str:
    """Return ``float32[64,256]``; without the shape if that is not known."""
    if part.shape is None:
        return safe(part.dtype)
    return f"{safe(part.dtype)}[{','.join(map(str, part.shape))}]"


def with_reason(row: Holder, lost: int) -> Holder:
    """Return the *row* of memory without a known holder, named by the reason; *lost* events are missing."""
    return replace(row, name=words.unknown(lost, bool(row.parts)))


def sum_line(shown: Standing, by: By, width: int) -> Line:
    """Return the line with the sum of the rows."""
    shape = columns(by, width)
    before = 2 + shape.name + 1 + (shape.kind + 1 if shape.kind else 0)
    text = words.sum_told(len(shown.holders), shown.total - shown.unknown, shown.unknown)
    label = exactly(end_of(f"  {words.SUM}  {text}", before), before)
    return [Segment(label, DIM), Segment(f"{format_short(shown.total):>{_BYTES}}", BOLD)]


# The lines above and below the table.


def facts(
    window: events.Holders,
    higher: int | None,
    made: Happened | None,
    at: float,
    width: int,
    rows: int,
) -> list[Line]:
    """Return figures about the window, in at most *rows* lines of *width* cells. The last ones are left out first.

    *at* is when its peak was, in seconds of the run.
    """
    items: list[Line] = [
        _item("peak", format_bytes(window.peak), bold=True),
        *([[Segment(words.lower_peak(higher), WARNING)]] if higher else []),
        _item("recorded at", clock(at)),
        *([_item("opened", window.opened_for)] if window.opened_for else []),
    ]
    if made is not None and made.operation:
        items.append(_item(words.PEAK_BY, end_of(words.operation(made.operation), _OPERATION_MOST)))
    if window.phase:
        items.append(_item("in", safe(window.phase)))
    waited = window.opened is events.Opened.WAITING
    if not (window.steps or window.phase or waited) and (short := window.closed.text):
        items.append([Segment(short, WARNING)])
    if window.function and window.steps:
        items.append(_item("step of", safe(window.function)))
    items.append(_item(words.USED_BEFORE, format_bytes(window.before)))
    if window.cost_us is not None:
        items.append(_item(words.COST, duration(window.cost_us)))
    if window.lost:
        items.append([Segment(words.lost(window.lost), WARNING)])
    return [cut(line, width) for line in flow(items, width)[:rows]]


def legend(shown: Standing, width: int) -> Line:
    """Return the kinds in *shown*, the largest first and unknown last, with letter, name and bytes."""
    line: Line = [Segment(" ")]
    for row in shown.rows:
        look = HOLDER[row.kind.value]
        item = [
            Segment(LETTER[row.kind.value], look + BOLD),
            Segment(f" {words.kind(row.kind)} ", look),
            Segment(format_short(row.bytes)),
            Segment("  "),
        ]
        if width_of(line) + width_of(item) > width + 2:
            line.append(Segment(ELLIPSIS, DIM))
            break
        line += item
    return Segment.adjust_line_length(line, width, pad=False)


def detail(row: Holder, part: Part | None, width: int) -> Line:
    """Return the chosen line in full: what its kind means, or, for a *part*, its whole name and the script's line."""
    if part is None:
        said: Line = [Segment(f"  {words.KINDS[row.kind]}", DIM)]
        if len(row.kinds) > 1:
            said = []
            for kind, size in row.kinds:
                look = HOLDER[kind.value]
                said += [Segment(f"  {words.kind(kind)}", look), Segment(f" {format_short(size)}", DIM)]
        name = end_of(words.holder(row.name, row.kind), max(8, width - width_of(said) - 2))
        return cut([Segment(f" {name}", BOLD), *said], width)
    code = ""
    if part.line:
        code = f"  {spot(part.line.file, part.line.line)}  {part.line.code.strip()}"
    name = part.operation or part.python_name or words.UNKNOWN
    room = max(16, width - 1 - min(len(code), width // 2))
    name = end_of(name, room)
    return [Segment(f" {name}", BOLD), Segment(fit(code, max(0, width - 1 - width_of([Segment(name)]))), DIM)]


def calls(part: Part | None, width: int) -> Line:
    """Return the script's calls that led to the operation of *part*; the innermost come last, and are kept."""
    stack = list(frames(part.line)) if part else []
    text = " > ".join(stack)
    while len(stack) > 1 and cell_len(text) >= width - 1:
        del stack[0]
        text = " > ".join([ELLIPSIS, *stack])
    return [Segment(f" {fit(text, width - 1)}", DIM)]


def _item(name: str, value: str, *, bold: bool = False) -> Line:
    return [Segment(f"{name} ", DIM), Segment(value, PEAK if bold else PLAIN)]
