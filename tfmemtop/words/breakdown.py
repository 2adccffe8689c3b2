"""The text about the slices of a process's memory: what each slice is, and the totals around them. Pure."""

from collections.abc import Iterator

from tfmemtop.state.breakdown import Breakdown, MemoryPart, Slice
from tfmemtop.state.holdings import Holdings
from tfmemtop.units import format_bytes
from tfmemtop.words.counting import spoken

_NAMES = {MemoryPart.TENSORS: "live tensors", MemoryPart.OTHER_IN_USE: "rest in use"}

_MEANINGS = {
    MemoryPart.CONTEXT: "CUDA's own, TensorFlow's kernels",
    MemoryPart.IN_USE: "allocated to tensors",
    MemoryPart.CACHED: "held by the pool, unused",
    MemoryPart.OUTSIDE: "workspaces, other libraries",
    MemoryPart.CACHED_AND_OUTSIDE: "the size of the pool is unknown",
}
_USUAL_CONTEXT = "the usual size, not measured"


def name(part: MemoryPart) -> str:
    """Return the name of a part: ``context``, ``live tensors``."""
    return _NAMES.get(part, part.value)


def figure(part: Slice) -> str:
    """Return the size as text: ``417.2 MiB``, or ``~520.0 MiB`` where it rests on a usual figure."""
    return ("" if part.exact else "~") + format_bytes(part.size)


def meaning(part: Slice, found: Breakdown) -> str:
    """Return what that memory is for, in at most 33 characters; empty where its name is clear enough."""
    if part.part is MemoryPart.CONTEXT and not part.exact:
        return _USUAL_CONTEXT
    looked = next((held.looked_s for held in found.held if held.looked_s is not None), None)
    if part.part is MemoryPart.OTHER_IN_USE:
        return "activations, temporaries" + ("" if looked is not None else ", tensors")
    if part.part is MemoryPart.TENSORS and looked is not None:
        return f"found {spoken(looked)} ago"
    return _MEANINGS.get(part.part, "")


def heading(found: Breakdown) -> str:
    """Return the heading of the bar: ``Its memory on GPU 0: 1.1 GiB``."""
    if found.gpu is None:
        return f"Its pool on the CPU: {format_bytes(found.size)}"
    total = found.account.total if found.account else None
    whole = format_bytes(total) if total is not None else f"{format_bytes(found.size)} in pools, the rest unknown"
    return f"Its memory on GPU {found.gpu}: {whole}"


def notes(found: Breakdown) -> Iterator[str]:
    """Yield a line with peak and limit, and one for each census that counted more than is in use."""
    beyond = sum(held.rest_at_peak or 0 for held in found.held)
    counted = any(held.kinds for held in found.held) and all(held.rest_at_peak is not None for held in found.held)
    more = f", {format_bytes(beyond)} of it beyond these kinds" if counted and beyond else ""
    yield f"peak in use {format_bytes(found.peak)}{more}; limit {format_bytes(found.limit)}"
    for held in found.held:
        if held.excess:
            yield counted_kinds(held)


def counted_kinds(held: Holdings) -> str:
    """Return the line about a last census that counted more than is in use."""
    kinds = ", ".join(f"{kind} {format_bytes(size)}" for kind, size in held.kinds)
    return (
        f"the last census counted {kinds}: {format_bytes(held.excess)} more than is in use now. Some of it was "
        "freed since, or counted more than once"
    )
