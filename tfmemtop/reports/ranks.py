"""The report on the ranks of a job side by side, as text and as JSON. Pure."""

from collections.abc import Sequence
from enum import Enum
from functools import singledispatch
from typing import Any

from msgspec.structs import fields, replace

from tfmemtop.findings.names import key_of
from tfmemtop.findings.ranks import (
    Differs,
    Ended,
    Held,
    Later,
    NoSteps,
    NotRead,
    OtherSettings,
    OtherTensorFlow,
    Pace,
    Peak,
    RanOut,
    differences,
    missing,
)
from tfmemtop.findings.rules.ending import ending
from tfmemtop.reports import settings
from tfmemtop.reports.comparison_text import how_it_ended
from tfmemtop.reports.settings import in_effect
from tfmemtop.safe import safe
from tfmemtop.state.effective_settings import EffectiveSettings
from tfmemtop.state.overlay import Measure
from tfmemtop.state.ranks import Along, Laid, Rank, lay
from tfmemtop.units import (
    UNKNOWN,
    aligned,
    counted,
    format_bytes,
    format_count,
    format_duration,
    format_rate,
    sentence,
    spoken,
)

HEADINGS = ("RANK", "HOST", "DURATION", "STEPS", "STEPS/S", "IN USE", "POOL", "PROCESS", "END")
_MOST = 16
"""The most sentences that are shown; --json has all."""
_NUMBERS = 6


def cells(rank: Rank) -> tuple[str, ...]:
    """Return the cells of *rank* under the :data:`HEADINGS`. Peaks are those of the whole run."""
    figures = rank.figures
    return (
        rank.name if rank.number is None else str(rank.number),
        rank.host,
        format_duration(figures.duration_s),
        UNKNOWN if figures.steps is None else format_count(figures.steps),
        UNKNOWN if figures.steps_per_s is None else format_rate(figures.steps_per_s),
        format_bytes(figures.peak_in_use),
        format_bytes(figures.peak_pool),
        format_bytes(figures.peak_process_total),
        how_it_ended(figures),
    )


def heading(laid: Laid) -> str:
    """Return which job it is, and whether the ranks are compared over steps, over seconds, or by their peaks."""
    jobs = sorted({rank.placement.job for rank in laid.ranks if rank.placement and rank.placement.job})
    of = f" of job {jobs[0]}" if len(jobs) == 1 else f" of jobs {', '.join(jobs)}" if jobs else ""
    over = {
        Along.STEPS: f"over the same {laid.unit}",
        Along.SECONDS: "over the seconds since memory was first held, because they do not count the same steps",
        Along.NOTHING: "by their peaks only, because they have neither steps nor time in common",
    }[laid.along]
    return f"{counted(len(laid.ranks), 'rank')}{of}, compared {over}:"


def sentences(laid: Laid, found: Sequence[Differs], missing: Sequence[int]) -> list[str]:
    """Return how the ranks differ, a line for each difference. Ranks that differ in the same way share a line.

    If no rank differs, a line states that. *missing* are the numbers of ranks without a recording.
    """
    groups: list[tuple[Differs, list[int]]] = []
    for one in found:
        alike = next((ranks for first, ranks in groups if replace(first, rank=one.rank) == one), None)
        if alike is None:
            groups.append((one, [one.rank]))
        else:
            alike.append(one.rank)
    lines = [sentence(f"{_names(laid, ranks)}{_says(one, laid, len(ranks) > 1)}.") for one, ranks in groups]
    if len(lines) > _MOST:
        lines[_MOST:] = [f"{counted(len(lines) - _MOST, 'further difference')} not listed; --json has all."]
    if not lines and all(rank.figures.peak_in_use is None for rank in laid.ranks):
        lines.append("TensorFlow's memory was not read in any of them.")
    elif not lines:
        lines.append("No rank differs from the others in a noteworthy way.")
    if missing:
        lines.append(f"Not among these recordings: {_numbers(missing)}.")
    return lines


def rank_name(rank: Rank) -> str:
    """Return the name of a rank: ``rank 3``, or the recording's name if the number is not known."""
    return rank.name if rank.number is None else f"rank {rank.number}"


def _names(laid: Laid, ranks: Sequence[int]) -> str:
    known = [number for rank in ranks if (number := laid.ranks[rank].number) is not None]
    if len(known) == len(ranks):
        return _numbers(known)
    return safe(_listed([rank_name(laid.ranks[rank]) for rank in ranks]))


def _numbers(numbers: Sequence[int]) -> str:
    numbers = sorted(numbers)
    return f"rank{'s' if len(numbers) > 1 else ''} {_listed([str(number) for number in numbers])}"


def _listed(names: Sequence[str]) -> str:
    if len(names) > _NUMBERS:
        return f"{', '.join(names[: _NUMBERS - 1])} and {len(names) - _NUMBERS + 1} more"
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def _usual(laid: Laid, rank: int) -> str:
    """Return the name of what a rank is compared with: the median, or the other of two ranks."""
    return "the median" if len(laid.ranks) > 2 else safe(rank_name(laid.ranks[1 - rank]))


