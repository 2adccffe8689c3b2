"""The panel of allocators, also other frameworks': what they hold, what the script requested, and what took effect."""

from collections.abc import Callable, Sequence

from msgspec.structs import replace
from rich.cells import cell_len
from rich.segment import Segment

from tfmemtop.findings import holders as holder_texts
from tfmemtop.findings.missing import not_readable, refusal_text
from tfmemtop.findings.names import call_text, spot
from tfmemtop.findings.rules.attached import FROM_OUTSIDE
from tfmemtop.safe import safe
from tfmemtop.state import State
from tfmemtop.state.holder_views import age_s
from tfmemtop.state.holders import By
from tfmemtop.state.lookup import of_run
from tfmemtop.state.pool_views import AllocatorRow, PoolKey, PoolMap, allocators, pool_map
from tfmemtop.state.waiting import waiting
from tfmemtop.ui.draw import chunk_map, map_figures
from tfmemtop.ui.draw.columns import Column, cells_of, fitting_columns, names
from tfmemtop.ui.draw.glyphs import ELLIPSIS
from tfmemtop.ui.draw.holder_table import row_line
from tfmemtop.ui.draw.lines import Line, Panel, cut, fit
from tfmemtop.ui.draw.palette import BOLD, DIM, GOOD, LAYER, PEAK, WARNING
from tfmemtop.ui.draw.text import exactly, wrap
from tfmemtop.ui.panels.holders_choice import HoldersChoice
from tfmemtop.ui.waiting import stage
from tfmemtop.units import UNKNOWN, format_short

_DEVICE: Column[AllocatorRow] = Column("DEVICE", 6, 9, lambda row: row.device, style=BOLD, left=True)
_PID: Column[AllocatorRow] = Column("PID", 7, 7, lambda row: row.pid)
_GPU: Column[AllocatorRow] = Column("GPU", 3, 6, lambda row: row.gpu)
_FIGURES: tuple[Column[AllocatorRow], ...] = (
    Column("IN USE", 7, 9, lambda row: row.in_use, format_short, LAYER["in_use"]),
    Column("PEAK", 7, 8, lambda row: row.peak, format_short, PEAK),
    Column("CACHED", 7, 5, lambda row: row.cached, format_short, LAYER["cached"]),
    Column("POOL", 7, 9, lambda row: row.pool, format_short),
    Column("LIMIT", 7, 8, lambda row: row.limit, format_short),
    Column("GROWTH", 6, 4, lambda row: row.growth, lambda growth: "on" if growth else "off"),
)


def allocator_table(rows: Sequence[AllocatorRow], width: int, height: int) -> list[Line]:
    """Return a heading and a line for each of *rows*, in at most *height* lines.

    If rows are left out, their last line shows how many. A device's GPU is shown only if a device and its GPU have
    different numbers, the process only if there are several.
    """
    device_cells = max(_DEVICE.width, *(cell_len(row.device) for row in rows if row.framework), 0)
    columns = [replace(_DEVICE, width=device_cells), *_FIGURES]
    if any(row.gpu is not None and row.device.partition(":")[2] != str(row.gpu) for row in rows):
        columns.insert(1, _GPU)
    if len({row.pid for row in rows}) > 1:
        columns.insert(1, _PID)
    columns = fitting_columns(columns, width - 1, least=2)
    fitting = max(1, height - 1)
    shown = rows if len(rows) <= fitting else rows[: fitting - 1]
    room = width - sum(map(cells_of, columns)) - 2
    lines: list[Line] = [[Segment(exactly(f" {names(columns)} " + ("ALLOCATOR" if room >= 12 else ""), width), DIM)]]
    lines += [_row(row, columns, room) for row in shown]
    if len(shown) < len(rows):
        lines.append([Segment(f" {ELLIPSIS} {len(rows) - len(shown)} more", DIM)])
    return lines[:height]


def _row(row: AllocatorRow, columns: Sequence[Column[AllocatorRow]], room: int) -> Line:
    line: Line = [Segment(" ")]
    for column in columns:
        text = column.pad(column.text(row))
        line.append(Segment(text + " ", DIM if row.ended else column.style))
    if room >= 4:
        name = safe(row.allocator or UNKNOWN) + (", ended" if row.ended else "")
        line.append(Segment(fit(name, room), DIM))
    return line


_BESIDE_FROM = 116
"""Width of the panel, in cells, from which the holders and the map stand side by side."""
_MAP_TITLED = 3
"""Height of a map, in lines, from which one of the lines is a title."""
_HOLDERS_LEAST, _HOLDERS_CELLS = 3, 40
"""The fewest lines and cells in which holders are shown, title included."""
_WAITING_MOST = 2
"""The most lines for the text on what is being waited for."""


