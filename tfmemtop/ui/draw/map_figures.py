"""The lines around a pool's map: its figures, chunks by size, the biggest chunks, and how it grew. Pure."""

from collections.abc import Sequence

from rich.segment import Segment
from rich.style import Style

from tfmemtop import events
from tfmemtop.state import State
from tfmemtop.state.lookup import device_of
from tfmemtop.state.pool_views import GrowthView, PoolKey, PoolMap, RegionView, percent
from tfmemtop.ui.draw.chunk_map import SHADES, Arranged, clock, taken_at
from tfmemtop.ui.draw.lines import Line, fit, flow, segments, width_of
from tfmemtop.ui.draw.palette import BOLD, DIM, LAYER, PLAIN, TITLE, WARNING
from tfmemtop.units import UNKNOWN, duration, format_bytes, format_count, format_short

Section = tuple[str, list[Line]]
"""A title and its lines, the most important ones first."""

_BADLY_CUT = 0.5  # share of the free bytes outside the largest free chunk, from which a warning is due


def figures(view: PoolMap, reading: events.Allocator | None, width: int, rows: int) -> list[Line]:
    """Return the pool's figures, in at most *rows* lines of at most *width* cells. The last are left out first."""
    cut = round(100 * view.read.fragmentation)
    items: list[Line] = [
        _item("pool", format_bytes(view.read.pool), BOLD),
        _item("in use", format_bytes(view.read.in_use), LAYER["in_use"]),
        _item("cached", format_bytes(view.cached), LAYER["cached"]),
        _item("largest free", format_bytes(view.read.largest_free)),
        _item("fragmentation", f"{cut}%", _how_cut(view)),
        _item("chunks", f"{format_count(view.read.chunks)} ({format_count(view.read.chunks_in_use)} in use)"),
    ]
    shown = len(view.regions)
    if view.read.regions_found > shown:
        items.append(_item("regions", f"{view.read.regions_found}, the first {shown} shown", WARNING))
    else:
        items.append(_item("regions", str(shown)))
    if reading is not None:
        items.append(_item("limit", format_bytes(reading.limit)))
        items.append(_item("peak in use", format_bytes(reading.peak)))
        if reading.peak_pool is not None:
            items.append(_item("peak pool", format_bytes(reading.peak_pool)))
        if reading.allocations is not None:
            items.append(_item("allocations", format_count(reading.allocations)))
    return flow(items, width)[:rows]


def inside(view: PoolMap, reading: events.Allocator | None, width: int, *, ended: bool = False) -> list[Line]:
    """Return one line of figures that the table of allocators does not show.

    If the pool has grown since the map was read, the map's figures are of another moment, and are left blank. After
    the process has *ended*, no other map comes: if the last one shows another use than the table, its time is said.
    """
    items = [_item("largest free", UNKNOWN), _item("fragmented", UNKNOWN)]
    if reading is None or reading.pool in (None, view.read.pool):
        cut = _item("fragmented", f"{round(100 * view.read.fragmentation)}%", _how_cut(view))
        items = [_item("largest free", format_short(view.read.largest_free)), cut]
    if ended and reading is not None and reading.in_use != view.read.in_use:
        items.insert(0, _item("map of", clock(view.at_s)))
    if reading is not None and reading.peak_pool is not None:
        items.append(_item("peak pool", format_short(reading.peak_pool)))
    if reading is not None and reading.allocations is not None:
        items.append(_item("allocations", format_count(reading.allocations)))
    items.append(_item("chunks", format_count(view.read.chunks)))
    return flow(items, width, "  ")[:1]


def shades_legend(cell_bytes: int) -> Line:
    """Return what the glyphs mean, and how many bytes a cell stands for."""
    none, light, medium, dense, full = list(SHADES)
    return segments(
        [
            (f" {full}", LAYER["in_use"]),
            (" in use ", DIM),
            (dense, LAYER["in_use"]),
            (medium + light, LAYER["cached"]),
            (" partly ", DIM),
            (none, DIM),
            (" free", DIM),
            (f"   a cell is {format_short(cell_bytes)}", DIM),
        ]
    )


def legend(view: PoolMap, arranged: Arranged, width: int) -> Line:
    """Return what the glyphs mean, and how long and how often the map is read, if that fits."""
    line = shades_legend(arranged.cell_bytes)
    more = ""
    if view.read.cost_us is not None:
        more = f"   read in {duration(view.read.cost_us)}"
    if more and view.read.pace_s is not None:
        more += f", every {view.read.pace_s:.1f} s"
    if more and width_of(line) + len(more) <= width:
        line.append(Segment(more, DIM))
    return line


