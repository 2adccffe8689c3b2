"""Loads recorded windows of real programs, also as if nothing had been recorded before them."""

from pathlib import Path

import msgspec

from tests import streams as s
from tfmemtop import events
from tfmemtop.events.allocations import WindowAllocations, pack, unpack
from tfmemtop.state.attribution import Kind
from tfmemtop.state.holders import Standing
from tfmemtop.state.model import Hooked


def load(path: Path, device: str = "CPU:0") -> tuple[events.Holders, Hooked]:
    """Return the window of the pool of *device* in the recording at *path*, and the process to which it belongs."""
    stream = [events.decode_event(line) for line in path.read_bytes().splitlines()]
    state = s.fold([s.session(), s.run(), s.process(0.6, 100), s.hook(1.1, 100), *stream])
    hooked = state.processes[100].hooked
    assert hooked is not None and hooked.census is not None
    (window,) = hooked.windows[device].newest
    return window, hooked


def alone(window: events.Holders) -> events.Holders:
    """Return *window* as if nothing had been recorded before it."""
    found = unpack(window.packed, WindowAllocations)
    known = len(found.kinds)
    kinds = [*found.kinds, *(events.Holding(None, None, "", "", one.requested, one.size, 0) for one in found.kinds)]
    places = [place + known if begin < 0 else place for place, begin in zip(found.holdings, found.begins, strict=True)]
    content = msgspec.structs.replace(found, kinds=kinds, holdings=places)
    return msgspec.structs.replace(window, packed=pack(content))


def named(found: Standing) -> float:
    """Return the share of bytes that have a name."""
    before = sum(part.bytes for row in found.holders for part in row.parts if part.kind is Kind.BEFORE)
    return 1 - (found.unknown + before) / found.total
