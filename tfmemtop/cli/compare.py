"""Compare two runs, or the ranks of a job, and show how they differ.

usage: tfmemtop compare [A [B]] [--json]
usage: tfmemtop compare RANK RANK RANK… [--json]
example: tfmemtop compare before.jsonl after.jsonl

A and B are recordings, or names of sessions, see tfmemtop ls. A:2 means run 2 of A. Without B, the last two runs
of A are compared. Without A, it is the last two runs of the last session; if that has one run, the last two sessions.
Three or more recordings, or two ranks of one job, are compared as ranks: the report shows which rank differs, and how.
A Jupyter kernel's run is compared with the one before its restart, which is a session of its own.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from msgspec.structs import fields

from tfmemtop.cli import Refusal
from tfmemtop.cli.arguments import JSON
from tfmemtop.cli.output import print_json, print_lines, say
from tfmemtop.cli.parser import BaseArguments, argument
from tfmemtop.cli.sessions import fold_recording, is_running, path_and_run, recorded_run, recordings
from tfmemtop.engine.stream.kept_sessions import kept_recordings
from tfmemtop.findings.judgement import findings, judged
from tfmemtop.reports.comparison_text import Difference, changed, differences, how_it_ended, name, rows, sentences
from tfmemtop.reports.ranks import table as ranks_table
from tfmemtop.reports.ranks import to_json as ranks_to_json
from tfmemtop.reports.settings import in_effect
from tfmemtop.safe import safe
from tfmemtop.state import State
from tfmemtop.state.comparable import common
from tfmemtop.state.figures import RunFigures, figures
from tfmemtop.state.holder_views import standing_at_peak
from tfmemtop.state.holders import Standing
from tfmemtop.state.model import RunState
from tfmemtop.state.ranks import Rank, of_one_job, ranked

Holders = tuple[Standing, Standing]
_SAID_OTHERWISE = ("argv", "ending", "running", "left", "past")
_COMPARED = {"span_s": "duration_s"} | {
    key: key for key in ("peak_in_use", "peak_pool", "peak_process_total", "steps_per_s")
}
"""The figures of the compared parts: what they are called in the JSON, and in :class:`RunFigures`."""


def table(first: RunFigures, second: RunFigures, holders: Holders | None = None) -> list[str]:
    """Return how the two runs differ, also in their *holders* where both are known, and a table, as lines of text."""
    found, names = rows(first, second), (name(first), name(second))
    width = max(len(row.label) for row in found if row.first) + 2  # a heading above other rows has its line to itself
    left = max(len(names[0]), *(len(row.first) for row in found)) + 2
    right = max(len(names[1]), *(len(row.second) for row in found)) + 2
    said = [*sentences(first, second), *(map(safe, changed(*holders)) if holders else ())]
    lines = [*said, "", f"{'':{width}}{names[0]:{left}}{names[1]}"]
    return lines + [
        f"{row.label:{width}}{row.first:{left}}{row.second:{right}}{row.difference}".rstrip() for row in found
    ]


def to_json(first: RunFigures, second: RunFigures, holders: Holders | None = None) -> dict[str, Any]:
    """Return the two runs as keys and values: their figures, the parts that are compared, and the differences.

    ``sentences`` contains the differences as text. ``holders`` are the differences at the peaks of a step by purpose,
    operation, shape and type, the largest first; ``null`` if the holders of one run are not known.
    """
    both = common(first, second)
    parts = both.first, both.second
    return {
        "runs": [_run(first), _run(second)],
        "compared": {
            "basis": both.basis.name.lower(),
            "steps": both.steps,
            "parts": [{key: getattr(part, name) for key, name in _COMPARED.items()} for part in parts],
        },
        "differences": {key: _difference(*(getattr(part, name) for part in parts)) for key, name in _COMPARED.items()},
        "sentences": [*sentences(first, second), *(changed(*holders) if holders else ())],
        "holders": [_in_use(one) for one in differences(*holders)] if holders else None,
    }


def _in_use(one: Difference) -> dict[str, Any]:
    kind, *rest = one.alike
    told = {"kind": kind.value} | dict(zip(("operation", "shape", "dtype"), rest, strict=True))
    return told | {"first": one.first, "second": one.second, "difference": one.bytes}


def _run(run: RunFigures) -> dict[str, Any]:
    told = {field.name: getattr(run, field.name) for field in fields(run) if field.name not in _SAID_OTHERWISE}
    told |= {"name": name(run), "command": " ".join(run.argv), "settings": in_effect(run.settings)}
    return told | {"end": how_it_ended(run), "good": run.good, "whole": run.whole}


def _difference(a: float | None, b: float | None) -> float | None:
    return None if a is None or b is None else round(b - a, 3)


class CompareArguments(BaseArguments):
    """``first``, ``second`` and ``more`` are recordings, as ``FILE`` or ``FILE:N``."""

    first: str | None = argument("A", "a recording or a session; A:2 means its run 2")
    second: str | None = argument("B", "a recording or a session; without it, the last two runs of A are compared")
    more: Sequence[str] = argument("RANK", "further ranks of a job", nargs="*", default=())
    json: bool = JSON


ARGUMENTS = CompareArguments


def run(arguments: CompareArguments) -> int:
    """Print the comparison, as a table or as JSON; return 0.

    Raises:
        Refusal: a file cannot be read, there is no second run to compare with, or there are too few ranks.
    """
    one, other = arguments.first, arguments.second
    if ranks := _ranks([each for each in (one, other, *(arguments.more or ())) if each is not None]):
        if arguments.json:
            print_json(ranks_to_json(ranks))
        else:
            print_lines(ranks_table(ranks))
        return 0
    if other is None and not (one and path_and_run(one)[1]):
        first, second = _last_two(one)
    else:
        first, second = _run_of(one), _run_of(other or one)
    holders = (first.holders, second.holders) if first.holders and second.holders else None
    if arguments.json:
        print_json(to_json(first.figures, second.figures, holders) | {"verdicts": [first.verdict, second.verdict]})
    else:
        verdicts = [f"{name(one.figures)}: {one.verdict}" for one in (first, second)]
        print_lines([*table(first.figures, second.figures, holders), "", *verdicts])
    return 0


def _ranks(names: Sequence[str]) -> list[Rank]:
    """Return the ranks that *names* mean; empty if they mean only two runs, or fewer.

    Raises:
        Refusal: three or more names are given, and fewer than two of them can be read; or one of two cannot be read.
    """
    if len(names) < 2:
        return []
    ranks = [rank for name in names if (rank := _rank(name, needed=len(names) == 2))]
    if len(names) == 2:
        return ranks if of_one_job(*ranks) else []
    if len(ranks) < 2:
        raise Refusal("fewer than two of the recordings can be compared")
    return _newest(ranks)


def _rank(name: str, *, needed: bool) -> Rank | None:
    """Return the rank that *name* means. If it cannot be read and is not *needed*, print why and return ``None``.

    Raises:
        Refusal: the rank is *needed* and cannot be read.
    """
    try:
        path, _, state, run = recorded_run(name)
    except Refusal as refusal:
        if needed:
            raise
        say(f"{refusal}; it is left out")
        return None
    return ranked(Path(name).name, state, _figures(run, state, path, Path(name).name))


def _newest(ranks: list[Rank]) -> list[Rank]:
    """Return *ranks* sorted by number. If a job was started again, only the newest start of each rank is kept."""
    newest: dict[tuple[object, ...], Rank] = {}
    for place, rank in enumerate(ranks):
        job = rank.placement.job if rank.placement else None
        key = (place,) if rank.number is None else (job, rank.number)
        before = newest.get(key)
        if before is not None:
            older, rank = sorted((before, rank), key=lambda each: each.started)
            say(f"{older.name} is left out: {rank.name} is a newer start of the same rank")
        newest[key] = rank
    return sorted(newest.values(), key=lambda rank: (rank.number is None, rank.number or 0))


class _Run(NamedTuple):
    """A run, its verdict, and the holders of its memory at the peak of a step by layer, ``None`` without a window."""

    figures: RunFigures
    verdict: str
    holders: Standing | None


def _last_two(name: str | None) -> tuple[_Run, _Run]:
    path = path_and_run(name)[0]
    state = fold_recording(path)
    if len(state.runs) > 1:
        before, last = state.runs[-2:]
        # The state drops the processes of a run as soon as the next one begins, so the earlier run is folded again.
        earlier = fold_recording(path, before.run)
        return _judged(_figures(before, state, path), earlier), _judged(_figures(last, state, path), state)
    run = state.run
    started_before = [kept[each] for each in run.earlier if each in kept] if run and (kept := kept_recordings()) else []
    if started_before:
        return _run_of(str(started_before[-1])), _run_of(path)
    other = next((other.path for _, other in recordings()[1:]), None) if name is None else None
    if other is None:
        raise Refusal(f"{path} holds {len(state.runs) or 'no'} run: name a second file to compare with")
    return _run_of(str(other)), _run_of(path)


def _run_of(name: str | None) -> _Run:
    path, number, state, run = recorded_run(name)
    called = Path(path).name + ("" if number is None else f" run {number}")
    return _judged(_figures(run, state, path, called), state)


def _figures(run: RunState, state: State, path: str, name: str = "") -> RunFigures:
    going = state.session is not None and is_running(Path(path), state.session.id)
    return figures(run, state.now, name, alive=going)


def _judged(run: RunFigures, state: State) -> _Run:
    """Return *run*, at whose end *state* is, with what is said of it."""
    cause, _ = judged(state, findings(state), going=run.running)
    return _Run(run, cause.advised, standing_at_peak(state))
