"""The reports' text about the holders of a pool's memory: rows, their window, and what is not known. Pure."""

from collections.abc import Sequence

from tfmemtop.events import Closed, Opened
from tfmemtop.events.device_names import is_cpu
from tfmemtop.findings.holder_texts import holder, kind, nameless, opened
from tfmemtop.state.anatomy import HoldersAtFailure
from tfmemtop.state.attribution import Kind
from tfmemtop.state.holder_choice import Chosen
from tfmemtop.state.holder_views import Change, Listed, changes
from tfmemtop.state.holders import By, Holder, Standing
from tfmemtop.units import counted, format_bytes, spoken

HEAD = {By.LAYER: "LAYER", By.OPERATION: "OPERATION", By.KIND: "KIND", By.SHAPE: "SHAPE", By.LINE: "LINE"}
COLUMNS = "KIND", "BYTES", "SHARE", "COUNT"
UNKNOWN, SUM = "unknown", "in use at the peak"

NOTEWORTHY = 0.02
"""Differences below this share do not count: a run hardly ever repeats to the byte."""

_NOTEWORTHY = 0.1  # a share of a row
_HIGHER = 1.05
_CHANGES = 5


def kinds(row: Holder) -> str:
    """Return the kinds that make up a tenth of a row or more, the largest first: ``optimizer, variables``."""
    sizes: dict[Kind, int] = {}
    for part in row.parts:
        sizes[part.kind] = sizes.get(part.kind, 0) + part.bytes
    told = sorted((-size, kind(of)) for of, size in sizes.items() if size >= _NOTEWORTHY * row.bytes)
    return ", ".join(name for _, name in told)


def row_name(row: Holder, by: By) -> str:
    """Return the name of a row: a layer, an operation without the prefix that all have, or ``train.py:12``."""
    return holder(row.name, row.kind, by, whole=False)


def pool_name(one: Chosen) -> str:
    """Return the name of a pool: ``the CPU pool``, ``the pool of GPU:0``."""
    return "the CPU pool" if is_cpu(one.device) else f"the pool of {one.device}"


def higher(one: Chosen) -> str | None:
    """Return the line about a higher use of the pool outside this window; ``None`` if there was none."""
    reading = one.hooked.allocators.get(one.device)
    if reading is None or reading.peak is None or reading.peak <= one.window.peak * _HIGHER:
        return None
    return f"The highest use of this pool was {format_bytes(reading.peak)}, outside this window."


def about(one: Chosen, others: Sequence[str]) -> str:
    """Return the description of the window; *others* are the devices of other pools that have a window."""
    window = one.window
    what = "a window"
    if window.function and window.steps:
        what = f"one step of {window.function}" if window.steps == 1 else f"{window.steps:g} steps of {window.function}"
    text = (
        f"Who held the {format_bytes(window.peak)} that were in use in {pool_name(one)} of process {one.pid} at the "
        f"peak of {what}. It was recorded at {spoken(window.began)}, {opened(window.opened)}."
    )
    if window.closed is not Closed.STEP and not window.steps:
        text += " It ended before a step was whole."
    pools = "Other pools" if len(others) > 1 else "Other pool"
    return text + (f" {pools}: {', '.join(others)} (--device)." if others else "")


def not_known(found: Standing, one: Chosen) -> str:
    """Return why the unknown bytes are unknown; empty if there are none."""
    if not found.unknown:
        return ""
    nameless = sum(part.bytes for part in found.nameless)
    reasons = []
    if nameless:
        which = counted(sum(part.count for part in found.nameless), "allocation")
        reasons.append(f"TensorFlow gave no name for {which} of {format_bytes(nameless)}")
    if rest := found.unknown - nameless:
        lost = f", {counted(one.window.lost, 'event')} of which are lost" if one.window.lost else ""
        reasons.append(f"{format_bytes(rest)} belong to no allocation that was recorded{lost}")
    return f"Unknown: {'; '.join(reasons)}."


def before(found: Standing) -> str:
    """Return the explanation of the row without a name; empty if there is no such row."""
    if not found.before:
        return ""
    return f"No name: {format_bytes(found.before)} were allocated before the window, and are no known variables."


