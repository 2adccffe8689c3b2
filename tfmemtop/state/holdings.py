"""What is in use in a process's pools, by what it is for: variables by their makers, and all else."""

from collections.abc import Iterator
from dataclasses import dataclass

from tfmemtop.state.model import State

LABELS = {"variables": "variables", "optimizer": "optimizer", "metrics": "metrics"}
"""Kinds of a census in the order in which they are shown, and what each is called."""


@dataclass(frozen=True, slots=True)
class Holdings:
    """On one logical device, in bytes. ``kinds`` are pairs of label and size.

    ``rest`` is what is in use beyond the variables: other tensors, activations and temporaries; at the
    peak there was ``rest_at_peak`` beyond the variables of now. Both are ``None`` where the use is not known.
    """

    device: str
    kinds: tuple[tuple[str, int], ...]
    rest: int | None
    rest_at_peak: int | None


def holdings(state: State, pid: int) -> Iterator[Holdings]:
    """One for each device that has variables of process *pid*, by the newest census."""
    process = state.processes.get(pid)
    hooked = process.hooked if process else None
    if hooked is None or hooked.census is None:
        return
    for device, kinds in sorted(hooked.census.kinds.items()):
        known = sum(kinds.values())
        reading = hooked.allocators.get(device)
        in_use, peak = (reading.in_use, reading.peak) if reading else (None, None)
        yield Holdings(
            device=device,
            kinds=tuple((label, kinds[kind]) for kind, label in LABELS.items() if kind in kinds),
            # The census is older than the reading: what was freed since may still be counted in it.
            rest=None if in_use is None else max(0, in_use - known),
            rest_at_peak=None if peak is None else max(0, peak - known),
        )
