"""Loads recorded windows of real programs, also as if nothing had been recorded before them."""

from dataclasses import replace
from pathlib import Path

import msgspec

from tests import streams as s
from tfmemtop import events
from tfmemtop.events.courses import pack_holdings, pack_spans, unpack_holdings, unpack_spans
from tfmemtop.state.attribution import Kind
from tfmemtop.state.holders import Standing
from tfmemtop.state.model import Hooked


def load(path: Path) -> tuple[events.Holders, Hooked]:
    """Return the window of the CPU's pool in the recording at *path*, and the process to which it belongs."""
    stream = [events.decode_event(line) for line in path.read_bytes().splitlines()]
    state = s.fold([s.session(), s.run(), s.process(0.6, 100), s.hook(1.1, 100), *stream])
    hooked = state.processes[100].hooked
    assert hooked is not None and hooked.census is not None
    (window,) = hooked.windows["CPU:0"].newest
    return window, hooked


def alone(window: events.Holders) -> events.Holders:
    """Return *window* as if nothing had been recorded before it."""
    holdings = unpack_holdings(window.holdings)
    spans = unpack_spans(window.spans, holdings)
    known = len(holdings)
    holdings += [events.Holding(None, None, "", "", one.requested, one.size, 0) for one in holdings]
    spans = [replace(span, holding=span.holding + known) if span.begin < 0 else span for span in spans]
    return msgspec.structs.replace(window, holdings=pack_holdings(holdings), spans=pack_spans(spans))


def named(found: Standing) -> float:
    """Return the share of bytes that have a name."""
    before = sum(part.bytes for row in found.holders for part in row.parts if part.kind is Kind.BEFORE)
    return 1 - (found.unknown + before) / found.total
