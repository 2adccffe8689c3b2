"""The report on what other settings would do to a run, as text and as JSON."""

from collections.abc import Iterator, Sequence
from typing import Any

from msgspec.structs import replace

from tfmemtop.events import SettingReplayed
from tfmemtop.events.machine import is_gpu
from tfmemtop.findings.holders import operation
from tfmemtop.findings.missing import unreplayed_remedy, unreplayed_text
from tfmemtop.findings.rules.leaks import leaks
from tfmemtop.limits import typed, with_margin
from tfmemtop.safe import safe
from tfmemtop.state import State
from tfmemtop.state.operation_names import Layers, Phase, named
from tfmemtop.state.predicted import Ends, Later, Predicted, predicted
from tfmemtop.units import GIB, MIB, UNKNOWN, aligned, counted, format_bytes, format_count, format_rate, format_short

Card = tuple[str, int, bool]
"""A card: its name, the bytes that programs can use of it, and whether these were measured."""


def page(views: Sequence[Predicted], cards: Sequence[Card]) -> list[str]:
    """Return the tables of all pools, and then on which of *cards* the first pool's run would fit, as lines."""
    lines: list[str] = []
    for view in views:
        lines += [*([""] if lines else []), *_pool(view)]
    first = views[0]
    if first.beside is not None and first.replayed.smallest:
        heads = ("", _card_heading(first, True), _card_heading(first, False))
        rows = [(card[0], *(_on_card(first, growth, card) for growth in (True, False))) for card in cards]
        if any(row[1:] != (NOT_KNOWN, NOT_KNOWN) for row in rows):
            lines += ["", *aligned([heads, *rows], left=range(len(heads)))]
    return [safe(line) for line in lines]


def _pool(view: Predicted) -> list[str]:
    lines = [title(view), *basis(view)]
    if view.replayed.is_missing:
        return [*lines, *filter(None, (unreplayed_text(view.replayed), unreplayed_remedy(view.replayed)))]
    texts = [COLUMNS, *(cells(view, row) for row in view.rows)]
    known_columns = [column for column in zip(*texts, strict=True) if not {*column[1:]} <= {"", UNKNOWN}]
    left = {place for place, column in enumerate(known_columns) if column[0] in LEFT}
    remarks = ["", *(remark(view, row) for row in view.rows)]
    # A setting that fails has no figures. The reason for the failure is in their place.
    lines_of = aligned(list(zip(*known_columns, strict=True)), left)
    table = [f"{line}  {remark}".rstrip() for line, remark in zip(lines_of, remarks, strict=True)]
    known = asynchronous(view)
    return [
        *lines,
        "",
        *table,
        *([] if view.outgrown else [AT_THE_END]),
        "",
        *limits(view),
        *smallest(view),
        *([known] if known else []),
        paces(view),
    ]


def to_json(view: Predicted) -> dict[str, Any]:
    """Return the table of one pool as keys and values; sizes are in bytes.

    ``fits`` is null where some runs would fail. ``outgrown`` is whether the run later needed more than was replayed, or
    failed, or whether its memory kept rising. If so, only those rows are there of which something is known, ``surely``
    is null, and ``worked`` is the pool that the run reached, null where that is not known. ``before`` bytes were in use
    as the recording of the allocations began. If that is not 0, the figures are upper bounds. ``same_algorithms`` is
    null where ``surely`` is.
    """
    return {
        "device": view.device,
        "rows": [_row(view, row) for row in view.rows],
        "smallest": {"growth_on": _ends(view, True), "growth_off": _ends(view, False)},
        "seen": {
            "events": view.replayed.events,
            "share": view.share,
            "outgrown": view.outgrown,
            "before": view.replayed.before,
        },
    }


def _row(view: Predicted, row: SettingReplayed) -> dict[str, Any]:
    outcome, fits = row.outcome, view.fits(row)
    pool: int | None = outcome.peak_pool
    peak: int | None = outcome.peak
    if view.outgrown and row.fits is not False:
        measured = view.measured
        pool, peak = (view.pool, measured.peak) if measured and view.is_as_measured(row) else (None, None)
    return {
        "growth": row.growth,
        "limit": row.limit,
        "fits": fits,
        "pool": pool,
        "peak": peak,
        "short_by": outcome.lacking if row.fits is False else None,
    }


