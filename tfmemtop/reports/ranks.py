"""The report on the ranks of a job side by side, as text and as JSON. Pure."""

from collections.abc import Sequence
from dataclasses import fields
from enum import Enum
from typing import Any

from tfmemtop.findings.ranks import Differs, differences, missing
from tfmemtop.reports.why import key
from tfmemtop.state.in_effect import InEffect
from tfmemtop.state.ranks import Laid, Rank, lay
from tfmemtop.words.comparison import how_it_ended
from tfmemtop.words.rank_comparison import HEADINGS, cells, heading, sentences
from tfmemtop.words.safe import safe
from tfmemtop.words.settings import in_effect


def table(ranks: Sequence[Rank]) -> list[str]:
    """Return a line for each rank, and below them how they differ."""
    laid = lay(ranks)
    rows = [HEADINGS, *(tuple(map(safe, cells(rank))) for rank in ranks)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
    said = sentences(laid, differences(laid), missing(ranks))
    return [heading(laid), "", *lines, "", *said]


def to_json(ranks: Sequence[Rank]) -> dict[str, Any]:
    """Return the ranks and their differences as keys and values, and the differences also as sentences.

    In a difference, ``rank`` is the place in ``ranks``.
    """
    laid = lay(ranks)
    found, absent = differences(laid), missing(ranks)
    return {
        "ranks": [_rank(rank) for rank in ranks],
        "along": laid.along.name.lower(),
        "differences": [_difference(one, laid) for one in found],
        "missing": absent,
        "sentences": sentences(laid, found, absent),
    }


def _rank(rank: Rank) -> dict[str, Any]:
    figures = rank.figures
    return {
        "name": rank.name,
        "placement": rank.placement,
        "host": rank.host,
        "started": rank.started,
        "tensorflow": rank.tensorflow,
        "run": figures.run,
        "duration_s": figures.duration_s,
        "steps": figures.steps,
        "steps_per_s": figures.steps_per_s,
        "peak_in_use": figures.peak_in_use,
        "peak_pool": figures.peak_pool,
        "peak_process_total": figures.peak_process_total,
        "out_of_memory": figures.out_of_memory,
        "settings": in_effect(figures.settings),
        "end": how_it_ended(figures),
        "good": figures.good,
    }


def _difference(one: Differs, laid: Laid) -> dict[str, Any]:
    told = {field.name: _value(getattr(one, field.name)) for field in fields(one)}
    return {"kind": key(type(one).__name__), "rank": one.rank, "number": laid.ranks[one.rank].number} | told


def _value(value: object) -> object:
    if isinstance(value, InEffect):
        return in_effect(value)
    return value.name.lower() if isinstance(value, Enum) else value
