"""The holders in a pool's map: a face for each cell (the kind of its holder), and a cursor that moves over cells."""

from rich.segment import Segment
from textual.geometry import clamp

from tfmemtop.findings import holder_texts as words
from tfmemtop.state import State
from tfmemtop.state.holder_views import hooked_at, older_s, since_run_s, windows
from tfmemtop.state.map_faces import Faces, faces_of
from tfmemtop.state.pool_views import PoolKey, PoolMap, RegionView
from tfmemtop.ui.draw import chunk_map, faces
from tfmemtop.ui.draw.lines import Line
from tfmemtop.ui.draw.palette import DIM, Glyphs


class MapHolders:
    """The holders in a map. ``shown`` is whether the user wants them; ``faces`` is ``None`` if no window is known."""

    def __init__(self, glyphs: Glyphs) -> None:
        self.shown = True
        self.faces: Faces | None = None
        self.cursor: int | None = None  # index of the cell under it, among those drawn of the chosen region
        self.age_s = 0.0
        self._glyphs = glyphs
        self._basis: tuple[object, ...] = ()
        self._cells: dict[int, bytes] = {}
        self._drawn_from: tuple[object, ...] = ()
        self._merged: dict[int, bytes] = {}
        self._drawn: tuple[int, int] = (1, 1)  # cells of the map in a cell on the screen; of these, cells in a row
        self._state = State()
        self._key: PoolKey | None = None

    def look(self, state: State, key: PoolKey | None, view: PoolMap | None) -> None:
        """Compute the faces from the newest window in *state* and from *view*, the newest map."""
        self._state, self._key = state, key
        hooked, known = hooked_at(state, key), windows(state, key)
        if view is None or hooked is None or key is None or not known:
            self.faces = None
            return
        basis = known[-1], hooked.census, hooked.look, len(hooked.lines), len(hooked.clusters)
        if len(basis) != len(self._basis) or any(a is not b for a, b in zip(basis, self._basis, strict=True)):
            self.faces, self._basis, self._drawn_from = Faces(known[-1], hooked), basis, ()
        assert self.faces is not None
        self.age_s = older_s(state, key[0], known[-1], view.at_s)
        drawn_from = view.at_s, view.exhausted, tuple(len(region.cells) for region in view.regions)
        if drawn_from != self._drawn_from:
            self._cells, self._drawn_from, self._merged = faces_of(view, self.faces), drawn_from, {}

    @property
    def seen(self) -> bool:
        """Whether the map is drawn with faces now."""
        return self.shown and self.faces is not None

    def arrange(self, view: PoolMap, arranged: chunk_map.Arranged, columns: int) -> None:
        """Merge the faces as the cells are drawn: *arranged*, in rows of *columns*."""
        if self._drawn[0] != arranged.merged:
            self._merged = {}
        self._drawn = arranged.merged, max(1, columns)
        for region in view.regions:
            if region.address in self._cells and region.address not in self._merged:
                cells = self._cells[region.address]
                self._merged[region.address] = faces.merged(cells, region.cells, arranged.merged)

    def paint(self, row: chunk_map.MapRow, region: RegionView, chosen: bool) -> Line:
        """Return a row of cells as a line; *chosen*: whether *region* is the one that the cursor is in."""
        start = row.start
        of_row = self._merged.get(region.address, b"")[start : start + len(row.cells)]
        if len(of_row) != len(row.cells):
            return chunk_map.draw_cells(row.cells, self._glyphs)
        cursor = self.cursor - start if chosen and self.cursor is not None else None
        return faces.draw(row.cells, of_row, self._glyphs, cursor)

    def legend(self, arranged: chunk_map.Arranged, width: int) -> Line:
        """Return the line that explains the faces."""
        return faces.legend(self._merged.values(), arranged.cell_bytes, width, self._glyphs)

    def line(self, region: RegionView, width: int) -> Line:
        """Return the line on the holder of the cell under the cursor; without a cursor, on the age of the window."""
        assert self.faces is not None
        if self.cursor is None or not region.cells:
            return [Segment(f" {words.faces_age(self.age_s)}"[:width], DIM)]
        first = min(self.cursor * self._drawn[0], len(region.cells) - 1)
        of_cell = range(first, min(first + self._drawn[0], len(region.cells)))
        used = [cell for cell in of_cell if region.cells[cell]]
        if not used:
            address = region.address + region.size * first // len(region.cells)
            return faces.free_line(self.faces.neighbours(region, address), width, self._glyphs)
        found = [lies for cell in used if (lies := self.faces.in_cell(region, cell)) is not None]
        if not found:
            return [Segment(f" {words.face_unknown(self.age_s)}"[:width], DIM)]
        largest = max(found, key=lambda lies: (lies.stays, lies.size))
        since = "" if largest.since is None or self._key is None else self._clock(largest.since)
        told = words.lies_since(since, largest.window, stays=largest.stays)
        return faces.lies_line(largest, told, width, self._glyphs)

    def _clock(self, t: float) -> str:
        assert self._key is not None
        return chunk_map.clock(since_run_s(self._state, self._key[0], t))

    def move(self, region: RegionView, step: int) -> None:
        """Move the cursor by *step* cells of *region*; without a cursor, put it on the first cell."""
        count = -(-len(region.cells) // self._drawn[0])
        if count:
            self.cursor = clamp(self.cursor + step, 0, count - 1) if self.cursor is not None else 0

    def move_row(self, region: RegionView, rows: int) -> None:
        """Move the cursor by *rows* rows of cells, down if positive."""
        self.move(region, rows * self._drawn[1])