def _ends(view: Predicted, growth: bool) -> dict[str, int | None] | None:
    ends = view.ends(growth)
    if ends is None:
        return None
    return {
        "surely": ends.surely,
        "same_algorithms": ends.alike,
        "at_least": ends.at_least,
        "worked": ends.worked,
    }


COLUMNS = (
    "growth",
    "limit",
    "fits",
    "peak",
    "pool",
    "cached",
    "grew",
    "largest free",
    "fragmented",
    "process total",
    "pace",
)
"""The headings of the table. The pace is that of a run of the session with this setting."""


LEFT = ("growth", "fits")
"""The columns of words, which are aligned to the left. The other columns are figures, aligned to the right."""

NO_TIME = "Which setting is faster is not predicted: relaunch with it, and its steps per second are shown here."

TRIED = (
    "The third has room for the algorithms that convolutions tried and did not take; without room, TensorFlow leaves "
    "these out."
)
"""The sentence about limits that are larger than the same algorithms need."""

AT_THE_END = (
    "Peak, pool and process total are the highest; cached, largest free and fragmented are of the replay's end."
)
"""The line about which moment each of the table's columns is from."""

NOT_KNOWN = "not known"
"""For a setting of which neither the replay nor the run shows whether it is enough."""

LATE = 0.01
"""A share of the most bytes requested. If at least this much was in use as the trace began, the text mentions it."""


def views(state: State, device: str | None = None) -> list[Predicted]:
    """Return a view of each pool that was replayed, or only of *device*; one whose memory kept rising has no limit."""
    rising = leaks(state)
    return [
        replace(view, failed=Later.RISING)
        if (view.pid, view.device) in rising and view.failed is Later.NO_MORE
        else view
        for view in predicted(state, device)
    ]


def title(view: Predicted) -> str:
    """Return the title of the table: pool and process."""
    return f"What if: {view.device} of process {view.pid} under other settings"


def basis(view: Predicted) -> Iterator[str]:
    """Yield the sentences about what the table rests on."""
    replayed, share = view.replayed, view.share
    steps = f" of {counted(replayed.steps, 'step')}" if replayed.steps else ""
    seen = f"{counted(replayed.events, 'event')}{steps}"
    part = "all" if share is None or share >= 0.9995 else f"{100 * share:.1f} %"
    of_all = "" if share is None else f", {part} of the allocations so far"
    yield f"It rests on {seen}{of_all}, replayed in TensorFlow's own allocator."
    if replayed.lost:
        yield f"{counted(replayed.lost, 'event')} could not be recorded. This makes the replayed figures too low."
    if replayed.before >= LATE * replayed.requested > 0:
        yield (
            f"The recording began late: {format_bytes(replayed.before)} were in use by then. How the pool came to hold "
            "them is not known. As a rule this makes the replayed figures too high."
        )
    if view.outgrown:
        yield from _beyond(view)
    elif not replayed.whole:
        yield "Fewer than three of the first steps were recorded: later steps may need more."
    elif share is not None and share < 0.5:
        yield "Most allocations were not replayed: if the run needs more later, it needs a larger limit."


def _beyond(view: Predicted) -> Iterator[str]:
    """Yield the sentences about what the run needed after the replayed allocations, and what helps."""
    if view.later is Later.RISING:
        yield "Memory in use kept rising: what the run needs in the end is not known."
        return
    if view.later is Later.MORE:
        now = view.measured
        peak = format_bytes(now.peak if now else None)
        yield f"The run later had more: {peak} in use, in a pool of {format_bytes(view.pool)}."
    elif view.later is Later.RAN_OUT:
        yield "The run ran out of memory: what it would have needed after that is not known."
    else:
        yield "The run failed: what it would have needed is not known."
    yield "tfmemtop fit finds the smallest limit by trying."
    worked = ", and which worked" if view.later is Later.MORE else ""
    yield f"The table shows which limits are too small for the recorded allocations{worked}."