class AllocatorPanel(Panel):
    """A line for each logical device; below, a map of one pool, and the script's own requests, newest last."""

    def __init__(self, chosen: Callable[[], PoolKey | None], *, braille: bool = True) -> None:
        """*chosen* returns the pool whose map is shown."""
        super().__init__()
        self._chosen = chosen
        self._braille = braille
        self._holders_of = HoldersChoice(self.state, None)
        self.map_rows = 0
        """Lines that are free for a map."""

    async def on_click(self) -> None:
        """Open the screen of the map, if a map is shown here."""
        if self.map_rows:
            await self.run_action("screen.map")

    def build(self, width: int, height: int) -> list[Line]:
        self.map_rows = 0
        rows = allocators(self.state)
        lines: list[Line] = [self.title_line(width, self._title(rows))]
        if not rows:
            return lines + self._waiting(self.state, width)
        requests = self._requests(width)
        # With little room, the rows come first, in at most two thirds of the lines; one allocator's map gets the rest.
        lines += allocator_table(rows, width, min(height - 1, max(4, height * 2 // 3)))
        room = height - len(lines)
        # The script's requests come last, but a third of the room is kept for them.
        kept = 0 if not requests or room < 2 else min(len(requests) + 1, max(2, room // 3))
        lines += self._inside(width, room - kept)
        room = height - len(lines)
        if requests and room >= 2:
            lines.append([Segment(" the script asked for", DIM)])
            lines += requests[-(room - 1) :]
        return lines

    def wanted_height(self, state: State, width: int) -> int | None:
        """Return how many lines the panel can fill; ``None`` if that is any number, as there is a map."""
        return None if allocators(state) else 1 + len(self._waiting(state, width))

    def _inside(self, width: int, room: int) -> list[Line]:
        """Return what the probe has read in the chosen pool, or why it can read nothing, in at most *room* lines."""
        key = self._chosen()
        process = self.state.processes.get(key[0]) if key else None
        if key is None or process is None or process.hooked is None or room < 1:
            return []
        if told := not_readable(process.hooked):
            # There is a second line only if the remedy would be cut off.
            text = ". ".join(told).rstrip(" .")
            return [[Segment(" " + line, DIM)] for line in wrap(text, width - 1)[: min(2, room)]]
        self.map_rows = max(0, room - 1)
        view = pool_map(self.state, key)
        if view is None:
            pool = process.hooked.pools.get(key[1])
            missing = refusal_text(pool.map) if pool and pool.map else ""
            return [[Segment(" " + fit(f"no map: {missing}", width - 1), DIM)]] if missing else []
        hooked = process.hooked
        lines = map_figures.inside(view, hooked.allocators.get(key[1]), width, ended=hooked.ended)[:room]
        room -= len(lines)
        if width < _BESIDE_FROM:
            holders = self._holders(key, width, room // 2)
            return lines + holders + self._map(view, key[1], width, room - len(holders))
        half = width // 2
        holders = self._holders(key, half - 1, room)
        if not holders:
            return lines + self._map(view, key[1], width, room)
        holders += [[]] * (room - len(holders))
        cells = self._map(view, key[1], width - half, room)
        cells += [[]] * (room - len(cells))
        return lines + [[*Segment.adjust_line_length(a, half), *b] for a, b in zip(holders, cells, strict=True)]

    def _map(self, view: PoolMap, device: str, width: int, room: int) -> list[Line]:
        """Return the map in *room* lines, with a title if there is room for one."""
        titled = room >= _MAP_TITLED
        lines, cell_bytes = chunk_map.strip(view.regions, width, room - titled)
        title = [Segment(f" Map of {device} "), *map_figures.shades_legend(cell_bytes)]
        return [cut(title, width), *lines] if titled else lines

    def _holders(self, key: PoolKey, width: int, room: int) -> list[Line]:
        """Return the largest holders of the chosen pool, in at most *room* lines; none if no window is known."""
        self._holders_of.look_at(self.state, key)
        window = self._holders_of.window
        if window is None:
            return []
        shown, higher = self._holders_of.standing(window), self._holders_of.higher
        title = holder_texts.top_title(shown.total, higher, age_s(self.state, window))
        if room < _HOLDERS_LEAST or width < _HOLDERS_CELLS:
            return []
        every = sorted(shown.rows, key=lambda row: -row.bytes)
        rows = (row_line(row, By.LAYER, every[0].share, width, self._braille) for row in every[: room - 1])
        return [[Segment(fit(f" {title}", width), DIM)], *rows]

    def _title(self, rows: list[AllocatorRow]) -> str:
        run = self.state.run
        read = f", read {FROM_OUTSIDE}" if run and run.outside else ""
        return f"Allocators {len(rows)}{read}" if rows else "Allocators"

    def _requests(self, width: int) -> list[Line]:
        lines: list[Line] = []
        for pid, process in self.state.processes.items():
            if not (process.hooked and of_run(self.state, pid)):
                continue
            for request in process.hooked.requested:
                where = f" {spot(request.file, request.line)} "
                mark, style = ("!", WARNING) if request.error else (" ", GOOD)
                asked = call_text(request) + (f"  {request.error}" if request.error else "")
                text = fit(asked, width - cell_len(where) - 2)
                lines.append([Segment(mark, style), Segment(where, DIM), Segment(text)])
        return lines

    def _waiting(self, state: State, width: int) -> list[Line]:
        waits = waiting(state)
        text = wrap(stage(waits), max(10, width - 2))[:_WAITING_MOST] if waits else []
        return [[Segment(f" {line}")] for line in text]