def place(state: State, key: PoolKey) -> str:
    """Return the device's name, and the physical GPU if its number is another: ``GPU:0``, ``GPU:0 on GPU 3``."""
    device = device_of(state, *key)
    if device is None or key[1] == f"GPU:{device.info.index}":
        return key[1]
    return f"{key[1]} on GPU {device.info.index}"


def region_line(region: RegionView, width: int) -> Line:
    """One region in a sentence."""
    taken = "when it was taken is not known" if region.taken_s is None else f"taken at {taken_at(region)}"
    text = f" region {region.number} at {format_short(region.offset)}, {taken}, {format_short(region.size)}"
    text += f", {region.full}% full"
    chunks = f"{region.chunks} chunk{'' if region.chunks == 1 else 's'}"
    more = f", {chunks}, {region.chunks_in_use} in use, at address {region.address:#x}"
    return [Segment(text[:width], BOLD), Segment(fit(more, width - len(text)), DIM)]


def sections(view: PoolMap, width: int) -> list[Section]:
    """Return the tables beside the map, each line at most *width* cells."""
    return [
        ("Number of chunks by size", _sizes(view, width)),
        ("Biggest chunks in use", _biggest(view, width)),
        ("How the pool grew", _growths(view.growths, width)),
    ]


def stack(found: Sequence[Section], width: int, height: int) -> list[Line]:
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
        result += [[Segment(f" {name}"[:width], TITLE)], *lines[:give]]
    return result


def _item(name: str, value: str, style: Style = PLAIN) -> Line:
    return [Segment(f"{name} ", DIM), Segment(value, style)]


def _how_cut(view: PoolMap) -> Style:
    return WARNING if view.read.fragmentation >= _BADLY_CUT else PLAIN


def _sizes(view: PoolMap, width: int) -> list[Line]:
    rows = view.sizes
    if not rows:
        return []
    most = max(max(row.in_use for row in rows), 1)
    free_bytes = any(row.free for row in rows)
    room = max(3, width - 9 - 8 - (18 if free_bytes else 0))
    full = SHADES[4]
    head = f"   from  {'in use':<{room + 7}}"
    head += "   free free bytes" if free_bytes else ""
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
            least = "≥" if row.free_above else ""
            free = f" {least + format_short(row.free_bytes):>10}"
            line += [Segment(f" {row.free:>6}"), Segment(free, LAYER["cached"])]
        lines.append(line)
    return lines


def _biggest(view: PoolMap, width: int) -> list[Line]:
    if not view.biggest:
        return []
    places = [f"#{one.region} +{format_short(one.offset)}" if one.region is not None else "" for one in view.biggest]
    # Without room for the places, the requested size is left out: it is the size less the waste.
    asked = width >= 31 + max(map(len, places))
    heads = "    size " + ("  asked " if asked else "")
    lines: list[Line] = [[Segment(f"{heads}       waste  region"[:width], DIM)]]
    for chunk, where in zip(view.biggest, places, strict=True):
        share = percent(chunk.waste, chunk.size)
        waste = f"{format_short(chunk.waste)} {share:>2}%" if chunk.waste else UNKNOWN
        head = f" {format_short(chunk.size):>7} " + (f"{format_short(chunk.requested):>7} " if asked else "")
        line = segments([(head, PLAIN), (f"{waste:>12}", WARNING if share >= 10 else DIM)])
        lines.append([*line, Segment(fit(f"  {where}", max(0, width - width_of(line))), DIM)])
    return lines


def _growths(growths: Sequence[GrowthView], width: int) -> list[Line]:
    """Return the table of *growths*, the newest first."""
    if not growths:
        return []
    full = " full" if width >= 29 + len("#100, 100% full") else ""
    heads = "        at     took    pool  "
    lines: list[Line] = [[Segment(f"{heads}{'now' if full else 'now full'}"[:width], DIM)]]
    for growth in reversed(growths):
        sign = "+" if growth.change >= 0 else "-"
        tenth = f"{growth.at_s % 1:.1f}"[1:] if growth.at_s % 1 < 0.95 else ".9"
        now = f"#{growth.region}, {growth.full}%{full}" if growth.region is not None else ""
        now = "given back" if growth.change < 0 else now
        text = f" {clock(growth.at_s) + tenth:>9} {sign + format_short(abs(growth.change)):>8}"
        text += f" {format_short(growth.after):>7}  "
        lines.append([Segment(text[:width]), Segment(fit(now, max(0, width - len(text))), DIM)])
    return lines