def rounding(found: Standing) -> str:
    """Return the explanation of the row of rounding; empty if there is no such row."""
    size = sum(part.bytes for row in found.holders for part in row.parts if part.kind is Kind.ROUNDING)
    if not size:
        return ""
    return (
        f"Rounding: XLA's buffers lie in chunks that are {format_bytes(size)} larger. TensorFlow's allocator cuts a "
        "chunk only if it is twice as large as what is asked for, or 128 MiB larger."
    )


def no_window(path: str, why: str | None, *, only_asked: bool) -> str:
    """Return the error for a recording without windows; *only_asked* if windows were opened only on request."""
    if why is None and only_asked:
        why = "the session was started with --holders-interval 0, and nobody asked for one"
    return f"{path} holds no window of allocations" + (f": {why}" if why else "")


def not_recorded(why: str) -> str:
    """Return the line about a run that ran out of memory and has no window, and how the next run gets one."""
    reason = f": {why}" if why else ""
    return (
        f"No window of allocations was recorded in this run{reason}. With the probe, tfmemtop records them by itself, "
        "and tfmemtop holders shows which layers held the memory (tfmemtop help holders)."
    )


def no_device(device: str, known: list[str]) -> str:
    """Return the error for a chosen device that has no window."""
    return f"there is no window of {device}, only of {', '.join(known)}"


def in_short(one: Chosen, found: Standing) -> str:
    """Return what was in use at the peak, in one paragraph."""
    window = one.window
    step = f"a step of {window.function}" if window.function and window.steps else "a window"
    waited = window.opened is Opened.WAITING and not window.steps
    when = "While an allocation waited for room" if waited else f"At the peak of {step}"
    return (
        f"{when}, {format_bytes(found.total)} were in use in {pool_name(one)}: {by_kind(found)}. The largest layers "
        "are below; tfmemtop holders shows all."
    )


def held(found: HoldersAtFailure) -> str:
    """Return what held most when an allocation failed, and the age of that information."""
    names = [f"{row_name(row, By.LAYER)} {format_bytes(row.bytes)}" for row in found.holders]
    if not names:
        return ""
    ago = f", {spoken(found.age_s)} before the failure" if found.age_s >= 1 else ""
    when = f"While it waited{ago}" if found.waiting else f"At the peak of the newest window{ago}"
    untold = ""
    if found.nameless is not None:
        nameless, total = found.nameless
        when = f"At the peak of the last step that was recorded{ago}"
        untold = (
            f"While it waited, {format_bytes(total)} were in use. {format_bytes(nameless)} of it were allocated after "
            "the last recorded step and have no name. "
        )
    listed = f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else names[0]
    return f"{untold}{when}, most of {format_bytes(found.total)} was held by {listed}."


def changed(first: Listed, second: Listed) -> list[str]:
    """Return, as a list with one sentence, what differs most by layer between the peaks of a step in two runs.

    Empty if nothing differs noticeably.
    """
    least = NOTEWORTHY * max(first.total, second.total)
    found = [change for change in changes(first, second) if abs(change.change) >= least][:_CHANGES]
    if not found:
        return []
    told = ", ".join(
        f"{_called(change)} {'+' if change.change > 0 else '-'}{format_bytes(abs(change.change))} "
        f"({format_bytes(change.before)} before)"
        for change in found
    )
    peaks = f"{format_bytes(first.total)} and {format_bytes(second.total)}"
    return [f"The peaks of a step ({peaks}) differ by layer: {told}."]


def _called(change: Change) -> str:
    return holder(change.name, change.kind)


WHO_HOLDS = "Who holds it"
"""The title of the paragraph about the holders."""


def by_kind(found: Standing) -> str:
    """Return the kinds of memory that have at least a hundredth, with their shares, the largest first."""
    sizes: dict[Kind, int] = {}
    for row in found.holders:
        for part in row.parts:
            sizes[part.kind] = sizes.get(part.kind, 0) + part.bytes
    told = sorted(((size, of) for of, size in sizes.items() if size >= 0.01 * found.total), key=lambda one: -one[0])
    return ", ".join(f"{nameless(of)} {size / found.total:.0%}" for size, of in told)
