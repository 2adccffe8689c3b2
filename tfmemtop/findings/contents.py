"""The text on what memory contains: the largest parts of it, by operation, layer and shape."""

from collections import Counter

from tfmemtop.findings.cause import Cause
from tfmemtop.findings.names import KERAS, capital, function_name, operation_name, quoted, tensor_text
from tfmemtop.findings.room import limit_text
from tfmemtop.state.anatomy import Anatomy
from tfmemtop.state.attribution import COPIED, Kind
from tfmemtop.state.holders import Part
from tfmemtop.state.inventory import Inventory
from tfmemtop.units import counted, format_bytes, parse_size

Sized = list[tuple[tuple[str, str, str], int]]
"""The largest of what is in use: the name, layer and shape of each, as text, and its bytes."""

FULLER = 0.75  # share of the limit, or of the peak


def listed(what: Sized) -> str:
    """Return the parts in one line, each with its bytes."""
    return ", ".join(f"{''.join(names)} {format_bytes(size)}" for names, size in what)


def named_part(part: Part) -> tuple[str, str, str]:
    """Return the operation, or function, that made a *part* of what is in use, its layer and shape: ``3× Relu``.

    Keras's own functions have names that no user knows.
    """
    function = function_name(part.operation)
    if part.kind in (Kind.XLA, Kind.RESULTS) and part.shape is None and part.operation:
        made = counted(part.count, "result" if part.kind is Kind.RESULTS else "buffer")
        return f"{made} of the compiled {'step' if function == KERAS else function}", "", ""
    buffers = f"{counted(part.count, 'buffer')} of " if part.operation.startswith("__") else ""
    return (
        (buffers or (f"{part.count:,}× " if part.count > 1 else ""))
        + (part.kind.value if function == KERAS else operation_name(part.operation)),
        f" of {quoted(part.layer)}" if part.layer else "",
        f" {tensor_text(list(part.shape), None)}" if part.shape and part.shape != COPIED else "",
    )


def _beside(size: int, unit: str) -> str:
    """Return *size* in the *unit* of the whole that stands before it, or with its own unit where it is far smaller."""
    number = f"{size / parse_size(f'1{unit}'):.1f}"
    return number if number != "0.0" else format_bytes(size)


def with_use(cause: Cause, stock: Inventory, a: Anatomy, *told_by: Sized) -> tuple[str, ...]:
    """Return texts for *cause* with the largest of what is in use, the best first.

    Each of *told_by* tells it: name, layer and shape; bytes. Only the last may tell less than half of it. What has one
    name only without its layer or shape is summed up, but for numbers of results.
    """
    total = format_bytes(stock.in_use)
    unit = total.rpartition(" ")[2]
    beyond = a.limit is not None and a.pool is not None and a.pool + (a.asked or 0) > a.limit
    rest = f"{limit_text(a)}." if beyond else cause.text
    told = f"; {rest}" if beyond else f". {rest}"
    full = a.limit is not None and stock.in_use >= FULLER * a.limit  # the limit may go without saying
    texts: list[str] = []
    numbers = [(ones, number) for ones in told_by for number in range(len(ones), 0, -1)]
    for ones, number in numbers:
        if ones is not told_by[-1] and sum(size for _, size in ones[:number]) * 2 < stock.in_use:
            continue
        for parts in (3, 2, 1):
            sizes: Counter[tuple[str, int]] = Counter()
            for place, (names, size) in enumerate(ones[:number]):
                name = "".join(names[:parts])
                alone = name[0].isdigit() or name == "".join(names)
                sizes[name, place if alone else -1] += size
            each = (f"{name} {_beside(size, unit)}" for (name, _), size in sizes.items())
            whole = f"Of {total} in use: {', '.join(each)}"
            texts += [f"{whole}{told}", f"{whole}."][: 1 + full]
    return (*texts, cause.text, capital(rest))
