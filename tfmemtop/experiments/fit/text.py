"""The text about a search: a line for each try, a table of all, and at the end what was found and what to set. Pure."""

from collections.abc import Sequence
from typing import NamedTuple

from tfmemtop.events import HookAbsence
from tfmemtop.experiments.fit.largest import LargestSearch, Wanted
from tfmemtop.experiments.fit.search import LimitSearch, Search, Trial, Tried
from tfmemtop.experiments.fit.watch import Goal
from tfmemtop.findings.proposed_limit import IN_THE_SCRIPT, code, command_line
from tfmemtop.limits import SuggestedLimit
from tfmemtop.units import MIB, UNKNOWN, aligned, counted, format_bytes, sentence

_NOTEWORTHY = 0.02
"""Differences in speed below this share do not count: two runs hardly ever have so similar a speed."""


def trial_words(tried: Trial | Tried, wanted: Wanted | None) -> str:
    """Return what is tried: ``batch=64``, ``limit 4.0 GiB`` or ``no limit``. *wanted* is the number that is sought."""
    if wanted is not None:
        return f"{wanted.name}={tried.value}"
    return "no limit" if tried.limit is None else f"limit {format_bytes(tried.limit)}"


def goal_text(goal: Goal) -> str:
    """Return the goal: ``Goal: 30 s after TensorFlow's first allocation``, ``Goal: 200 steps``."""
    if goal.steps is not None:
        return f"Goal: {counted(goal.steps, 'step')}"
    return f"Goal: {goal.seconds or 0:g} s after TensorFlow's first allocation"


def result(tried: Tried) -> str:
    """Return how a try went, for the line that begins with what was tried."""
    text = f"{tried.how.text} ({tried.duration_s:.0f} s)"
    if tried.peak_in_use is not None:
        text += f"; peak in use {format_bytes(tried.peak_in_use)}, pool {format_bytes(tried.pool)}"
    return text + (f"; {_speed(tried)}" if tried.steps_per_s is not None else "")


def _speed(tried: Tried) -> str:
    """Return the speed of a try: ``12.3 steps/s``; a dash where it is not known."""
    return UNKNOWN if tried.steps_per_s is None else f"{tried.steps_per_s:.3g} steps/s"


class TableLine(NamedTuple):
    """A line of the table of tries. ``passed`` is whether its try passed; true for the heading."""

    text: str
    passed: bool


def table(search: Search, *, pools: bool = True) -> list[TableLine]:
    """Return the lines of the table: a heading and all tries, or nothing without any.

    Limits come from the largest down, values from the smallest up. Under a limit, each try has its speed, compared with
    that of the first. With *pools*, a column shows how large the pool became.
    """
    if isinstance(search, LargestSearch):
        tried = sorted(search.tried, key=lambda one: one.value or 0)
        subject = [search.wanted.name.upper(), *(str(one.value) for one in tried)]
        against = [""] * len(subject)
    else:
        tried = sorted(search.tried, key=lambda one: -(one.limit or 1 << 62))
        subject = ["LIMIT", *("none" if one.limit is None else format_bytes(one.limit) for one in tried)]
        first = next((one for one in tried if one.steps_per_s is not None), None)
        against = ["", *(_against(one, first) for one in tried)]
    columns = [
        subject,
        ["PEAK IN USE", *(format_bytes(one.peak_in_use) for one in tried)],
        ["POOL", *(format_bytes(one.pool) for one in tried)] if pools else [""] * len(subject),
        ["SPEED", *map(_speed, tried)],
        against,
        ["RESULT", *(one.how.text for one in tried)],
    ]
    lines = aligned(list(zip(*columns, strict=True)), {5}) if tried else []
    passed = [True, *(one.passed for one in tried)]
    return [TableLine(*pair) for pair in zip(lines, passed, strict=False)]


def _against(tried: Tried, first: Tried | None) -> str:
    if tried.steps_per_s is None:
        return ""
    if tried is first or first is None or first.steps_per_s is None:
        return ""
    change = tried.steps_per_s / first.steps_per_s - 1
    return "as fast" if abs(change) < _NOTEWORTHY else f"{change:+.0%}"


def conclusion(search: Search, stopped: str, hint: HookAbsence | None) -> list[str]:
    """Return as lines what was found, or why nothing was, and what the replay predicted.

    *stopped* is why the search ended before its end, *hint* is why the hook is absent; both if there is a reason.
    """
    if not search.tried:
        said = ["Nothing was found: no try was completed."]
    elif isinstance(search, LargestSearch):
        said = [*_largest(search), *_growth(search)]
    else:
        assert isinstance(search, LimitSearch)
        said = [*_smallest(search), *_predicted(search)]
    if stopped:
        said.append(f"The search was not completed: {stopped}.")
    if hint:
        said.append(f"The hook could not get into the script: {hint.text}.")
    return said


