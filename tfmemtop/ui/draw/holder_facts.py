"""The lines around the table of holders: facts about the window, the kinds, and the chosen line in full. Pure."""

from collections.abc import Sequence

from rich.segment import Segment

from tfmemtop import events
from tfmemtop.findings import holder_texts as words
from tfmemtop.findings.places import spot
from tfmemtop.safe import safe
from tfmemtop.state.holder_views import Happened, HolderRow, Listed
from tfmemtop.state.holders import Part
from tfmemtop.ui.draw.chunk_map import clock
from tfmemtop.ui.draw.lines import Line, cut, fit, width_of
from tfmemtop.ui.draw.map_figures import duration
from tfmemtop.ui.draw.palette import BOLD, DIM, HOLDER, LETTER, PEAK, PLAIN, WARNING, Glyphs
from tfmemtop.ui.draw.text import end_of
from tfmemtop.units import format_bytes, format_short

_OPERATION_MOST = 60
_GAP = "   "


def facts(
    window: events.Holders, made: Happened | None, began: float, width: int, rows: int, glyphs: Glyphs
) -> list[Line]:
    """Return figures about the window, in at most *rows* lines of *width* cells. The last ones are left out first."""
    items: list[Line] = [
        _item("peak", format_bytes(window.peak), glyphs, bold=True),
        _item("recorded at", clock(began), glyphs),
        _item("opened", words.opened(window.opened), glyphs),
    ]
    if made is not None and made.operation:
        items.append(
            _item(words.PEAK_BY, end_of(words.operation(made.operation), _OPERATION_MOST, glyphs.ellipsis), glyphs)
        )
    waited = window.opened is events.Opened.WAITING
    if not window.steps and not waited and (short := words.closed(window.closed)):
        items.append([Segment(short, WARNING)])
    if window.function and window.steps:
        items.append(_item("step of", safe(window.function), glyphs))
    items.append(_item(words.USED_BEFORE, format_bytes(window.before), glyphs))
    if window.cost_us is not None:
        items.append(_item(words.COST, duration(window.cost_us), glyphs))
    if window.lost:
        items.append([Segment(words.lost(window.lost), WARNING)])
    return [cut(line, width, glyphs) for line in _flow(items, width)[:rows]]


def legend(shown: Listed, width: int, glyphs: Glyphs) -> Line:
    """Return the kinds in *shown*, the largest first and unknown last, with letter, name and bytes."""
    line: Line = [Segment(" ")]
    for row in [*shown.rows, *([shown.unknown] if shown.unknown else [])]:
        look = HOLDER[row.kind.value]
        item = [
            Segment(LETTER[row.kind.value], look + BOLD),
            Segment(f" {words.kind(row.kind)} ", look),
            Segment(format_short(row.bytes)),
            Segment("  "),
        ]
        if width_of(line) + width_of(item) > width + 2:
            line.append(Segment(glyphs.ellipsis, DIM))
            break
        line += item
    return Segment.adjust_line_length(line, width, pad=False)


def detail(row: HolderRow, part: Part | None, width: int, glyphs: Glyphs) -> Line:
    """Return the chosen line in full: what its kind means, or, for a *part*, its whole name and the script's line."""
    if part is None:
        said: Line = [Segment(f"  {words.KINDS[row.kind]}", DIM)]
        if len(row.kinds) > 1:
            said = []
            for kind, size in row.kinds:
                look = HOLDER[kind.value]
                said += [Segment(f"  {words.kind(kind)}", look), Segment(f" {format_short(size)}", DIM)]
        name = end_of(words.holder(row.name, row.kind), max(8, width - width_of(said) - 2), glyphs.ellipsis)
        return cut([Segment(f" {name}", BOLD), *said], width, glyphs)
    code = ""
    if part.line:
        code = f"  {spot(part.line.file, part.line.line)}  {part.line.code.strip()}"
    name = part.operation or part.python_name or words.NO_NAME
    room = max(16, width - 1 - min(len(code), width // 2))
    name = end_of(name, room, glyphs.ellipsis)
    return [Segment(f" {name}", BOLD), Segment(fit(code, max(0, width - 1 - width_of([Segment(name)])), glyphs), DIM)]


def _item(name: str, value: str, glyphs: Glyphs, *, bold: bool = False) -> Line:
    return [Segment(f"{name} ", DIM), Segment(value, PEAK if bold else PLAIN)]


def _flow(items: Sequence[Line], width: int) -> list[Line]:
    lines: list[Line] = [[Segment(" ")]]
    for item in items:
        gap = _GAP if len(lines[-1]) > 1 else ""
        if gap and width_of(lines[-1]) + len(gap) + width_of(item) > width:
            lines.append([Segment(" ")])
            gap = ""
        lines[-1] += [Segment(gap), *item] if gap else item
    return lines
