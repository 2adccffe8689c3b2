"""The report on the holders of a pool's memory at the peak of a step, and on its buffers, as text and as JSON. Pure."""

import textwrap
from collections import Counter
from collections.abc import Sequence
from typing import Any

from tfmemtop.events import Closed, Holders, Opened
from tfmemtop.events.machine import is_cpu
from tfmemtop.findings.holders import buffer as buffer_name
from tfmemtop.findings.holders import group, holder, kind, nameless
from tfmemtop.findings.names import frames, spot
from tfmemtop.safe import safe
from tfmemtop.state.attribution import Kind
from tfmemtop.state.holder_views import Lifetime, Lifetimes, lifetimes
from tfmemtop.state.holders import By, Holder, Standing, standing
from tfmemtop.state.windows import Chosen, higher_peak, seconds_of
from tfmemtop.units import aligned, counted, duration, format_bytes, spoken

_WIDTH = 96
_NAME = 30  # characters of a row's name, at least
_AT_PEAK = "at the peak"


def table(one: Chosen, by: By, others: Sequence[str], at: int | None = None) -> list[str]:
    """Return a description of the window, the rows, the largest first, and notes on them, as lines of text.

    The rows are what stands after event *at*, by default at the peak.
    """
    found = standing(one.window, one.hooked, by, at)
    rows = [_cells(row, by, found.total) for row in found.holders]
    if found.unknown:
        rows.append(("unknown", "", *_size(found.unknown, found.total), ""))
    when = _AT_PEAK if at is None else f"at {seconds_of(one.window, found.at):.3f} s"
    rows.append((f"in use {when}", "", *_size(found.total, found.total), ""))
    head = (group(by).upper(), "" if by is By.KIND else "KIND", "BYTES", "SHARE", "COUNT")
    told = [higher(one), not_known(found, one), rounding(found)]
    notes = [line for text in told if text for line in wrap(text)]
    return [
        *wrap(about(one, others, found, when)),
        "",
        *_fitted([head, *rows]),
        *([""] if notes else []),
        *notes,
    ]


def _fitted(rows: list[tuple[str, ...]]) -> list[str]:
    """Return *rows* as lines with columns; of the names in the first, only so much that the lines fit the report."""
    others = [max(map(len, column)) for column in list(zip(*rows, strict=True))[1:]]
    room = max(_NAME, _WIDTH - sum(others) - len(others) * len("  "))
    return aligned([(end_of_name(name, room), *cells) for name, *cells in rows], {0, 1})


def top_rows(one: Chosen, count: int) -> list[str]:
    """Return the first *count* rows of the table by layer, without its headings, indented."""
    found = standing(one.window, one.hooked, By.LAYER)
    rows = [_cells(row, By.LAYER, found.total) for row in found.holders[:count]]
    return [f"  {line}" for line in _fitted(rows)]


def _cells(row: Holder, by: By, total: int) -> tuple[str, ...]:
    of = "" if by is By.KIND else kinds(row)
    return safe(row_name(row, by)), of, *_size(row.bytes, total), str(row.count) if row.count else ""


def _size(size: int, total: int) -> tuple[str, str]:
    return format_bytes(size), f"{size / max(1, total):.1%}"


def to_json(one: Chosen, by: By, at: int | None = None) -> dict[str, Any]:
    """Return the same as keys and values.

    The rows' bytes and ``unknown`` add up to ``peak``, or to ``in_use`` with *at*. The value of ``at`` is in seconds.
    """
    found = standing(one.window, one.hooked, by, at)
    return {
        "device": one.device,
        "peak" if at is None else "in_use": found.total,
        "at": round(seconds_of(one.window, found.at), 6),
        "rows": [
            {"name": row_name(row, by), "kind": row.kind.value, "bytes": row.bytes, "count": row.count}
            for row in found.holders
        ],
        "unknown": found.unknown,
    }


def end_of_name(name: str, most: int) -> str:
    """Return the last *most* characters of *name*."""
    return name if len(name) <= most else "…" + name[1 - most :]


def wrap(text: str) -> list[str]:
    """Return *text* in the lines of the report."""
    return textwrap.wrap(safe(" ".join(text.split())), _WIDTH, break_long_words=False, break_on_hyphens=False)


_NOTEWORTHY = 0.1  # a share of a row


def kinds(row: Holder) -> str:
    """Return the kinds that make up a tenth of a row or more, the largest first: ``optimizer, variables``."""
    return ", ".join(kind(of) for of, size in row.kinds if size >= _NOTEWORTHY * row.bytes)


def row_name(row: Holder, by: By) -> str:
    """Return the name of a row: a layer, an operation without the prefix that all have, or ``train.py:12``."""
    return holder(row.name, row.kind, by, whole=False)


def pool_name(one: Chosen) -> str:
    """Return the name of a pool: ``the CPU pool``, ``the pool of GPU:0``."""
    return "the CPU pool" if is_cpu(one.device) else f"the pool of {one.device}"


def higher(one: Chosen) -> str | None:
    """Return the line about a higher use of the pool outside this window; ``None`` if there was none."""
    peak = higher_peak(one.hooked, one.device, one.window)
    return None if peak is None else f"The highest use of this pool was {format_bytes(peak)}, outside this window."


def what_was_recorded(window: Holders) -> str:
    """Return what the window is: ``one step of train_step``, ``evaluate``, what began with the run."""
    if window.function and window.steps:
        return f"one step of {window.function}" if window.steps == 1 else f"{window.steps:g} steps of {window.function}"
    if window.phase:
        return window.phase
    start = window.opened is Opened.START and window.opened_for
    return "what was recorded since the run's start" if start else "a window"