def _unproved(tried: Tried | None) -> list[str]:
    """Return why the last try proves nothing and what helps; empty if it proves something."""
    if tried is None:
        return []
    return [f"{sentence(tried.how.text)}. Such a try proves nothing.", *filter(None, [tried.how.remedy])]


def _smallest(search: LimitSearch) -> list[str]:
    """Return what was found, or why nothing was; and why the limit differs from the peak, where it does."""
    first, limit, below = search.tried[0], search.found, search.failed_below
    if limit is None:
        return [_no_limit(search), *_unproved(search.unproved)]
    lines = [f"The smallest limit that worked: {format_bytes(limit)}."]
    lines[0] += f" {format_bytes(below)} did not." if below is not None else " Nothing smaller was tried."
    if search.unproved:
        ended = f"The search ended at the try with {trial_words(search.unproved, None)}."
        lines += [ended, *_unproved(search.unproved)]
    elif not search.settled:
        lines[0] += " More tries would narrow it down further."
    peak = first.peak_in_use or 0
    if limit > peak + MIB and below is not None and below >= peak:
        lines.append(
            f"It is {format_bytes(limit - peak)} above the first try's peak in use: a growing pool takes memory region "
            "by region, regions never merge, and a tensor needs one free chunk within a region."
        )
    elif limit < peak:
        lines.append(
            f"It is {format_bytes(peak - limit)} below the first try's peak in use: when there is room to spare, the "
            "allocator hands out larger chunks than were asked for."
        )
    return lines


def _no_limit(search: LimitSearch) -> str:
    first = search.tried[0]
    if search.unproved:
        return f"Nothing was found: the try with {trial_words(search.unproved, None)} proves nothing."
    if not first.passed:
        if first.limit is not None:
            return f"Nothing was found: the largest limit to try, {format_bytes(first.limit)}, was not enough."
        return f"Nothing was found: the script does not pass without a limit either ({first.how.text})."
    if first.peak_in_use is None:
        return "Nothing was found: tfmemtop saw no TensorFlow pool in the script."
    if search.next() is not None:
        return "Nothing was found: the search was ended before any limit had worked."
    tries = counted(len(search.tried), "try", "tries")
    return f"Nothing was found in {tries}: no limit has worked yet; more tries may help."


def _predicted(search: LimitSearch) -> list[str]:
    """Return what the replay of the first try predicted, and what the tries proved; empty if it predicted nothing."""
    first = search.tried[0]
    if first.surely is None or first.at_least is None:
        return []
    tried = [f"{format_bytes(search.found)} passed"] if search.found is not None else []
    tried += [f"{format_bytes(search.failed_below)} failed"] if search.failed_below is not None else []
    return [
        f"The replay of the first try predicted that ~{format_bytes(first.surely)} is enough and "
        f"~{format_bytes(first.at_least)} is needed. Tries: {', '.join(tried) or 'none passed or failed'}."
    ]


def _largest(search: LargestSearch) -> list[str]:
    """Return the largest value that passed, or why there is none."""
    wanted, works, fails, unproved = search.wanted, search.found, search.fails, search.unproved
    under = "" if search.limit is None else f" under a limit of {format_bytes(search.limit)}"
    failed = "" if fails is None else f"{wanted.name}={fails} did not"
    if works is None:
        why = f"{failed} pass{under}" if failed else search.tried[0].how.text
        if unproved:
            why = f"the try with {trial_words(unproved, wanted)} proves nothing"
        return [f"Nothing was found: {why}.", *_unproved(unproved)]
    text = f"The largest {wanted.name} that passed{under}: {works}."
    if unproved:
        ended = f" The search ended at the try with {trial_words(unproved, wanted)}."
        return [text + ended, *_unproved(unproved)]
    if not failed:
        return [text + (" That is the upper end." if works == wanted.highest else "")]
    if not search.settled:
        tries = counted(len(search.tried), "try was", "tries were")
        failed += f". {tries} not enough to narrow it down further"
    return [f"{text} {failed}."]


def _growth(search: LargestSearch) -> list[str]:
    """Return how the peak grows with the value, if that is known."""
    if (growth := search.growth) is None:
        return []
    each, fixed = format_bytes(round(growth.each)), format_bytes(max(0, round(growth.fixed)))
    return [f"Each unit of {search.wanted.name} adds ~{each} to the peak; ~{fixed} do not depend on it."]


def advice(suggested: SuggestedLimit | None, command: Sequence[str]) -> list[str]:
    """Return the setting to use, as an option of tfmemtop and as lines of code; empty if none was found."""
    if suggested is None:
        return []
    return [
        f"With a margin: {format_bytes(suggested.size)}.",
        "",
        f"  {command_line(suggested, command)}",
        "",
        IN_THE_SCRIPT,
        "",
        *(f"  {line}" for line in code(suggested)),
    ]
