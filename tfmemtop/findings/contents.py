"""The text on what memory contains: the largest parts of it, by operation, layer and shape."""

from tfmemtop.findings.names import KERAS, function_name, operation_name, quoted, tensor_text
from tfmemtop.state.attribution import COPIED, Kind
from tfmemtop.state.holders import Part
from tfmemtop.units import counted, format_bytes

Sized = list[tuple[tuple[str, str, str], int]]
"""The largest of what is in use: the name, layer and shape of each, as text, and its bytes."""


def listed(what: Sized) -> str:
    """Return the parts in one line, each with its bytes."""
    return ", ".join(f"{''.join(names)} {format_bytes(size)}" for names, size in what)


def named_part(part: Part) -> tuple[str, str, str]:
    """Return the operation, or function, that made a *part* of what is in use, its layer and shape: ``3 Relu``.

    Keras's own functions have names that no user knows.
    """
    function = function_name(part.operation)
    if part.kind in (Kind.XLA, Kind.RESULTS) and part.shape is None and part.operation:
        made = counted(part.count, "result" if part.kind is Kind.RESULTS else "buffer")
        return f"{made} of the compiled {'step' if function == KERAS else function}", "", ""
    buffers = f"{counted(part.count, 'buffer')} of " if part.operation.startswith("__") else ""
    return (
        (buffers or (f"{part.count:,} " if part.count > 1 else ""))
        + (part.kind.value if function == KERAS else operation_name(part.operation)),
        f" of {quoted(part.layer)}" if part.layer else "",
        f" {tensor_text(list(part.shape), None)}" if part.shape and part.shape != COPIED else "",
    )