def cells(view: Predicted, row: SettingReplayed) -> tuple[str, ...]:
    """Return a row of the table, a text for each of :data:`COLUMNS`."""
    outcome, fits = row.outcome, view.fits(row)
    growth = ("on" if row.growth else "off") + (
        "" if row.collects is view.collects else ", GC" if row.collects else ", no GC"
    )
    pace = view.pace(row)
    a_second = f"{format_rate(pace.a_second)}/s" if pace else ""
    limit = "none" if row.limit is None else _limit(row.limit)
    if view.outgrown and view.is_as_measured(row):
        total = None if view.pool is None else view.total(view.pool)
        peak = format_short(view.measured.peak) if view.measured else UNKNOWN
        fits_now = "so far" if view.later is Later.RISING else "yes"
        return (growth, limit, fits_now, peak, format_short(view.pool), "", "", "", "", _total(view, total), a_second)
    if fits is False or view.outgrown:
        return (growth, limit, "no" if fits is False else NOT_KNOWN, *("",) * (len(COLUMNS) - 4), a_second)
    cached = outcome.pool - outcome.in_use
    scattered = (cached - outcome.largest_free) / cached if cached else 0.0
    total = view.total(outcome.peak_pool)
    return (
        growth,
        limit,
        ("yes" if view.is_as_measured(row) else "~yes") if fits else "perhaps",
        format_short(outcome.peak),
        format_short(outcome.peak_pool),
        format_short(cached),
        f"{outcome.growths}×",
        format_short(outcome.largest_free),
        f"{100 * scattered:.0f}%",
        _total(view, total),
        a_second,
    )


def _total(view: Predicted, total: int | None) -> str:
    return UNKNOWN if total is None else ("" if view.measured_beside else "~") + format_short(total)


def remark(view: Predicted, row: SettingReplayed) -> str:
    """Return the remark after a row: that it is the present setting with what was measured, and why it fails.

    Empty for other rows.
    """
    told = []
    if row is view.replayed.present:
        told.append(_present(view))
    elif row.collects is not view.collects:
        told.append(f"with BFC's garbage collection {'on' if row.collects else 'off'}")
    if row.fits is False:
        told.append(failure(row))
    return "; ".join(told)


def failure(row: SettingReplayed) -> str:
    """Return where a setting fails: the operation, the bytes that are missing, and the event."""
    outcome = row.outcome
    at = "" if outcome.failed is None else f" (event {format_count(outcome.failed + 1)})"
    short = f", {format_bytes(outcome.lacking)} more than there is in one piece" if outcome.lacking else ""
    return f"{_operation(outcome.operation)} asks for {format_bytes(outcome.asked)}{short}{at}"


def _operation(name: str) -> str:
    """Return the innermost scope of the operation called *name*, which may be a layer: ``conv1, backward,``."""
    one = named(name)
    if not name or one.phase is Phase.FUNCTION:
        return name or "an operation without a name"
    layer = Layers([name], []).of(one)
    if not layer:
        return operation(name)
    return f"{layer}, {one.phase.value}," if one.phase is Phase.BACKWARD else layer


def _present(view: Predicted) -> str:
    now = view.measured
    if view.later in (Later.MORE, Later.RISING):
        return "the present setting, as measured"
    if view.later is not Later.NO_MORE:
        return "the present setting: the run " + ("ran out of memory" if view.later is Later.RAN_OUT else "failed")
    if now is None or now.peak is None:
        return "the present setting"
    pool = now.peak_pool if now.peak_pool is not None else now.pool
    figures = f"peak {format_short(now.peak)}" + ("" if pool is None else f", pool {format_short(pool)}")
    return f"the present setting; measured: {figures}"


