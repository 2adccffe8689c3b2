"""The report on the ranks of a job side by side, as text and as JSON. Pure."""

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from tfmemtop.reports.comparison_text import how_it_ended
from tfmemtop.reports.rank_differences import Differs, differences, rank_name
from tfmemtop.reports.settings import in_effect
from tfmemtop.safe import safe
from tfmemtop.state.ranks import Along, Laid, Rank, lay
from tfmemtop.units import UNKNOWN, aligned, counted, format_bytes, format_count, format_duration, format_rate, sentence

HEADINGS = ("RANK", "HOST", "DURATION", "STEPS", "STEPS/S", "IN USE", "POOL", "PROCESS", "END")
_MOST = 16
"""The most sentences that are shown; --json has all."""
_NUMBERS = 6


def missing(ranks: Sequence[Rank]) -> list[int]:
    """Return the numbers of the job's ranks that are not among *ranks*; empty if the size of the job is not known."""
    wanted = {rank.placement.ranks for rank in ranks if rank.placement and rank.placement.ranks}
    there = {rank.number for rank in ranks}
    return [number for number in range(max(wanted)) if number not in there] if len(wanted) == 1 else []


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
    lines = [sentence(f"{_names(laid, ranks)}{one.said(len(ranks) > 1)}.") for one, ranks in groups]
    if len(lines) > _MOST:
        lines[_MOST:] = [f"{counted(len(lines) - _MOST, 'further difference')} not listed; --json has all."]
    if not lines and all(rank.figures.peak_in_use is None for rank in laid.ranks):
        lines.append("TensorFlow's memory was not read in any of them.")
    elif not lines:
        lines.append("No rank differs from the others in a noteworthy way.")
    if missing:
        lines.append(f"Not among these recordings: {_numbers(missing)}.")
    return lines


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
    return {"kind": one.kind, "rank": one.rank, "number": laid.ranks[one.rank].number} | one.figures