def _others(laid: Laid, only: int | None) -> str:
    """Return the name of the ranks that have the usual value."""
    return "others" if only is None else safe(rank_name(laid.ranks[only]))


@singledispatch
def _says(one: Differs, laid: Laid, many: bool) -> str:
    raise NotImplementedError(one)


@_says.register
def _(one: Held, laid: Laid, many: bool) -> str:
    size = f"{'up to ' if one.up_to else ''}{format_bytes(one.size)} {'less' if one.less else 'more'}"
    verb = "have" if many else "has"
    what = {
        Measure.IN_USE: f" {verb} {size} in use",
        Measure.POOL: f" {verb} {size} in the pool",
        Measure.PROCESS: f" hold{'' if many else 's'} {size}",
    }[one.measure]
    return f"{what} than {_usual(laid, one.rank)}{_when(one, laid)}"


def _when(one: Held, laid: Laid) -> str:
    begin, end = (None if mark is None else _mark(mark, laid) for mark in (one.begin, one.end))
    if begin is None:
        return ", all the time" if end is None else f" until {end}"
    return f" from {begin} on" if end is None else f" from {begin} to {end}"


def _mark(mark: float, laid: Laid) -> str:
    if laid.along is Along.SECONDS:
        return f"~{spoken(mark)} after memory was first held"
    return f"{laid.unit.rstrip('s')} ~{format_count(round(mark))}"


@_says.register
def _(one: Peak, laid: Laid, many: bool) -> str:
    usual = _usual(laid, one.rank) if len(laid.ranks) > 2 else f"that of {_usual(laid, one.rank)}"
    size = f"{format_bytes(one.size)} {'below' if one.less else 'above'} {usual}"
    return f" {'have' if many else 'has'} a peak ({one.measure.words}) {size}"


@_says.register
def _(one: Pace, laid: Laid, many: bool) -> str:
    unit = laid.unit if laid.along is Along.STEPS else "steps"
    how = f"{abs(one.share):.0%} {'slower' if one.share > 0 else 'faster'}"
    rates = f"{format_rate(one.rate)} {unit} a second where {_usual(laid, one.rank)} is {format_rate(one.usual)}"
    return f" {'are' if many else 'is'} {how}: {rates}"


@_says.register
def _(one: Ended, laid: Laid, many: bool) -> str:
    if one.ending is None and one.steps is None and one.after_s < 1:
        return ": the recording stops at its start"
    how = f" {ending(one.ending)}" if one.ending else ": the recording stops"
    if one.steps is None:
        return f"{how} after {spoken(one.after_s)}"
    of = f" of {format_count(one.usual)}" if one.usual and one.usual > one.steps else ""
    return f"{how} after {format_count(one.steps)}{of} steps"


@_says.register
def _(one: RanOut, laid: Laid, many: bool) -> str:
    return f" ran out of memory ({counted(one.count, 'error')})"


@_says.register
def _(one: OtherTensorFlow, laid: Laid, many: bool) -> str:
    return f" {'have' if many else 'has'} TensorFlow {safe(one.version)}, {_others(laid, one.only)} {safe(one.usual)}"


@_says.register
def _(one: OtherSettings, laid: Laid, many: bool) -> str:
    usual = f"{_others(laid, one.only)} {_settings(one.usual)}"
    return f" {'have' if many else 'has'} other settings: {_settings(one.settings)}; {usual}"


def _settings(found: EffectiveSettings) -> str:
    return ", ".join(settings.in_effect(found)) or settings.SCRIPTS_OWN


@_says.register
def _(one: NotRead, laid: Laid, many: bool) -> str:
    return ": TensorFlow's memory was not read there" if one.seen else ": no TensorFlow was seen there"


@_says.register
def _(one: NoSteps, laid: Laid, many: bool) -> str:
    return f" {'do' if many else 'does'} not count the steps of the others, so only peaks can be compared"


@_says.register
def _(one: Later, laid: Laid, many: bool) -> str:
    when = f"{spoken(abs(one.seconds))} {'later' if one.seconds > 0 else 'earlier'}"
    return f" started {when} than {_usual(laid, one.rank)}, or the clocks of the hosts are apart"


def table(ranks: Sequence[Rank]) -> list[str]:
    """Return a line for each rank, and below them how they differ."""
    laid = lay(ranks)
    rows = [HEADINGS, *(tuple(map(safe, cells(rank))) for rank in ranks)]
    lines = aligned(rows, range(len(HEADINGS)))
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
    return {"kind": key_of(type(one)), "rank": one.rank, "number": laid.ranks[one.rank].number} | told


def _value(value: object) -> object:
    if isinstance(value, EffectiveSettings):
        return in_effect(value)
    return value.name.lower() if isinstance(value, Enum) else value
