"""The lines around a pool's map: its figures, chunks by size, the biggest chunks, and how it grew. Pure."""

from collections.abc import Callable, Sequence

from rich.segment import Segment
from rich.style import Style

from tfmemtop import events
from tfmemtop.reports import labels
from tfmemtop.state.pool_views import GrowthView, PoolMap, RegionView, percent
from tfmemtop.ui.draw import map_text as words
from tfmemtop.ui.draw.chunk_map import Arranged, clock, shades, taken_at
from tfmemtop.ui.draw.lines import Line, fit, flow, segments, width_of
from tfmemtop.ui.draw.palette import BOLD, DIM, LAYER, PLAIN, TITLE, WARNING, Glyphs
from tfmemtop.units import format_bytes, format_count, format_short

Section = tuple[str, list[Line]]
"""A title and its lines, the most important ones first."""

_BADLY_CUT = 0.5  # share of the free bytes outside the largest free chunk, from which a warning is due


def figures(view: PoolMap, reading: events.Allocator | None, width: int, rows: int) -> list[Line]:
    """Return the pool's figures, in at most *rows* lines of at most *width* cells. The last are left out first."""
    cut = round(100 * view.fragmentation)
    items: list[Line] = [
        _item(labels.POOL, format_bytes(view.pool), BOLD),
        _item(labels.IN_USE, format_bytes(view.in_use), LAYER["in_use"]),
        _item(labels.CACHED, format_bytes(view.cached), LAYER["cached"]),
        _item(labels.LARGEST_FREE, format_bytes(view.largest_free)),
        _item(labels.FRAGMENTATION, f"{cut}%", _how_cut(view)),
        _item(labels.CHUNKS, words.chunks(view.chunks, view.chunks_in_use)),
    ]
    style = WARNING if view.regions_found > len(view.regions) else PLAIN
    items.append(_item(labels.REGIONS, words.regions(view.regions_found, len(view.regions)), style))
    if reading is not None:
        items.append(_item(labels.LIMIT, format_bytes(reading.limit)))
        items.append(_item(labels.PEAK_IN_USE, format_bytes(reading.peak)))
        if reading.peak_pool is not None:
            items.append(_item(labels.PEAK_POOL, format_bytes(reading.peak_pool)))
        if reading.allocations is not None:
            items.append(_item(labels.ALLOCATIONS, format_count(reading.allocations)))
    return flow(items, width)[:rows]


def inside(view: PoolMap, reading: events.Allocator | None, width: int, glyphs: Glyphs) -> list[Line]:
    """Return one line of figures that the table of allocators does not show."""
    cut = _item(labels.FRAGMENTED, f"{round(100 * view.fragmentation)}%", _how_cut(view))
    items = [_item(labels.LARGEST_FREE, format_short(view.largest_free)), cut]
    if reading is not None and reading.peak_pool is not None:
        items.append(_item(labels.PEAK_POOL, format_short(reading.peak_pool)))
    if reading is not None and reading.allocations is not None:
        items.append(_item(labels.ALLOCATIONS, format_count(reading.allocations)))
    items.append(_item(labels.CHUNKS, format_count(view.chunks)))
    return flow(items, width, "  ")[:1]


def shades_legend(cell_bytes: int, glyphs: Glyphs) -> Line:
    """Return what the glyphs mean, and how many bytes a cell stands for."""
    none, light, medium, dense, full = list(shades(glyphs))
    return segments(
        [
            (f" {full}", LAYER["in_use"]),
            (f" {labels.IN_USE} ", DIM),
            (dense, LAYER["in_use"]),
            (medium + light, LAYER["cached"]),
            (f" {labels.PARTLY} ", DIM),
            (none, DIM),
            (f" {labels.FREE}", DIM),
            (f"   {words.cell(cell_bytes)}", DIM),
        ]
    )


def legend(view: PoolMap, arranged: Arranged, width: int, glyphs: Glyphs) -> Line:
    """Return what the glyphs mean, and how long and how often the map is read, if that fits."""
    line = shades_legend(arranged.cell_bytes, glyphs)
    more = ""
    if view.cost_us is not None:
        more = f"   {words.read_in(duration(view.cost_us), view.pace_s)}"
    if more and width_of(line) + len(more) <= width:
        line.append(Segment(more, DIM))
    return line


def duration(microseconds: int) -> str:
    """Return a duration as text: ``135 µs``, ``3.0 ms``, ``1.2 s``."""
    if microseconds < 1000:
        return f"{microseconds} µs"
    return f"{microseconds / 1e3:.1f} ms" if microseconds < 1_000_000 else f"{microseconds / 1e6:.1f} s"


def region_line(region: RegionView, width: int, glyphs: Glyphs) -> Line:
    """One region in a sentence."""
    taken = "" if region.taken_s is None else taken_at(region, glyphs)
    text = " " + words.region(region.number, region.offset, region.size, region.full, taken)
    more = words.region_more(region.chunks, region.chunks_in_use, region.address)
    return [Segment(text[:width], BOLD), Segment(fit(more, width - len(text), glyphs), DIM)]


