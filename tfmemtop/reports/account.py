"""The report on the memory of the run's processes, as text: what each part of it is."""

from collections.abc import Iterator

from tfmemtop.findings.scene import LONG_AGO_S
from tfmemtop.safe import safe
from tfmemtop.state import State
from tfmemtop.state.account import Account, Breakdown, MemoryPart, MemorySlice, breakdowns
from tfmemtop.state.holder_views import since_run_s
from tfmemtop.state.lookup import of_run
from tfmemtop.units import format_bytes, format_duration, spoken

_NAMES = {MemoryPart.TENSORS: "live tensors", MemoryPart.OTHER_IN_USE: "rest in use"}

_MEANINGS = {
    MemoryPart.CONTEXT: "CUDA's own, TensorFlow's kernels",
    MemoryPart.IN_USE: "allocated to tensors",
    MemoryPart.CACHED: "held by the pool, unused",
    MemoryPart.OUTSIDE: "workspaces, other libraries",
    MemoryPart.CACHED_AND_OUTSIDE: "the size of the pool is unknown",
}


def name(part: MemoryPart) -> str:
    """Return the name of a part: ``context``, ``live tensors``."""
    return _NAMES.get(part, part.value)


def figure(part: MemorySlice) -> str:
    """Return the size as text: ``417.2 MiB``, or ``~520.0 MiB`` where it rests on a usual figure."""
    return ("" if part.exact else "~") + format_bytes(part.size)


def meaning(part: MemorySlice, found: Breakdown) -> str:
    """Return what that memory is for, in at most 33 characters; empty where its name is clear enough."""
    if part.part is MemoryPart.CONTEXT and not part.exact:
        return "the usual size, not measured"
    looked = next((held.looked_s for held in found.held if held.looked_s is not None), None)
    if part.part is MemoryPart.OTHER_IN_USE:
        return "activations, temporaries" + ("" if looked is not None and looked < LONG_AGO_S else ", tensors")
    if part.part is MemoryPart.TENSORS and looked is not None:
        return f"found {spoken(looked)} ago"
    frameworks = found.account.frameworks if found.account else ()
    sizes = [one.in_use for one in frameworks if one.framework.title == part.part.value and one.in_use is not None]
    return f"{format_bytes(sum(sizes))} in use" if sizes else _MEANINGS.get(part.part, "")


def heading(state: State, pid: int, found: Breakdown) -> str:
    """Return the heading of the bar: ``Its memory on GPU 0 at 00:00:21: 1.1 GiB``. The time is that of the run."""
    at = "" if found.t is None else f" at {format_duration(since_run_s(state, pid, found.t))}"
    if found.gpu is None:
        return f"Its pool on the CPU{at}: {format_bytes(found.size)}"
    total = found.account.total if found.account else None
    whole = format_bytes(total) if total is not None else f"{format_bytes(found.size)} in pools, the rest unknown"
    return f"Its memory on GPU {found.gpu}{at}: {whole}"


def note(found: Breakdown) -> str:
    """Return the line on peak and limit."""
    return f"peak in use {format_bytes(found.peak)}; limit {format_bytes(found.limit)}"


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
    others = "".join(f"{name.title} holds {format_bytes(size)}, " for name, size in account.by_framework.items())
    return (
        f"{more}: {format_bytes(account.cached)} are cached in the pool, {others}and {format_bytes(beside)} are CUDA's "
        "context and memory outside the pool."
    )


_NAME, _FIGURE = 14, 11  # characters


def account(state: State) -> list[str]:
    """Return the parts of the memory, for each process of the newest run and each of its devices, as lines of text.

    The parts add up to the total. Empty where no process is read.
    """
    return [safe(line) for pid in state.processes if of_run(state, pid) for line in _of_process(state, pid)]


def _of_process(state: State, pid: int) -> Iterator[str]:
    for found in breakdowns(state, pid):
        yield f"Process {pid}. {heading(state, pid, found)}"
        for part in found.slices:
            share = f"{part.size / found.size:4.0%}" if found.size else ""
            named = f"  {name(part.part):{_NAME}} {figure(part):>{_FIGURE}} {share:>4}"
            yield f"{named}  {meaning(part, found)}".rstrip()
        yield f"  {note(found)}"
        if found.account is not None:
            yield from (f"  {name}: {said}" for name, said in others_say(found.account))
            if sentence := why_they_differ(found.account):
                yield f"  {sentence}"
