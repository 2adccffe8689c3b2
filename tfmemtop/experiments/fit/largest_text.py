"""The text about a search for the largest value of a number in the command. Pure."""

from collections.abc import Sequence

from tfmemtop.events import HookAbsence
from tfmemtop.experiments.fit.largest import LargestSearch, Prediction, TriedValue, Wanted
from tfmemtop.experiments.fit.session import Stopped
from tfmemtop.experiments.fit.text import outcome, speed_words, stopped_words, unproved
from tfmemtop.findings.notice_texts import reason_text
from tfmemtop.units import aligned, counted, format_bytes


def value_words(name: str, value: int) -> str:
    """Return the name of a try: ``batch=64``."""
    return f"{name}={value}"


def table(name: str, tried: Sequence[TriedValue]) -> list[str]:
    """Return the lines of the table: a heading, and all tries from the smallest value up."""
    lines = [(name.upper(), "PEAK IN USE", "POOL", "SPEED", "RESULT")]
    for one in sorted(tried, key=lambda one: one.value):
        peak, pool = format_bytes(one.tried.peak_in_use), format_bytes(one.tried.pool)
        lines.append((str(one.value), peak, pool, speed_words(one.tried), outcome(one.tried.how)))
    return aligned(lines, {4})


def conclusion(search: LargestSearch, stopped: Stopped | None, hint: HookAbsence | None) -> list[str]:
    """Return lines on what was found, how the peak grows with the value, and why the search ended early, if it did."""
    said = [_found(search)] if search.tried else ["Nothing was found: no try was completed."]
    if search.unproved:
        said += unproved(search.unproved.tried.how)
    if (growth := search.told_growth) is not None and search.tried:
        each, fixed = format_bytes(round(growth.each)), format_bytes(max(0, round(growth.fixed)))
        said.append(f"Each unit of {search.wanted.name} adds ~{each} to the peak; ~{fixed} do not depend on it.")
    if (first := search.first_prediction) is not None:
        said.append(_predicted(first, search.wanted))
    if search.trouble:
        said.append(f"A replay with other values failed: {search.trouble}. The search went on without it.")
    if stopped:
        said.append(f"The search was not completed: {stopped_words(stopped)}.")
    if hint:
        said.append(f"The hook could not get into the script: {reason_text(hint)}.")
    return said


def _predicted(prediction: Prediction, wanted: Wanted) -> str:
    """Return what the replay predicted. Nothing is known about values outside the range."""
    surely, likely, at_most, values = prediction
    replayed = " and ".join(value_words(wanted.name, value) for value in values)
    start, end = f"The replay of the tries with {replayed} predicted", f"{wanted.highest}, the end of the range"
    if surely >= wanted.highest:
        return f"{start}: all values pass up to {end}."
    if at_most < wanted.lowest:
        return f"{start}: no value of the range passes."
    said = [f"{surely} passes" if surely >= wanted.lowest else "it is not sure that any value passes"]
    if likely >= wanted.highest:
        said.append(f"all values may pass up to {end}")
    elif likely >= wanted.lowest:
        said.append(f"the largest that is likely to pass is ~{likely}")
    else:
        said.append(f"{wanted.lowest} is likely to fail")
    if at_most < wanted.highest:
        said.append(f"values above ~{at_most} should fail")
    *others, last = said
    return f"{start}: {', '.join(others)}{',' * (len(others) > 1)} and {last}."


def _found(search: LargestSearch) -> str:
    name, works, fails = search.wanted.name, search.works, search.fails
    under = "" if search.limit is None else f" under a limit of {format_bytes(search.limit)}"
    if works is None and search.unproved:
        return f"Nothing was found: the try with {value_words(name, search.unproved.value)} proves nothing."
    if works is None:
        first = search.tried[0]
        smallest = f"{value_words(name, fails)} did not pass{under}" if fails is not None else outcome(first.tried.how)
        return f"Nothing was found: {smallest}."
    text = f"The largest {name} that passed{under}: {works}."
    if search.unproved:
        return f"{text} The search ended at the try with {value_words(name, search.unproved.value)}."
    if fails is None:
        return text + (" That is the upper end." if works == search.wanted.highest else "")
    text += f" {value_words(name, fails)} did not."
    if not search.settled:
        text += f" {counted(len(search.tried), 'try was', 'tries were')} not enough to narrow it down further."
    return text
