"""What TensorFlow's allocators hold, what was asked for, and what took effect."""

from pathlib import PurePath

from rich.cells import cell_len
from rich.segment import Segment

from tfmemtop.state.lookup import of_run
from tfmemtop.state.pool_views import PoolKey, pool_map, without_probe
from tfmemtop.state.views import AllocatorRow, allocators
from tfmemtop.ui import chunk_map, map_figures
from tfmemtop.ui.lines import Line, Panel, fit
from tfmemtop.ui.palette import BOLD, DIM, GOOD, KEY, LAYER, PLAIN, WARNING
from tfmemtop.ui.text import wrap
from tfmemtop.units import format_short


class AllocatorPanel(Panel):
    """For each logical device its figures; below, the script's own requests, newest last."""

    chosen: PoolKey | None = None
    """The pool whose map is shown; set by the app."""
    map_rows = 0
    """Lines that there is room for, for a map."""

    def build(self, width: int, height: int) -> list[Line]:
        self.map_rows = 0
        rows = allocators(self.state)
        lines: list[Line] = [self.title_line(width, "Allocators" if len(rows) != 1 else self._title(rows[0]))]
        if not rows:
            return lines + self._waiting(width)
        several = len({row.pid for row in rows}) > 1
        for row in rows:
            lines += self._allocator(row, width, named=len(rows) > 1, with_pid=several)
        requests = self._requests(width)
        room = height - len(lines)
        # The script's own words are told last, but keep a third of the room.
        kept = 0 if not requests or room < 2 else min(len(requests) + 1, max(2, room // 3))
        lines += self._inside(width, room - kept)
        room = height - len(lines)
        if requests and room >= 2:
            lines.append([Segment(" the script asked for", DIM)])
            lines += requests[-(room - 1) :]
        return lines

    def _inside(self, width: int, room: int) -> list[Line]:
        """What the probe knows of the chosen pool, in at most *room* lines; else what keeps it from knowing."""
        key = self.chosen
        process = self.state.processes.get(key[0]) if key else None
        if key is None or process is None or process.hooked is None or room < 1:
            return []
        if told := without_probe(process.hooked):
            # A second line only where the remedy would be cut off.
            text = f"{told.text}. {told.remedy}".rstrip(" .")
            return [[Segment(" " + line, DIM)] for line in wrap(text, width - 1)[: min(2, room)]]
        self.map_rows = max(0, room - 1)
        view = pool_map(self.state, key)
        if view is None:
            pool = process.hooked.pools.get(key[1])
            missing = pool.map.missing if pool and pool.map else None
            return [[Segment(" " + fit(f"no map: {missing}", width - 1, self.glyphs), DIM)]] if missing else []
        lines = map_figures.inside(view, process.hooked.allocators.get(key[1]), width, self.glyphs)[:room]
        return lines + chunk_map.strip(view.regions, width, room - len(lines), self.glyphs)

    @staticmethod
    def _title(row: AllocatorRow) -> str:
        place = f" on GPU {row.gpu}" if row.gpu is not None else ""
        return f"Allocator {row.device}{place}" + (f", {row.allocator}" if row.allocator else "")

    def _allocator(self, row: AllocatorRow, width: int, named: bool, with_pid: bool) -> list[Line]:
        lines: list[Line] = []
        if named:
            who = f" {self._title(row)}" + (f"  pid {row.pid}" if with_pid else "") + ("  ended" if row.ended else "")
            lines.append([Segment(fit(who, width, self.glyphs), DIM if row.ended else BOLD)])
        figures: Line = [
            Segment(" in use ", DIM),
            Segment(f"{format_short(row.in_use):>7}", LAYER["in_use"]),
            Segment("  peak ", DIM),
            Segment(f"{format_short(row.peak):>7}", PLAIN),
            Segment("  pool ", DIM),
            Segment(f"{format_short(row.pool):>7}", PLAIN),
        ]
        if row.cached is not None:
            figures += [Segment("  cached ", DIM), Segment(f"{format_short(row.cached):>7}", LAYER["cached"])]
        lines.append(figures)
        growth = self.glyphs.dash if row.growth is None else "on" if row.growth else "off"
        limit = format_short(row.limit)
        lines.append([Segment(" limit ", DIM), Segment(f"{limit:>8}"), Segment("  growth ", DIM), Segment(growth)])
        if row.settled:
            words = fit(", ".join(row.settled), width - 14, self.glyphs)
            lines.append([Segment(" by tfmemtop ", DIM), Segment(words, KEY)])
        return lines

    def _requests(self, width: int) -> list[Line]:
        lines: list[Line] = []
        for pid, process in self.state.processes.items():
            if not (process.hooked and of_run(self.state, pid)):
                continue
            for request in process.hooked.requested:
                where = f" {PurePath(request.file).name}:{request.line} "
                mark, style = ("!", WARNING) if request.error else (" ", GOOD)
                asked = f"{request.call}({request.arguments})" + (f"  {request.error}" if request.error else "")
                text = fit(asked, width - cell_len(where) - 2, self.glyphs)
                lines.append([Segment(mark, style), Segment(where, DIM), Segment(text)])
        return lines

    def _waiting(self, width: int) -> list[Line]:
        run = self.state.run
        hooked = [p for pid, p in self.state.processes.items() if p.hooked and of_run(self.state, pid)]
        if run is None:
            text = "none: tfmemtop sees inside a process only when it starts it"
        elif hooked:
            text = "TensorFlow is imported; its devices are not initialised yet"
            if run.ended is None and not self.state.devices:
                text += ", or the CPU uses no BFC pool ([A] bfc, or --cpu-pool, gives it one)"
        elif run.going:
            text = "the script has not imported TensorFlow yet"
        else:
            text = "the script ended without importing TensorFlow"
        return [[Segment(" " + fit(text, width - 1, self.glyphs), DIM)]]
