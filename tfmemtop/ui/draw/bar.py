"""The stacked memory bar of a device, and the legend that names its layers."""

from collections.abc import Sequence
from itertools import accumulate

from rich.segment import Segment
from rich.style import Style

from tfmemtop.reports.devices import note
from tfmemtop.state.views import FRAMEWORK_LAYERS, LAYER_NAMES, NEARLY_FULL_PERCENT, DevicePanel, LayerKind
from tfmemtop.ui.draw.glyphs import ENDS, FILL, LIMIT_MARK
from tfmemtop.ui.draw.lines import Line, fit, flow, segments, width_of
from tfmemtop.ui.draw.palette import BOLD, DIM, LAYER, LIMIT, NEARLY_FULL, PEAK, PLAIN
from tfmemtop.units import UNKNOWN, format_bytes, format_short

EIGHTHS = "▏▎▍▌▋▊▉"
_LIMIT_LOOK = LIMIT + Style(bold=True)
_DROPPED_FIRST = (LayerKind.FREE, LayerKind.OTHERS, LayerKind.REST)
_GAP = "  "


def apportion(sizes: Sequence[int], width: int, first: int = 0) -> list[int]:
    """Share *width* cells out among *sizes*. The cells add up to exactly *width*, or to 0 if all sizes are 0.

    Borders are rounded cumulatively, so that no layer is more than one cell from its place. A size above 0
    gets at least one cell (the first size at least *first* cells) as long as there are enough. If there are
    not, the last sizes get none.
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


def bar(panel: DevicePanel, width: int, braille: bool = True) -> Line:
    """Return *panel*'s layers side by side in *width* cells, frame included, with a mark at the limit.

    The part of the capacity that no layer accounts for stays blank: the driver's reserve, or, before the first
    reading, everything. If the capacity is unknown, the layers fill the bar. Without *braille*, it has
    whole cells only.
    """
    inner = width - 2
    if inner < 1:
        return [Segment(" " * max(0, width))] if width > 0 else []
    sizes = [max(0, layer.size) for layer in panel.layers]
    total = max(panel.capacity or 0, sum(sizes))
    kinds: list[str] = [*(layer.kind for layer in panel.layers), ""]
    rest = total - sum(sizes)
    if rest * inner < total and kinds[-2:-1] == [LayerKind.FREE]:
        sizes[-1], rest = sizes[-1] + rest, 0  # less than a cell: otherwise every bar would end with a gap
    sizes.append(rest)
    # Only the solid layer, in use, can end within a cell. That cell belongs to it.
    eighths = -(-sizes[0] * inner * 8 // total) if total and kinds[0] is LayerKind.IN_USE and braille else 0
    cells = apportion(sizes, inner, first=-(-eighths // 8))
    texts = [FILL.get(kind, " ") * count for kind, count in zip(kinds, cells, strict=True)]
    if eighths % 8 and len(texts[0]) > eighths // 8:
        texts[0] = texts[0][:-1] + EIGHTHS[eighths % 8 - 1]
    looks = _looks(panel)
    parts = [(text, looks.get(kind, PLAIN)) for text, kind in zip(texts, kinds, strict=True)]
    parts.append((" " * (inner - sum(map(len, texts))), PLAIN))
    line = segments(parts)
    if panel.limit is not None and panel.limit < total:
        at = panel.limit * inner // total
        before, _, after = Segment.divide(line, [at, at + 1, inner])
        line = [*before, Segment(LIMIT_MARK, _LIMIT_LOOK), *after]
    left, right = ENDS
    return [Segment(left, DIM), *line, Segment(right, DIM)]


def usage(panel: DevicePanel) -> str:
    """Return what is used of the capacity: ``2.8 of 140.4 GiB``, ``880.0 MiB of 140.4 GiB``, ``— of 140.4 GiB``."""
    used, whole = format_bytes(panel.used), format_bytes(panel.capacity)
    unit = " " + whole.rpartition(" ")[2]
    return f"{used.removesuffix(unit)} of {whole}"


def short_usage(panel: DevicePanel) -> str:
    """Return the narrow form of :func:`usage`: ``2.8/140.4G``."""
    used, whole = format_short(panel.used), format_short(panel.capacity)
    return f"{used[:-1] if used[-1:] == whole[-1:] != UNKNOWN else used}/{whole}"


def legend(panel: DevicePanel, width: int, rows: int) -> list[Line]:
    """Return the bar's layers as words and sizes, in at most *rows* lines of at most *width* cells.

    The allocators' limit and peak stand at the right. Where room lacks, free, others and rest are left out, in
    this order: the bar and the total already show them.
    """
    looks = _looks(panel)
    items: dict[LayerKind, Line] = {
        layer.kind: _item(layer.kind, layer.name, layer.size, looks) for layer in panel.layers
    }
    marks: Line = []
    if LayerKind.IN_USE in items:
        if LayerKind.CACHED not in items:
            cached = _item(LayerKind.CACHED, "cached", None, looks)
            items = {LayerKind.IN_USE: items[LayerKind.IN_USE], LayerKind.CACHED: cached, **items}
        marks = segments(
            [
                *_of_limit(panel),
                (f"limit {'' if panel.limit is None else LIMIT_MARK}", LIMIT),
                (format_short(panel.limit), PLAIN),
                *([(_GAP + "peak ", DIM), (format_short(panel.peak), PEAK)] if panel.moment is None else []),
            ]
        )
    for dropped in range(len(_DROPPED_FIRST) + 1):
        kept = [item for kind, item in items.items() if kind not in _DROPPED_FIRST[:dropped]]
        lines = _flow(kept, marks, width)
        if len(lines) <= rows:
            return lines
    return lines[:rows]


def _is_nearly_full(panel: DevicePanel) -> bool:
    percent = panel.percent_of_limit
    return percent is not None and percent >= NEARLY_FULL_PERCENT


def _looks(panel: DevicePanel) -> dict[str, Style]:
    """Return the layers' styles. The style of in use changes once the limit is nearly reached."""
    return LAYER | {LayerKind.IN_USE: NEARLY_FULL} if _is_nearly_full(panel) else LAYER


