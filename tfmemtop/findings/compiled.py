"""What XLA asked for: what the buffer that found no room would have held, by XLA's own report. Pure."""

from msgspec.structs import replace

from tfmemtop.findings.cause import Cause, Key
from tfmemtop.findings.contents import listed, named_part
from tfmemtop.findings.remedy import Action, without_batches
from tfmemtop.findings.request import compiled_name
from tfmemtop.state.anatomy import Anatomy
from tfmemtop.state.holders import Part, contents
from tfmemtop.state.inventory import Inventory
from tfmemtop.state.model import Hooked
from tfmemtop.state.windows import recorded

_ABOUT = 0.005
"""The share by which a size differs at most from the one in XLA's message, which has two decimals."""

_LARGE, _NAMED = 0.1, 3  # share of the buffer, parts


def with_buffer(cause: Cause, stock: Inventory, hooked: Hooked, a: Anatomy) -> Cause:
    """Return *cause* with what the buffer would have held for which XLA asked; without a report, a way to one."""
    if cause.key is not Key.LIMIT_TOO_SMALL or a.asked is None or not compiled_name(a):
        return cause
    if not hooked.clusters:
        return replace(cause, remedies=(*cause.remedies, Action.XLA_REPORT))
    values = _values(stock, hooked, a.asked)
    parts = [(named_part(one), one.bytes) for one in values if one.bytes >= _LARGE * a.asked][:_NAMED]
    if not parts:
        return cause
    texts = tuple(f"It would hold {listed(parts[:number])}." for number in range(len(parts), 0, -1))
    of_variables = sum(one.bytes for one in values if one.shape in stock.shapes)
    less = Action.SMALLER_MODEL if of_variables >= a.asked / 2 else Action.REDUCE_BATCH
    remedies = without_batches(cause.remedies, less)
    evidence = texts[0].replace("It", "XLA's buffer", 1), *cause.evidence
    return replace(cause, mostly=(*texts, *cause.mostly), evidence=evidence, remedies=remedies)


def _values(stock: Inventory, hooked: Hooked, asked: int) -> list[Part]:
    """Return the values at the peak of the buffer of *asked* bytes, the largest first; empty where it has no report."""
    windows = recorded(hooked.windows.get(stock.device))
    near = [one for one in hooked.clusters.values() if abs(one.temporary - asked) <= _ABOUT * asked]
    cluster = min(near, key=lambda one: abs(one.temporary - asked), default=None)
    return contents(cluster, windows[-1], hooked) if cluster and windows else []