def sections(view: PoolMap, width: int, glyphs: Glyphs) -> list[Section]:
    """Return the tables beside the map, each line at most *width* cells."""
    return [
        (words.SIZES, _sizes(view, width, glyphs)),
        (words.BIGGEST, _biggest(view, width, glyphs)),
        (words.GROWTH, _growths(view.growths, width, glyphs)),
    ]


def stack(found: Sequence[Section], width: int, height: int, title: Callable[[int, str], Line]) -> list[Line]:
    """Return the sections *found* below each other in *height* lines, shared evenly among those that need them."""
    found = [(name, lines) for name, lines in found if lines]
    # A title alone is of no use: no more sections than can have three lines each.
    found = found[: max(0, height // 3)]
    room = height - len(found)
    given = [0] * len(found)
    while room > 0 and any(give < len(lines) for give, (_, lines) in zip(given, found, strict=True)):
        for index, (_, lines) in enumerate(found):
            if room > 0 and given[index] < len(lines):
                given[index] += 1
                room -= 1
    result: list[Line] = []
    for give, (name, lines) in zip(given, found, strict=True):
        result += [title(width, name), *lines[:give]]
    return result


def side_title(width: int, name: str) -> Line:
    """A table's title."""
    return [Segment(f" {name}"[:width], TITLE)]


def _item(name: str, value: str, style: Style = PLAIN) -> Line:
    return [Segment(f"{name} ", DIM), Segment(value, style)]


def _how_cut(view: PoolMap) -> Style:
    return WARNING if view.fragmentation >= _BADLY_CUT else PLAIN


def _sizes(view: PoolMap, width: int, glyphs: Glyphs) -> list[Line]:
    rows = view.sizes
    if not rows:
        return []
    most = max(max(row.in_use for row in rows), 1)
    free_bytes = any(row.free for row in rows)
    room = max(3, width - 9 - 8 - (18 if free_bytes else 0))
    full = shades(glyphs)[4]
    head = f" {labels.FROM:>6}  {labels.IN_USE:<{room + 7}}"
    head += f" {labels.FREE:>6} {labels.FREE_BYTES:>10}" if free_bytes else ""
    lines: list[Line] = [[Segment(head[:width], DIM)]]
    # The largest chunks first: where room lacks, the smallest are left out, which hold the least.
    for row in reversed(rows):
        bar = full * (max(1, row.in_use * room // most) if row.in_use else 0)
        line = [
            Segment(f" {format_short(row.size):>6}  "),
            Segment(f"{bar:<{room}}", LAYER["in_use"]),
            Segment(f"{row.in_use or '':>7}"),
        ]
        if free_bytes and row.free:
            # BFC's last bin has no upper limit on the size of its chunks.
            least = (">=" if glyphs.ascii else "≥") if row.free_above else ""
            free = f" {least + format_short(row.free_bytes):>10}"
            line += [Segment(f" {row.free:>6}"), Segment(free, LAYER["cached"])]
        lines.append(line)
    return lines


def _biggest(view: PoolMap, width: int, glyphs: Glyphs) -> list[Line]:
    if not view.biggest:
        return []
    places = [f"#{one.region} +{format_short(one.offset)}" if one.region is not None else "" for one in view.biggest]
    # Without room for the places, the requested size is left out: it is the size less the waste.
    asked = width >= 31 + max(map(len, places))
    heads = f" {labels.SIZE:>7} " + (f"{labels.ASKED:>7} " if asked else "")
    lines: list[Line] = [[Segment(f"{heads}{labels.WASTE:>12}  {labels.REGION}"[:width], DIM)]]
    for chunk, where in zip(view.biggest, places, strict=True):
        share = percent(chunk.waste, chunk.size)
        waste = f"{format_short(chunk.waste)} {share:>2}%" if chunk.waste else glyphs.dash
        head = f" {format_short(chunk.size):>7} " + (f"{format_short(chunk.requested):>7} " if asked else "")
        line = segments([(head, PLAIN), (f"{waste:>12}", WARNING if share >= 10 else DIM)])
        lines.append([*line, Segment(fit(f"  {where}", max(0, width - width_of(line)), glyphs), DIM)])
    return lines


def _growths(growths: Sequence[GrowthView], width: int, glyphs: Glyphs) -> list[Line]:
    """Return the table of *growths*, the newest first."""
    if not growths:
        return []
    full = f" {labels.FULL}" if width >= 29 + len("#100, 100% full") else ""
    heads = f" {labels.AT:>9} {labels.TOOK:>8} {labels.POOL:>7}  "
    lines: list[Line] = [[Segment(f"{heads}{labels.NOW if full else f'{labels.NOW} {labels.FULL}'}"[:width], DIM)]]
    for growth in reversed(growths):
        sign = "+" if growth.change >= 0 else "-"
        tenth = f"{growth.at_s % 1:.1f}"[1:] if growth.at_s % 1 < 0.95 else ".9"
        now = f"#{growth.region}, {growth.full}%{full}" if growth.region is not None else ""
        now = labels.GIVEN_BACK if growth.change < 0 else now
        text = f" {clock(growth.at_s) + tenth:>9} {sign + format_short(abs(growth.change)):>8}"
        text += f" {format_short(growth.after):>7}  "
        lines.append([Segment(text[:width]), Segment(fit(now, max(0, width - len(text)), glyphs), DIM)])
    return lines