def _of_limit(panel: DevicePanel) -> list[tuple[str, Style]]:
    """Return what stands before the limit once that is nearly reached: ``99% of``."""
    return [(f"{panel.percent_of_limit}% of ", BOLD + NEARLY_FULL)] if _is_nearly_full(panel) else []


def shared_legend(panels: Sequence[DevicePanel], width: int) -> Line:
    """Return a legend for the bars of *panels*: the layers' names without sizes."""
    without = set(FRAMEWORK_LAYERS) - {layer.kind for panel in panels for layer in panel.layers}
    looks = [(name, FILL[kind], LAYER[kind]) for kind, name in LAYER_NAMES.items() if kind not in without]
    line: Line = [Segment(" ")]
    for name, glyph, style in [*looks, ("limit", LIMIT_MARK, LIMIT)]:
        item = [Segment(glyph, style), Segment(f" {name}{_GAP}", DIM)]
        if width_of(line) + width_of(item) > width:
            break
        line += item
    return line


def note_line(panel: DevicePanel, width: int) -> Line:
    """Return the reason why figures are missing, cut to *width* cells."""
    return [Segment(fit(f" {note(panel)}", width), DIM)]


def _item(kind: LayerKind, label: str, size: int | None, looks: dict[str, Style]) -> Line:
    # Sizes keep their width, so that nothing moves sideways while they change.
    figure = f" {format_short(size):<6}"
    emphasis = {LayerKind.IN_USE: BOLD, LayerKind.FREE: DIM}.get(kind, PLAIN)
    return [Segment(FILL[kind], looks[kind]), Segment(f" {label}", DIM), Segment(figure, emphasis)]


def _flow(items: Sequence[Line], marks: Line, width: int) -> list[Line]:
    """Return *items* side by side in as many lines as they need, with *marks* at the right end of the last one."""
    lines = flow(items, width, _GAP)
    if marks:
        room = width - width_of(lines[-1]) - width_of(marks) - 1
        if room < len(_GAP):
            lines.append([Segment(" "), *marks])
        else:
            lines[-1] += [Segment(" " * room), *marks]
    return lines
