"""The report on what other settings would do to a run, as text and as JSON."""

from collections.abc import Sequence
from itertools import groupby
from typing import Any

from tfmemtop.events import SettingReplayed
from tfmemtop.reports import whatif_text as whatif
from tfmemtop.reports.whatif_text import unreplayed_remedy, unreplayed_text
from tfmemtop.safe import safe
from tfmemtop.state.predicted import Predicted, together
from tfmemtop.units import UNKNOWN

Card = tuple[str, int, bool]
"""A card: its name, the bytes that programs can use of it, and whether these were measured."""


_EMPTY = ("", UNKNOWN)


def page(views: Sequence[Predicted], cards: Sequence[Card]) -> list[str]:
    """Return the tables of all pools, and then on which of *cards* the first pool's run would fit, as lines."""
    lines: list[str] = []
    for view in views:
        lines += [*([""] if lines else []), *_pool(view)]
    for _, alike in groupby(together(views), lambda row: row.devices):
        shared = list(alike)
        lines += ["", whatif.together_title(shared[0]), ""]
        lines += [line.rstrip() for line in _columns([whatif.TOGETHER, *map(whatif.together_cells, shared)])]
    first = views[0]
    if first.beside is not None and first.replayed.smallest:
        heads = ("", whatif.card_heading(first, True), whatif.card_heading(first, False))
        rows = [tuple(row) for row in whatif.card_rows(first, cards)]
        if any(row[1:] != (whatif.NOT_KNOWN, whatif.NOT_KNOWN) for row in rows):
            lines += ["", *(line.rstrip() for line in _columns([heads, *rows]))]
    return [safe(line) for line in lines]


def _pool(view: Predicted) -> list[str]:
    lines = [whatif.title(view), *whatif.basis(view)]
    if view.replayed.is_missing:
        return [*lines, *filter(None, (unreplayed_text(view.replayed), unreplayed_remedy(view.replayed)))]
    texts = [whatif.COLUMNS, *(whatif.cells(view, row) for row in view.rows)]
    used = [place for place in range(len(whatif.COLUMNS)) if any(row[place] not in _EMPTY for row in texts[1:])]
    remarks = ["", *(whatif.remark(view, row) for row in view.rows)]
    # A setting that fails has no figures. The reason for the failure is in their place.
    lines_of = ["  ".join(cells).rstrip() for cells in whatif.aligned(texts, used)]
    table = [f"{line}  {remark}".rstrip() for line, remark in zip(lines_of, remarks, strict=True)]
    known = whatif.asynchronous(view)
    return [
        *lines,
        "",
        *table,
        *([] if view.outgrown else [whatif.AT_THE_END]),
        "",
        *whatif.smallest(view),
        *([known] if known else []),
        whatif.NO_TIME,
    ]


def _columns(rows: Sequence[tuple[str, ...]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(f"{cell:{width}}" for cell, width in zip(row, widths, strict=True)) for row in rows]


def to_json(view: Predicted) -> dict[str, Any]:
    """Return the table of one pool as keys and values; sizes are in bytes.

    ``fits`` is null where some runs would fail. ``outgrown`` is whether the run later needed more than was replayed, or
    failed. If so, only those rows are there of which something is known, ``surely`` is null, and ``worked`` is the pool
    that the run reached, null where that is not known. ``before`` bytes were in use as the recording of the allocations
    began. If that is not 0, the figures are upper bounds.
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
    return {"surely": ends.surely, "at_least": ends.at_least, "worked": ends.worked}