def limits(view: Predicted) -> list[str]:
    """Return the table of the smallest limits as lines; nothing if none is known to be enough."""
    rows = [
        (
            f"growth {'on' if growth else 'off'}" if is_gpu(view.device) else "on the CPU",
            typed(ends.at_least),
            f"~{typed(ends.alike)}",
            f"~{typed(with_margin(ends.surely))}",
        )
        for growth in (True, False)
        if (ends := view.ends(growth)) is not None and ends.surely is not None and ends.alike is not None
    ]
    second = "same algorithms" if view.replayed.scratch else "enough"
    table = [("smallest limit", "at least", second, "with a margin"), *rows] if rows else []
    return aligned(table)


def smallest(view: Predicted) -> Iterator[str]:
    """Yield the sentences about the smallest limits."""
    if limits(view):
        other = ", or take algorithms with less scratch memory, which may be slower" if view.replayed.scratch else ""
        yield f"By the replay alone: with a limit between the first two, a run may fail{other}."
        if any(ends.alike != ends.surely for growth in (True, False) if (ends := view.ends(growth))):
            yield TRIED
        return
    for growth in (True, False):
        if (ends := view.ends(growth)) is not None:
            yield from _known(f"With growth {'on' if growth else 'off'}" if is_gpu(view.device) else "On the CPU", ends)


def paces(view: Predicted) -> str:
    """Return how fast the runs with other settings were, or that this is not predicted."""
    if len({(pace.growth, pace.effective) for pace in view.paces}) < 2:
        return NO_TIME
    told = (
        f"{format_rate(pace.a_second)} in run {pace.run} (growth {'on' if pace.growth else 'off'}, "
        f"{f'limit {format_bytes(pace.limit)}' if pace.limit else 'no limit'})"
        for pace in view.paces
    )
    return f"Measured {view.paces[0].unit} per second: {', '.join(told)}."


def _known(name: str, ends: Ends) -> Iterator[str]:
    """Yield the sentences about the smallest limits for a run that later needed more than was replayed."""
    needed = f"at least {typed(ends.at_least)} are needed"
    if ends.failed is not None:
        yield f"{name} {typed(ends.failed)} was not enough. Whether a larger limit is enough is not known."
    elif ends.worked is None:
        yield f"{name} {needed}. Whether a larger limit is enough is not known."
    else:
        yield f"{name} the run worked with a pool of {typed(ends.worked)}, and {needed}."
        yield "Whether a limit between the two is enough is not known."


def asynchronous(view: Predicted) -> str | None:
    """Return what is known about cuda_malloc_async, which cannot be replayed; ``None`` for the CPU."""
    if not is_gpu(view.device):
        return None
    of_what = " of what was recorded" if view.outgrown else ""
    return (
        f"cuda_malloc_async is another allocator, which cannot be replayed: {format_bytes(view.replayed.requested)} "
        f"would be in use at the peak{of_what}, without its own rounding; its pool is not known."
    )


def _card_heading(view: Predicted, growth: bool) -> str:
    """Return the heading of the column for *growth* in the table of cards, with the limit or pool that it assumes."""
    ends = view.ends(growth)
    if ends is None:
        goes_by = ""
    elif ends.surely is not None:
        goes_by = f", limit ~{typed(with_margin(ends.surely))}"
    else:
        goes_by = f", pool {typed(ends.worked)}" if ends.worked is not None else ", not predicted"
    return f"growth {'on' if growth else 'off'}{goes_by}"


def _on_card(view: Predicted, growth: bool, card: Card) -> str:
    """Return whether the run fits on *card*."""
    _, usable, measured = card
    ends = view.ends(growth)
    lowest = None if ends is None else view.total(ends.at_least)
    if ends is None or lowest is None:
        return UNKNOWN
    enough = ends.worked if ends.surely is None else with_margin(ends.surely)
    needs = None if enough is None else view.total(enough)
    about = "" if view.measured_beside else "~"
    if needs is not None and needs <= usable:
        return f"fits, {about if measured else '~'}{format_bytes(usable - needs)} left"
    if lowest > usable:
        return f"no, needs at least {about}{format_bytes(lowest)}"
    return NOT_KNOWN if ends.surely is None else "perhaps"


def _limit(limit: int) -> str:
    return typed(limit) if limit % MIB == 0 and limit < 10 * GIB else format_short(limit)
