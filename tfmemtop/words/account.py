"""The text of the account of a process's memory: what each part is, and why no two tools agree on the total. Pure."""

from collections.abc import Iterator
from typing import NamedTuple

from tfmemtop.state.account import Account
from tfmemtop.state.holdings import TENSORS, Holdings
from tfmemtop.units import UNKNOWN, format_bytes
from tfmemtop.words.counting import spoken

_KINDS = {TENSORS: "live tensors"}
"""Names for kinds of a census; the other kinds are shown under their own name."""


class AccountLine(NamedTuple):
    """A part's name, its figure, and what it is; the last may be empty."""

    name: str
    figure: str
    meaning: str


def parts(account: Account) -> Iterator[AccountLine]:
    """Yield the parts of one process's memory on one GPU. If the total is known, the parts add up to it."""
    total = account.total
    if total is None:
        yield AccountLine("process total", UNKNOWN, "NVML does not report the memory of this process")
    else:
        yield AccountLine("process total", format_bytes(total), "by NVML")
    if account.context is not None:
        yield _context(account.context, account.context_exact)
    for pool in account.pools:
        name = f"{pool.device} " if len(account.pools) > 1 else ""
        yield AccountLine(f"{name}in use", format_bytes(pool.in_use), "allocated to tensors")
        if pool.cached is not None:
            yield AccountLine(f"{name}cached", format_bytes(pool.cached), "held by the pool, unused")
    if account.outside is not None:
        mark = "" if account.context_exact else "~"
        outside = mark + format_bytes(account.outside)
        yield AccountLine("outside", outside, "workspaces, kernels loaded late, other libraries")
    elif account.rest is not None:
        rest = "cached and outside together: the size of the pool is unknown"
        yield AccountLine("the rest", "~" + format_bytes(account.rest), rest)
    elif total is not None:
        yield AccountLine("the rest", UNKNOWN, "no allocator of TensorFlow was read, so its use is unknown")


def _context(size: int, exact: bool) -> AccountLine:
    meaning = "CUDA's own, with TensorFlow's kernels"
    if exact:
        return AccountLine("context", format_bytes(size), meaning)
    return AccountLine("context", "~" + format_bytes(size), meaning + "; the usual size, not measured in this run")


def in_use(held: Holdings) -> Iterator[AccountLine]:
    """Yield what is in use on one device, by kind."""
    looked = held.looked_s is not None
    for kind, size in held.kinds:
        meaning = ""
        if kind == TENSORS and held.looked_s is not None:
            meaning = f"found {spoken(held.looked_s)} ago; tensors that share memory count each"
        yield AccountLine(_KINDS.get(kind, kind), format_bytes(size), meaning)
    if held.rest is not None:
        rest = "activations, temporaries and tensors that only TensorFlow holds"
        yield AccountLine(
            "the rest", format_bytes(held.rest), rest if looked else "activations, temporaries, other tensors"
        )
    if held.rest_at_peak is not None:
        others = "all but the variables" + (" and live tensors" if looked else "")
        yield AccountLine("at the peak", format_bytes(held.rest_at_peak), others)


def others_say(account: Account) -> Iterator[tuple[str, str]]:
    """Yield the figures of ``nvidia-smi`` and of ``get_memory_info`` for the same process: a name and a text each."""
    card = f", {format_bytes(account.device_used)} for the whole card" if account.device_used is not None else ""
    if account.total is not None or card:
        own = format_bytes(account.total) if account.total is not None else "nothing"
        yield "nvidia-smi", f"{own} for the process{card}"
    for pool in account.pools:
        figures = f"current {format_bytes(pool.in_use)}, peak {format_bytes(pool.peak)}"
        yield "TensorFlow", f'{figures} by get_memory_info("{pool.device}")'


def why_they_differ(account: Account) -> str:
    """Return a sentence or two on why the tools' figures differ; empty where there is nothing to compare."""
    if account.total is None or not account.pools:
        return ""
    hidden = format_bytes(account.total - account.in_use)
    more = f"nvidia-smi counts {hidden} more than TensorFlow, which counts only what its tensors use now"
    if account.outside is None:
        return f"{more}. The difference is what is cached, CUDA's context and libraries."
    beside = (account.context or 0) + account.outside
    return (
        f"{more}: {format_bytes(account.cached)} are cached in the pool, and {format_bytes(beside)} are CUDA's context "
        "and memory outside the pool."
    )
