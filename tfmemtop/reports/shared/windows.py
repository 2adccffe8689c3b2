"""The recorded allocations and the maps of pools, as a page has them. Pure."""

import heapq

from msgspec.structs import replace

from tfmemtop.events.allocations import FOREVER
from tfmemtop.findings.holders import holder
from tfmemtop.findings.names import frames
from tfmemtop.reports.holders import about, higher, what_was_recorded
from tfmemtop.reports.shared.data import PageMap, PageOwner, PagePool, PageRegion, PageWindow
from tfmemtop.state.attribution import Kind, Owner, attribution
from tfmemtop.state.holders import By, row_key, standing
from tfmemtop.state.map_faces import FREE, Faces, kind_of
from tfmemtop.state.pool_views import PoolMap, RegionView
from tfmemtop.state.windows import Chosen, unpacked
from tfmemtop.units import format_bytes

NO_ADDRESS = -1
"""The address of a sum of small allocations, as a recording of an older tfmemtop has them."""


def page_window(one: Chosen, known: dict[PageOwner, int]) -> PageWindow:
    """Return the window of *one*. The values of an XLA buffer follow each other in it, the largest first.

    *known* has the owners of its pool's windows so far, with their numbers. Those of this window are added.
    """
    window, course, owners = one.window, unpacked(one.window), attribution(one.window, one.hooked)
    named: dict[Owner, int] = {}
    base = min(filter(None, course.addresses), default=0)
    held = about(one, (), standing(window, one.hooked, By.LAYER), "at the peak")
    owner_of, sizes, addresses, begins, ends = [], [], [], [], []
    for place, owner in enumerate(owners.of):
        address = course.addresses[place]
        for part, size, _, _ in owners.opened(owner, course.kinds[course.holdings[place]], 1):
            if part not in named:
                named[part] = known.setdefault(_page_owner(part), len(known))
            owner_of.append(named[part])
            sizes.append(size)
            addresses.append(address - base if address else NO_ADDRESS)
            begins.append(course.begins[place])
            ends.append(course.ends[place])
            address += size if address else 0
    return PageWindow(
        title=what_was_recorded(window),
        about=" ".join(filter(None, (held, higher(one)))),
        began=window.began,
        ended=window.ended,
        peak=window.peak,
        peak_at=window.peak_at,
        unknown=course.nobodys,
        left_out=0,
        times_us=[now - before for before, now in zip([0, *course.times], course.times, strict=False)],
        owner=owner_of,
        bytes=sizes,
        address=addresses,
        base=base,
        begins=begins,
        ends=ends,
    )


def bounded(window: PageWindow, room: int) -> PageWindow:
    """Return *window* with its *room* largest buffers."""
    count = len(window.bytes)
    if count <= room:
        return window
    stay = sorted(heapq.nlargest(room, range(count), key=window.bytes.__getitem__))
    staying = set(stay)
    others = [place for place in range(count) if place not in staying]
    size = format_bytes(sum(window.bytes[place] for place in others))
    said = f"{window.about} The {len(others):,} smallest buffers, {size}, are left out of this page."
    at_peak = sum(window.bytes[place] for place in others if is_used(window, place, window.peak_at))
    columns = {name: [getattr(window, name)[place] for place in stay] for name in _COLUMNS}
    return replace(window, about=said, left_out=at_peak, **columns)


_COLUMNS = "owner", "bytes", "address", "begins", "ends"
"""What a window has of each of its buffers."""


def with_windows(pool: PagePool, windows: list[PageWindow], shown: int) -> PagePool:
    """Return *pool* with these *windows* of its, of which that at *shown* has its peak, and with their owners only."""
    places = {old: new for new, old in enumerate(sorted({owner for window in windows for owner in window.owner}))}
    return replace(
        pool,
        owners=[pool.owners[old] for old in places],
        windows=[replace(window, owner=[places[old] for old in window.owner]) for window in windows],
        shown=shown,
    )


def is_used(window: PageWindow, place: int, at: int) -> bool:
    """Return whether the buffer at *place* is in use after event *at*."""
    return window.begins[place] <= at and (window.ends[place] > at or window.ends[place] == FOREVER)


def _page_owner(owner: Owner) -> PageOwner:
    return PageOwner(
        kind=owner.kind.value,
        layer=_row_name(owner, By.LAYER),
        op=_row_name(owner, By.OPERATION),
        shape=_row_name(owner, By.SHAPE),
        line=_row_name(owner, By.LINE),
        code=owner.line.code if owner.line else "",
        stack=frames(owner.line),
    )


def _row_name(owner: Owner, by: By) -> str:
    """Return the name of the row of a table by *by* that has the memory of *owner*; empty if that is the kind's row."""
    key = row_key(owner, by)
    return "" if key.startswith("\0") else holder(key, owner.kind, by, whole=False)


def page_map(view: PoolMap, run_began: float, faces: Faces | None) -> PageMap:
    """Return a map of a pool. Who holds a cell comes from *faces*, the allocations of a window of that time."""
    base = view.regions[0].address if view.regions else 0
    return PageMap(
        at=view.read.t,
        base=base,
        regions=[_page_region(region, base, run_began, faces) for region in view.regions],
        free=view.cached,
        largest_free=view.read.largest_free,
    )


def _page_region(region: RegionView, base: int, run_began: float, faces: Faces | None) -> PageRegion:
    of_cells = faces.cells(region) if faces else b""
    kinds = [kind_of(face).value if face != FREE else "" for face in of_cells]
    if not faces:
        kinds = [Kind.UNKNOWN.value if share else "" for share in region.cells]
    return PageRegion(
        address=region.address - base,
        size=region.size,
        since=None if region.taken_s is None else run_began + region.taken_s,
        in_use=region.in_use,
        shares=list(region.cells),
        kinds=kinds,
        names=[_cell_name(region, cell, kind, faces) for cell, kind in enumerate(kinds)],
    )


def _cell_name(region: RegionView, cell: int, kind: str, faces: Faces | None) -> str:
    lies = faces.in_cell(region, cell) if faces and kind and kind != Kind.UNKNOWN.value else None
    return _row_name(lies.owner, By.LAYER) if lies else ""
