"""Two runs side by side, as text and as JSON. Pure."""

from dataclasses import fields
from typing import Any

from tfmemtop.findings.who_holds import changed
from tfmemtop.reports.comparison_text import command, how_it_ended, name, rows, sentences
from tfmemtop.reports.settings import in_effect
from tfmemtop.safe import safe
from tfmemtop.state.comparable import common
from tfmemtop.state.figures import RunFigures
from tfmemtop.state.holder_views import Change, Listed, changes

Holders = tuple[Listed, Listed]
_SAID_OTHERWISE = ("argv", "ending", "running", "left", "past")
_COMPARED = ("span_s", "peak_in_use", "peak_pool", "peak_process_total", "steps_per_s")


def table(first: RunFigures, second: RunFigures, holders: Holders | None = None) -> list[str]:
    """Return the two runs as lines of text, with the difference between their *holders*, where both are known."""
    found, names = rows(first, second), (name(first), name(second))
    width = max(len(row.label) for row in found if row.first) + 2  # a heading above other rows has its line to itself
    left = max(len(names[0]), *(len(row.first) for row in found)) + 2
    right = max(len(names[1]), *(len(row.second) for row in found)) + 2
    lines = [f"{'':{width}}{names[0]:{left}}{names[1]}"]
    lines += [f"{row.label:{width}}{row.first:{left}}{row.second:{right}}{row.difference}".rstrip() for row in found]
    return [*lines, "", *sentences(first, second), *(map(safe, changed(*holders)) if holders else ())]


def to_json(first: RunFigures, second: RunFigures, holders: Holders | None = None) -> dict[str, Any]:
    """Return the two runs as keys and values: their figures, the parts that are compared, and the differences.

    ``sentences`` contains the differences as text. ``holders`` are the differences by layer at the peaks of a step, the
    largest first; ``null`` if the holders of one run are not known.
    """
    both = common(first, second)
    parts = both.first, both.second
    return {
        "runs": [_run(first), _run(second)],
        "compared": {
            "basis": both.basis.name.lower(),
            "steps": both.steps,
            "parts": [{key: getattr(part, key) for key in _COMPARED} for part in parts],
        },
        "differences": {key: _difference(*(getattr(part, key) for part in parts)) for key in _COMPARED},
        "sentences": [*sentences(first, second), *(changed(*holders) if holders else ())],
        "holders": [_change(change) for change in changes(*holders)] if holders else None,
    }


def _change(change: Change) -> dict[str, Any]:
    return {
        "name": change.name,
        "kind": change.kind.value,
        "first": change.before,
        "second": change.after,
        "difference": change.change,
    }


def _run(run: RunFigures) -> dict[str, Any]:
    told = {field.name: getattr(run, field.name) for field in fields(run) if field.name not in _SAID_OTHERWISE}
    told |= {"name": name(run), "command": command(run), "settings": in_effect(run.settings)}
    return told | {"end": how_it_ended(run), "good": run.good, "whole": run.whole}


def _difference(a: float | None, b: float | None) -> float | None:
    return None if a is None or b is None else round(b - a, 3)
