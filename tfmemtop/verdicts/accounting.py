"""The account of a process's memory in words: what each part is, and why no two tools agree on the whole."""

from collections.abc import Iterator

from tfmemtop.state.account import Account
from tfmemtop.state.holdings import LABELS, TENSORS, Holdings
from tfmemtop.units import format_bytes, format_duration


def parts(account: Account) -> Iterator[tuple[str, str, str]]:
    """Name, figure and meaning of each part; those of a known total add up to it."""
    total = account.total
    known = format_bytes(total) if total is not None else "not known: NVML has told nothing of this process"
    yield "process total", known, "by NVML" if total is not None else ""
    if account.context is not None:
        figure = format_bytes(account.context)
        meaning = "CUDA's own, with TensorFlow's kernels"
        if not account.context_exact:
            figure, meaning = "~" + figure, meaning + "; not measured in this run, the usual figure"
        yield "context", figure, meaning
    for pool in account.pools:
        name = f"{pool.device} " if len(account.pools) > 1 else ""
        yield f"{name}in use", format_bytes(pool.in_use), "handed to tensors"
        if pool.cached is not None:
            yield f"{name}cached", format_bytes(pool.cached), "held by the pool, in use by nobody"
    if account.outside is not None:
        mark = "" if account.context_exact else "~"
        yield "outside", mark + format_bytes(account.outside), "workspaces, late kernels, other libraries"
    elif account.rest is not None:
        yield (
            "the rest",
            "~" + format_bytes(account.rest),
            "cached and outside together: the pool's size is not known",
        )
    elif total is not None:
        yield "the rest", "—", "no allocator of TensorFlow's was read: what it is for is not known"


def in_use(held: Holdings) -> Iterator[tuple[str, str, str]]:
    """Label, figure and meaning of what is in use on one device, by kind."""
    looked = held.looked_s is not None
    for kind, size in held.kinds:
        meaning = ""
        if kind == TENSORS and held.looked_s is not None:
            meaning = f"found {format_duration(held.looked_s)} ago; those that share memory count each"
        yield LABELS[kind], format_bytes(size), meaning
    if held.rest is not None:
        meaning = "activations, temporaries, what only TensorFlow holds"
        yield "the rest", format_bytes(held.rest), meaning if looked else "other tensors, activations and temporaries"
    if held.excess:
        yield "of these", format_bytes(held.excess), "freed since then, or counted more than once"
    if held.rest_at_peak is not None:
        beyond = "beyond the variables and live tensors" if looked else "beyond the variables"
        yield "at the peak", format_bytes(held.rest_at_peak), beyond


def others_say(account: Account) -> Iterator[tuple[str, str]]:
    """What ``nvidia-smi`` and ``get_memory_info`` say of the same process."""
    card = f", {format_bytes(account.device_used)} for the whole card" if account.device_used is not None else ""
    if account.total is not None or card:
        own = format_bytes(account.total) if account.total is not None else "nothing"
        yield "nvidia-smi", f"{own} for the process{card}"
    for pool in account.pools:
        yield (
            "TensorFlow",
            (f'get_memory_info("{pool.device}"): current {format_bytes(pool.in_use)}, peak {format_bytes(pool.peak)}'),
        )


def why_they_differ(account: Account) -> str:
    """One sentence; empty where there is nothing to compare."""
    if account.total is None or not account.pools:
        return ""
    hidden = account.total - account.in_use
    sentence = (
        f"nvidia-smi counts {format_bytes(hidden)} more than TensorFlow, which counts what its tensors have now: "
    )
    if account.outside is None:
        return sentence + "what is cached, CUDA's context and libraries are in the one and not in the other."
    beside = (account.context or 0) + account.outside
    return sentence + (
        f"{format_bytes(account.cached)} are cached in the pool, and {format_bytes(beside)} are CUDA's context and "
        "what lies outside the pool."
    )
