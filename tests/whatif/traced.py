"""Lines that TensorFlow's own recorder wrote on the CPU's BFC, independently of tfmemtop, as events of tfmemtop."""

import re
from dataclasses import dataclass
from pathlib import Path

import msgspec

from tests import streams
from tfmemtop.events import Allocator, Event, Trace
from tfmemtop.events.allocations import MOST_OF_PART, Call, TraceAllocations, pack
from tfmemtop.units import MIB


@dataclass(frozen=True, slots=True)
class Measured:
    """What the allocator itself reported at the end; sizes in bytes."""

    in_use: int
    peak: int
    pool: int
    peak_pool: int
    allocations: int
    largest_free: int


def told(lines: list[str]) -> tuple[list[Trace], Measured]:
    """Return the trace and the measured figures in the *lines* of the recorder's file."""
    return parts(lines[:-1]), _measured(lines)


def _measured(lines: list[str]) -> Measured:
    return Measured(*map(int, lines[-1].split()[1:]))


def parts(lines: list[str]) -> list[Trace]:
    """Return the recorder's *lines* as the events of a tfmemtop recording."""
    split = sorted((line.split(" ", 2) for line in lines), key=lambda line: int(line[1]))
    found: list[tuple[int, int]] = []
    operations: list[int] = []
    numbers: dict[str, int] = {}
    names: dict[str, int] = {}
    threads: dict[str, int] = {}
    calls: dict[str, Call] = {}
    made_in: list[str] = []
    for identity, _, text in split:
        thread = threads.setdefault(identity, len(threads))
        figures = dict(re.findall(r"(requested_bytes|addr|tf_op|id)=([^,#]*)", text))
        if not text.startswith("Memory"):
            calls.setdefault(figures["id"], Call(thread, len(found)))
        elif text.startswith("MemoryAllocation"):
            found.append((thread << 1, int(figures["requested_bytes"])))
            numbers[figures["addr"]] = len(operations)
            operations.append(names.setdefault(figures["tf_op"], len(names)) if figures.get("tf_op") else -1)
            made_in.append(figures.get("id", ""))
        elif figures["addr"] in numbers:
            found.append((thread << 1 | 1, numbers.pop(figures["addr"])))
    order = {run: number for number, run in enumerate(calls)}
    told, before = [], 0
    for part, first in enumerate(range(0, len(found), MOST_OF_PART)):
        piece = found[first : first + MOST_OF_PART]
        after = before + sum(not who & 1 for who, _ in piece)
        content = TraceAllocations(
            names=list(names) if part == 0 else [],
            events=piece,
            operations=operations[before:after],
            runs=[order.get(run, -1) for run in made_in[before:after]],
            calls=list(calls.values()) if part == 0 else [],
        )
        told.append(
            Trace(
                t=1.0,
                pid=1,
                device="CPU:0",
                part=part,
                last=first + MOST_OF_PART >= len(found),
                whole=True,
                events=len(piece),
                packed=pack(content),
            )
        )
        before = after
    return told


def session(parts: list[Trace], measured: Measured, tensorflow: Path, version: str, limit: int = 4096) -> list[Event]:
    """Return a small session whose process has that trace and those figures, in a CPU pool of *limit* MiB."""
    pid = 100
    hook = msgspec.structs.replace(streams.hook(0.4, pid, version), tensorflow_path=str(tensorflow))
    reading = Allocator(
        t=2.0,
        pid=pid,
        device="CPU:0",
        allocator="bfc_cpu_allocator_for_gpu",
        in_use=measured.in_use,
        peak=measured.peak,
        pool=measured.pool,
        limit=limit * MIB,
        peak_pool=measured.peak_pool,
        allocations=measured.allocations,
    )
    told = [msgspec.structs.replace(part, pid=pid) for part in parts]
    return [streams.session(), streams.run(), streams.process(0.2, pid), hook, *told, reading]
