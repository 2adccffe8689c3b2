"""The holders in a pool's map: a face for each cell (the kind of its holder), and a cursor that moves over cells."""

import re
from collections.abc import Iterable, Sequence

from rich.segment import Segment
from rich.style import Style
from textual.geometry import clamp

from tfmemtop.findings import holders as words
from tfmemtop.safe import safe
from tfmemtop.state import State
from tfmemtop.state.attribution import Kind
from tfmemtop.state.holder_views import hooked_at, older_s, since_run_s, windows
from tfmemtop.state.holders import ORDER
from tfmemtop.state.map_faces import FREE, Faces, Lies, faces_in, faces_of, kind_of
from tfmemtop.state.pool_views import PoolKey, PoolMap, RegionView
from tfmemtop.ui.draw import chunk_map
from tfmemtop.ui.draw.chunk_map import SHADES
from tfmemtop.ui.draw.lines import Line, cut, fit, width_of
from tfmemtop.ui.draw.palette import BOLD, CHOSEN, DIM, HOLDER, LETTER
from tfmemtop.ui.draw.text import end_of
from tfmemtop.units import format_short

_FULL = 255
_BLOCK = Style(reverse=True)
_NAME_LEAST = 28


def merged(faces: bytes, shares: bytes, count: int) -> bytes:
    """Merge every *count* cells into one, with the face of most of what is in use there.

    *shares* are how much of each cell is in use, 0 to 255.
    """
    if count <= 1:
        return faces
    found = bytearray()
    for start in range(0, len(faces), count):
        weights: dict[int, int] = {}
        for face, share in zip(faces[start : start + count], shares[start : start + count], strict=True):
            if face != FREE:
                weights[face] = weights.get(face, 0) + share
        found.append(max(weights, key=lambda face: weights[face]) if weights else FREE)
    return bytes(found)


def draw(shares: bytes, faces: bytes, cursor: int | None = None) -> Line:
    """Return a letter for each cell: a capital on its colour if all of the cell is in use, else a small letter.

    *cursor* is the number of the cell under the cursor.
    """
    free = SHADES[0]
    codes = "".join(
        "." if face == FREE else chr((64 if share == _FULL else 96) + face)
        for share, face in zip(shares, faces, strict=True)
    )
    line: Line = []
    for run in re.finditer(r"(.)\1*", codes):
        code, cells = run[1], run.end() - run.start()
        line.append(Segment(free * cells, DIM) if code == "." else _run(kind_of(ord(code) & 31), code < "`", cells))
    if cursor is not None and 0 <= cursor < len(codes):
        before, under, after = Segment.divide(line, [cursor, cursor + 1, len(codes)])
        line = [*before, *(Segment(segment.text, CHOSEN + BOLD) for segment in under), *after]
    return line


def _run(kind: Kind, full: bool, cells: int) -> Segment:
    letter = LETTER[kind.value]
    look = HOLDER[kind.value]
    return Segment(letter * cells, look + _BLOCK) if full else Segment(letter.lower() * cells, look)


def legend(faces: Iterable[bytes], cell_bytes: int, width: int) -> Line:
    """Return the line with the kinds among *faces*, and what capitals mean."""
    seen = set().union(*map(set, faces)) - {FREE}
    line: Line = [Segment(" ")]
    for place, kind in enumerate(ORDER, 1):
        if place in seen:
            look = HOLDER[kind.value]
            line += [Segment(LETTER[kind.value], look + _BLOCK), Segment(f" {words.kind(kind)}  ", look)]
    line.append(Segment(words.faces(SHADES[0], format_short(cell_bytes)), DIM))
    return cut(line, width)


def lies_line(lies: Lies, since: str, width: int) -> Line:
    """Return the line about the cell under the cursor: who holds it, its shape, and since when."""
    owner = lies.owner
    shape = "" if owner.shape is None else f"{safe(owner.dtype)}[{','.join(map(str, owner.shape))}]  "
    look = HOLDER[owner.kind.value]
    head: Line = [Segment(f" {LETTER[owner.kind.value]} ", look + BOLD), Segment(f"{words.kind(owner.kind)}  ", look)]
    tail = f"  {format_short(lies.size)}  {shape}{since}"
    room = max(_NAME_LEAST, width - width_of(head) - len(tail))
    name = owner.python_name or words.operation(owner.operation) or owner.layer or words.UNKNOWN
    return cut([*head, Segment(end_of(name, room), BOLD), Segment(tail, DIM)], width)


def free_line(neighbours: Sequence[Lies | None], width: int) -> Line:
    """Return the line about a free cell: the holders below and above it."""
    below, above = (_short(lies, max(8, width // 2 - 14)) for lies in neighbours)
    return [Segment(fit(f" {words.free(below, above)}", width), BOLD)]


def _short(lies: Lies | None, width: int) -> str:
    if lies is None:
        return ""
    owner = lies.owner
    name = owner.python_name or words.operation(owner.operation) or owner.layer or words.kind(owner.kind)
    return f"{LETTER[owner.kind.value]} {end_of(name, width - 10)} {format_short(lies.size)}"


class MapHolders:
    """The holders in a map. ``shown`` is whether the user wants them; ``faces`` is ``None`` if no window is known."""

    def __init__(self) -> None:
        self.shown = True
        self.faces: Faces | None = None
        self.cursor: int | None = None  # index of the cell under it, among those drawn of the chosen region
        self.age_s = 0.0
        self._cells: dict[int, bytes] = {}
        self._drawn_from: tuple[object, ...] = ()
        self._merged: dict[int, bytes] = {}
        self._drawn: tuple[int, int] = (1, 1)  # cells of the map in a cell on the screen; of these, cells in a row
        self._state = State()
        self._key: PoolKey | None = None

    def look(self, state: State, key: PoolKey | None, view: PoolMap | None) -> None:
        """Compute the faces from *view*, the newest map, and from the window in *state* that is nearest to it."""
        self._state, self._key = state, key
        hooked, known = hooked_at(state, key), windows(state, key)
        if view is None or hooked is None or key is None or not known:
            self.faces = None
            return
        ages = {older_s(state, key[0], one, view.at_s): one for one in known}
        self.age_s = min(ages, key=abs)
        self.faces = faces_in(ages[self.age_s], hooked)
        drawn_from = self.faces, view.at_s, view.exhausted, tuple(len(region.cells) for region in view.regions)
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
                self._merged[region.address] = merged(cells, region.cells, arranged.merged)

    def paint(self, row: chunk_map.MapRow, region: RegionView, chosen: bool) -> Line:
        """Return a row of cells as a line; *chosen*: whether *region* is the one that the cursor is in."""
        start = row.start
        of_row = self._merged.get(region.address, b"")[start : start + len(row.cells)]
        if len(of_row) != len(row.cells):
            return chunk_map.draw_cells(row.cells)
        cursor = self.cursor - start if chosen and self.cursor is not None else None
        return draw(row.cells, of_row, cursor)

    def legend(self, arranged: chunk_map.Arranged, width: int) -> Line:
        """Return the line that explains the faces."""
        return legend(self._merged.values(), arranged.cell_bytes, width)

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
            return free_line(self.faces.neighbours(region, address), width)
        found = [lies for cell in used if (lies := self.faces.in_cell(region, cell)) is not None]
        if not found:
            return [Segment(f" {words.face_unknown(self.age_s)}"[:width], DIM)]
        largest = max(found, key=lambda lies: (lies.stays, lies.size))
        since = "" if largest.since is None or self._key is None else self._clock(largest.since)
        told = words.lies_since(since, largest.window, stays=largest.stays)
        return lies_line(largest, told, width)

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