def about(one: Chosen, others: Sequence[str], found: Standing, when: str) -> str:
    """Return the description of the window, of which *found* stood at the moment *when*.

    *others* are the devices of other pools that have a window.
    """
    window = one.window
    joined = f"{when} of" if when == _AT_PEAK else f"{when}, in"
    text = (
        f"Who held the {format_bytes(found.total)} that were in use in {pool_name(one)} of process {one.pid} {joined} "
        f"{what_was_recorded(window)}."
    )
    if found.at == window.peak_at:
        text += f" The peak was at {spoken(seconds_of(window, found.at))} of the session."
    begin = f"The window begins at {spoken(window.began)}"
    text += f" {begin}; it was opened {window.opened_for}." if window.opened_for else f" {begin}."
    if window.closed not in (Closed.STEP, Closed.OPEN) and window.opened is not Opened.START and not window.steps:
        text += " It ended before a step was whole."
    pools = "Other pools" if len(others) > 1 else "Other pool"
    return text + (f" {pools}: {', '.join(others)} (--device)." if others else "")


def not_known(found: Standing, one: Chosen) -> str:
    """Return why what is unknown is unknown; empty if nothing is."""
    nameless = sum(part.bytes for part in found.nameless)
    reasons = []
    if found.before:
        reasons.append(f"{format_bytes(found.before)} were allocated before the window, and are no known variables")
    if nameless:
        which = counted(sum(part.count for part in found.nameless), "allocation")
        reasons.append(f"TensorFlow gave no name for {which} of {format_bytes(nameless)}")
    if rest := found.unknown - nameless:
        lost = f", {counted(one.window.lost, 'event')} of which are lost" if one.window.lost else ""
        reasons.append(f"{format_bytes(rest)} belong to no allocation that was recorded{lost}")
    return f"Unknown: {'; '.join(reasons)}." if reasons else ""


def rounding(found: Standing) -> str:
    """Return the explanation of the row of rounding; empty if there is no such row."""
    size = sum(part.bytes for row in found.holders for part in row.parts if part.kind is Kind.ROUNDING)
    if not size:
        return ""
    return (
        f"Rounding: XLA's buffers lie in chunks that are {format_bytes(size)} larger. TensorFlow's allocator cuts a "
        "chunk only if it is twice as large as what is asked for, or 128 MiB larger."
    )


def not_recorded(why: str) -> str:
    """Return the line about a run that ran out of memory and has no window, and how the next run gets one."""
    records = "With the probe, tfmemtop records them by itself, and tfmemtop holders shows which layers held the memory"
    helps = f": {why}" if why else f". {records} (tfmemtop help holders)"
    return f"No window of allocations was recorded in this run{helps}."


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


WHO_HOLDS = "Who holds it"
"""The title of the paragraph about the holders."""


def by_kind(found: Standing) -> str:
    """Return the kinds of memory that have at least a hundredth, with their shares, the largest first."""
    sizes: Counter[Kind] = Counter()
    for row in found.rows:
        sizes.update(dict(row.kinds))
    told = sorted(sizes.items(), key=lambda one: (-one[1], kind(one[0])))
    return ", ".join(f"{nameless(of)} {size / found.total:.0%}" for of, size in told if size >= 0.01 * found.total)


_BUFFERS = 60
_BUFFER_NAME, _BAR_CELLS = 36, 40  # characters
_PEAK = "┊"


def lifetimes_table(one: Chosen) -> list[str]:
    """Return the largest buffers of a window as lines of text, each with a bar over the window's time."""
    shown = lifetimes(one.window, one.hooked)
    listed, others = shown.buffers[:_BUFFERS], shown.buffers[_BUFFERS:]
    head = about(one, (), standing(one.window, one.hooked, By.KIND), _AT_PEAK)
    head += (
        f" The column of bars spans {duration(shown.whole_us)}; {_PEAK} is the peak, after {duration(shown.peak_us)}."
    )
    rows = [_of_buffer(shown, each) for each in listed]
    lines = [*wrap(head), ""]
    lines += aligned([("BUFFER", "KIND", "BYTES", _lifetime_bar(shown, range(0)), "LINE"), *rows], {0, 1, 3, 4})
    if others:
        size = format_bytes(sum(each.part.bytes for each in others))
        lines += ["", f"{counted(len(others), 'smaller buffer')}, {size} in all, not all at one time: see --json."]
    return lines


def lifetimes_json(one: Chosen) -> dict[str, Any]:
    """Return all buffers as keys and values. ``from`` and ``to`` are seconds of the session."""
    shown, began = lifetimes(one.window, one.hooked), one.window.began

    def at(us: int | None) -> float | None:
        return None if us is None else round(began + us / 1e6, 6)

    return {
        "device": one.device,
        "peak": one.window.peak,
        "at": at(shown.peak_us),
        "buffers": [
            {
                "name": buffer_name(each.part),
                "kind": each.part.kind.value,
                "bytes": each.part.bytes,
                "from": at(each.from_us),
                "to": at(each.to_us),
                "line": _place(each),
                "stack": frames(each.part.line),
            }
            for each in shown.buffers
        ],
    }


def _of_buffer(shown: Lifetimes, each: Lifetime) -> tuple[str, ...]:
    name = end_of_name(safe(buffer_name(each.part)), _BUFFER_NAME)
    bar = _lifetime_bar(shown, shown.cells(each, _BAR_CELLS))
    return name, kind(each.part.kind), format_bytes(each.part.bytes), bar, _place(each)


def _lifetime_bar(shown: Lifetimes, used: range) -> str:
    peak = shown.cell(shown.peak_us, _BAR_CELLS)
    return "".join("█" if cell in used else _PEAK if cell == peak else " " for cell in range(_BAR_CELLS))


def _place(each: Lifetime) -> str:
    return spot(each.part.line.file, each.part.line.line) if each.part.line else ""
