"""The stacked memory bar of a device, and the legend that names its layers."""

from collections.abc import Sequence
from itertools import accumulate

from rich.segment import Segment
from rich.style import Style

from tfmemtop.state.views import DevicePanel
from tfmemtop.ui.lines import Line, fit, segments, width_of
from tfmemtop.ui.palette import BOLD, DIM, LAYER, LIMIT, PEAK, PLAIN, Glyphs
from tfmemtop.units import UNKNOWN, format_bytes, format_short

EIGHTHS = "▏▎▍▌▋▊▉"
_LIMIT_MARK = LIMIT + Style(bold=True)
_DROPPED_FIRST = ("free", "others", "rest")
_GAP = "  "


def apportion(sizes: Sequence[int], width: int, first: int = 0) -> list[int]:
    """*width* cells shared out among *sizes*: their sum is *width* exactly (or 0, if all sizes are).

    Borders are rounded cumulatively, so that no layer is further than one cell from its place; a
    size above 0 gets at least one cell (the first one *first* cells) as long as there are enough,
    the first ones before the last.
    """
    total = sum(sizes)
    if total <= 0 or width <= 0:
        return [0] * len(sizes)
    least = [int(size > 0) for size in sizes]
    least[0] = max(least[0], first)
    ends = [(2 * end * width + total) // (2 * total) for end in accumulate(sizes)]
    reached = 0
    for index, need in enumerate(least):
        reached = ends[index] = min(width, max(ends[index], reached + need))
    if sum(least) <= width:
        needed_after = 0
        for index in range(len(ends) - 1, -1, -1):
            ends[index] = min(ends[index], width - needed_after)
            needed_after += least[index]
    return [end - start for start, end in zip([0, *ends], ends, strict=False)]


def bar(panel: DevicePanel, width: int, glyphs: Glyphs) -> Line:
    """*panel*'s layers side by side in *width* cells, frame included, with a mark at the limit.

    What of the capacity no layer accounts for (the driver's reserve, or all, before the first
    reading) stays blank; where the capacity is unknown the layers fill the bar.
    """
    inner = width - 2
    if inner < 1:
        return [Segment(" " * max(0, width))] if width > 0 else []
    sizes = [max(0, layer.size) for layer in panel.layers]
    total = max(panel.capacity or 0, sum(sizes))
    kinds = [layer.kind for layer in panel.layers] + [""]
    rest = total - sum(sizes)
    if rest * inner < total and kinds[-2:-1] == ["free"]:
        sizes[-1], rest = sizes[-1] + rest, 0  # less than a cell: no gap at the end of every bar
    sizes.append(rest)
    # The one solid layer can end within a cell: it takes the cell it ends in.
    eighths = -(-sizes[0] * inner * 8 // total) if total and kinds[0] == "in_use" and not glyphs.ascii else 0
    cells = apportion(sizes, inner, first=-(-eighths // 8))
    texts = [glyphs.fill.get(kind, " ") * count for kind, count in zip(kinds, cells, strict=True)]
    if eighths % 8 and len(texts[0]) > eighths // 8:
        texts[0] = texts[0][:-1] + EIGHTHS[eighths % 8 - 1]
    text = "".join(texts).ljust(inner)
    styles = [LAYER.get(kind, PLAIN) for kind, count in zip(kinds, cells, strict=True) for _ in range(count)]
    styles += [PLAIN] * (inner - len(styles))
    if panel.limit is not None and 0 <= panel.limit < total:
        at = panel.limit * inner // total
        text = text[:at] + glyphs.limit + text[at + 1 :]
        styles[at] = _LIMIT_MARK
    left, right = glyphs.ends
    return [Segment(left, DIM), *_runs(text, styles), Segment(right, DIM)]


def _runs(text: str, styles: Sequence[Style]) -> Line:
    line: Line = []
    start = 0
    for index in range(1, len(text) + 1):
        if index == len(text) or styles[index] is not styles[start]:
            line.append(Segment(text[start:index], styles[start]))
            start = index
    return line


def usage(panel: DevicePanel) -> str:
    """``2.8 of 140.4 GiB``, ``880.0 MiB of 140.4 GiB``, ``— of 140.4 GiB``."""
    used, whole = format_bytes(panel.used), format_bytes(panel.capacity)
    unit = " " + whole.rpartition(" ")[2]
    return f"{used.removesuffix(unit)} of {whole}"


def short_usage(panel: DevicePanel) -> str:
    """``2.8/140.4G``, the narrow form of :func:`usage`."""
    used, whole = format_short(panel.used), format_short(panel.capacity)
    return f"{used[:-1] if used[-1:] == whole[-1:] != UNKNOWN else used}/{whole}"


def legend(panel: DevicePanel, width: int, rows: int, glyphs: Glyphs) -> list[Line]:
    """What the bar shows in words and sizes, in at most *rows* lines of at most *width* cells.

    The allocators' limit and peak stand at the right; where room lacks, layers that the bar and
    the total already tell are left out first.
    """
    items = {layer.kind: _item(layer.kind, layer.label, layer.size, glyphs) for layer in panel.layers}
    marks: Line = []
    if "in_use" in items:
        if "cached" not in items:
            items = {"in_use": items["in_use"], "cached": _item("cached", "cached", None, glyphs), **items}
        marks = segments(
            [
                (f"limit {'' if panel.limit is None else glyphs.limit}", LIMIT),
                (format_short(panel.limit), PLAIN),
                (_GAP + "peak ", DIM),
                (format_short(panel.peak), PEAK),
            ]
        )
    for dropped in range(len(_DROPPED_FIRST) + 1):
        kept = [item for kind, item in items.items() if kind not in _DROPPED_FIRST[:dropped]]
        lines = _flow(kept, marks, width)
        if len(lines) <= rows:
            return lines
    return lines[:rows]


def shared_legend(glyphs: Glyphs, width: int) -> Line:
    """The layers' names alone, once for several bars."""
    names = {"in_use": "in use", "cached": "cached", "rest": "context+outside", "others": "others", "free": "free"}
    line: Line = [Segment(" ")]
    for kind, name in [*names.items(), ("limit", "limit")]:
        glyph, style = (glyphs.limit, LIMIT) if kind == "limit" else (glyphs.fill[kind], LAYER[kind])
        item = [Segment(glyph, style), Segment(f" {name}{_GAP}", DIM)]
        if width_of(line) + width_of(item) > width:
            break
        line += item
    return line


def note_line(panel: DevicePanel, width: int, glyphs: Glyphs) -> Line:
    """Why figures lack, cut to *width*."""
    return [Segment(fit(f" {panel.note}", width, glyphs), DIM)]


def _item(kind: str, label: str, size: int | None, glyphs: Glyphs) -> Line:
    # Sizes keep their width, so that nothing jumps sideways while they change.
    figure = f" {format_short(size):<6}"
    emphasis = {"in_use": BOLD, "free": DIM}.get(kind, PLAIN)
    return [Segment(glyphs.fill[kind], LAYER[kind]), Segment(f" {label}", DIM), Segment(figure, emphasis)]


def _flow(items: Sequence[Line], marks: Line, width: int) -> list[Line]:
    """*items* side by side, in as many lines as it takes, *marks* at the right end of the last."""
    lines: list[Line] = [[Segment(" ")]]
    for item in items:
        if width_of(lines[-1]) > 1 and width_of(lines[-1]) + width_of(item) > width:
            lines.append([Segment(" ")])
        lines[-1] += [*item, Segment(_GAP)]
    if marks:
        room = width - width_of(lines[-1]) - width_of(marks) - 1
        if room < 0:
            lines.append([Segment(" "), *marks])
        else:
            lines[-1] += [Segment(" " * room), *marks]
    return lines
