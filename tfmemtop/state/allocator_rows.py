"""Rows, one for each allocator of each process: TensorFlow's, and those of the other frameworks."""

import msgspec

from tfmemtop import events
from tfmemtop.frameworks import FrameworkName
from tfmemtop.state.frameworks import card_of
from tfmemtop.state.lookup import cached_of, device_of, limit_of, once_per_revision
from tfmemtop.state.model import State


class AllocatorRow(msgspec.Struct, frozen=True):
    """One allocator of one process: TensorFlow's, or that of another ``framework``."""

    pid: int
    device: str
    gpu: int | None
    allocator: str | None
    in_use: int | None
    cached: int | None
    pool: int | None
    peak: int | None
    limit: int | None
    growth: bool | None
    ended: bool
    framework: FrameworkName | None = None


@once_per_revision
def allocators(state: State) -> list[AllocatorRow]:
    """Return a row for every allocator of every hooked process, with its newest reading."""
    rows = []
    for pid, process in state.processes.items():
        if process.hooked is None:
            continue
        for logical, reading in sorted(process.hooked.allocators.items()):
            effective = process.hooked.effective.get(logical)
            device = device_of(state, pid, logical)
            rows.append(
                AllocatorRow(
                    pid=pid,
                    device=logical,
                    gpu=device.info.index if device else None,
                    allocator=reading.allocator or (effective.allocator if effective else None),
                    in_use=reading.in_use,
                    cached=cached_of(reading.pool, reading.in_use),
                    pool=reading.pool,
                    peak=reading.peak,
                    limit=limit_of(process.hooked, logical),
                    growth=effective.growth if effective else None,
                    ended=process.hooked.ended,
                )
            )
        others = process.hooked.frameworks.values()
        rows += [_framework_row(state, reading, process.hooked.ended) for reading in others]
    return rows


def _framework_row(state: State, reading: events.Framework, ended: bool) -> AllocatorRow:
    card = card_of(state, reading)
    return AllocatorRow(
        pid=reading.pid,
        device=reading.device,
        gpu=card.info.index if card else None,
        allocator=reading.framework.title,
        in_use=reading.in_use,
        cached=cached_of(reading.held, reading.in_use),
        pool=reading.held,
        peak=reading.peak,
        limit=reading.limit,
        growth=None,
        ended=ended,
        framework=reading.framework,
    )
