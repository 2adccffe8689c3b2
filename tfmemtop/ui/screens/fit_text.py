"""The screen's text about a search, for a limit or for the largest value. Pure."""

import shlex
from collections.abc import Sequence

import msgspec

from tfmemtop.experiments.fit.session import SessionFit
from tfmemtop.experiments.session.next_run import NextRun
from tfmemtop.findings.proposed_limit import code, command_line
from tfmemtop.units import format_bytes

TITLE = "Find the smallest memory limit that works, or the largest batch"
OVER = "The search is over. [F] shows what it found."

_WORTH_COUNTING = 10  # steps


def what_is_done(of: str, growth: str | None, running: str) -> list[str]:
    """Return what a search does, for the user to read before it begins.

    *of* is what is limited; *running* describes the run that has to end first, empty if there is none.
    """
    with_growth = f" and growth {growth}" if growth else ""
    what = (
        f"The script is started again and again, each time with another limit for {of}{with_growth}; the first time "
        "without one. Each try is ended as soon as it has got far enough or has failed. The last one is ended too: "
        "then nothing runs until you relaunch."
    )
    largest = (
        "To find the largest batch under the next run's limit, put {batch} in its place in the command with [E], and "
        "type a range here, such as batch=1..4096, 5 steps."
    )
    goal = "How far it has to get, counted from TensorFlow's first allocation, and in how many tries:"
    return [what, largest, *([f"{running} is ended first."] if running else []), goal]


def suggestions(
    seconds: float, tries: int, steps_per_s: float | None, places: Sequence[str] = ()
) -> list[tuple[str, str]]:
    """Return goals to choose from: the text to type, and what it means.

    *seconds* and *tries* are the usual ones. *steps_per_s* is the script's pace, ``None`` if it is not known. *places*
    are the names in braces in the command.
    """
    found = [(f"{name}=1..4096, 5 steps", f"the largest {name} that passes") for name in places]
    found += [
        (f"{seconds:g} s, {tries} tries", "what is usual"),
        (f"2 min, {tries} tries", "if memory still grows after half a minute"),
    ]
    count = round((steps_per_s or 0) * seconds, -1)
    if count >= _WORTH_COUNTING:
        found.append((f"{count:.0f} steps, {tries} tries", f"about what this script makes in {seconds:g} s"))
    else:
        found.append((f"200 steps, {tries} tries", "of its busiest tf.function, or of Keras"))
    return found


class FoundValue(msgspec.Struct, frozen=True, dict=True):
    """What a search has found: in ``words``, as the next run, and how to have it the next time.

    ``code`` are the lines that set it in the script; none for a value in the command.
    """

    words: str
    upcoming: NextRun
    margin: str
    command: str
    code: Sequence[str] = ()


def found_by(search: SessionFit) -> FoundValue | None:
    """Return what the search has found; ``None`` if nothing, or not yet."""
    plan, found = search.plan, search.search.found
    if plan.wanted is not None and found is not None:
        argv = plan.argv(found)
        upcoming = NextRun(tuple(argv), plan.settings_of(plan.largest))
        return FoundValue(f"{plan.wanted.name}={found}", upcoming, "", shlex.join(argv))
    limit = plan.suggested(search.search)
    if limit is None:
        return None
    size, upcoming = format_bytes(limit.size), NextRun(tuple(plan.command), plan.settings_of(limit.size))
    return FoundValue(size, upcoming, f"With a margin: {size}. ", command_line(limit, plan.command), code(limit))
