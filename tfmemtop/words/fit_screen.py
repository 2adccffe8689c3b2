"""The screen's text about a search, for a limit or for the largest value. Pure."""

import shlex

from tfmemtop.fit.session import SessionFit, SessionTries
from tfmemtop.fit.session_largest import SessionLargest
from tfmemtop.units import format_bytes
from tfmemtop.words import fit, fit_largest, searching


def title(search: SessionTries) -> str:
    """Return the title above the search."""
    return searching.RESULT_LARGEST if isinstance(search, SessionLargest) else searching.RESULT


def try_words(search: SessionTries) -> str:
    """Return the name of the current try: its limit, or its value."""
    if isinstance(search, SessionLargest):
        return fit_largest.value_words(search.search.wanted.name, search.value)
    return fit.limit_words(search.limit) if isinstance(search, SessionFit) else ""


def table(search: SessionTries, *, pools: bool) -> list[tuple[str, bool]]:
    """Return the lines of the table, a heading and all tries, each with whether the try passed.

    With *pools*, the lines show how large the pool became.
    """
    if not search.done:
        return []
    if isinstance(search, SessionLargest):
        tried = search.search.tried
        passed = [one.tried.passed for one in sorted(tried, key=lambda one: one.value)]
        lines = fit_largest.table(search.search.wanted.name, tried)
    elif isinstance(search, SessionFit):
        passed = [one.passed for one in fit.from_the_largest(search.search.tried)]
        lines = fit.table(search.search.tried, pools=pools)
    else:
        return []
    return list(zip(lines, [True, *passed], strict=True))


def conclusion(search: SessionTries) -> list[str]:
    """Return what the search found, or why it found nothing, as lines."""
    if isinstance(search, SessionLargest):
        return fit_largest.conclusion(search.search, search.stopped, search.hint)
    return fit.conclusion(search.search, search.stopped, search.hint) if isinstance(search, SessionFit) else []


def found_words(search: SessionLargest) -> str:
    """Return the value that was found: ``batch=1024``."""
    return fit_largest.value_words(search.search.wanted.name, search.search.works or 0)


def next_time(search: SessionLargest) -> str:
    """Return the command line with the value that was found."""
    return shlex.join(search.command)


STOP = "stop, leave the run going"
HIDE = "hide this, go on"
GO_ON = "go on with the search"
NEXT_TIME = " relaunches with it. Next time:"
"""The text after the key R."""


def begin(running: str) -> str:
    """Return what Enter does; *running* describes the run that it ends, empty if there is none."""
    return f"end {running[:1].lower()}{running[1:]} and begin" if running else "begin"


def goal(search: SessionTries) -> str:
    """Return how far the script must get, and in how many tries."""
    tries = "1 try" if search.plan.tries == 1 else f"{search.plan.tries} tries"
    return f"{fit.goal_text(search.plan.goal)}, in at most {tries}"


def under_way(search: SessionTries) -> str:
    """Return which try runs, and with which limit or value."""
    return f"try {search.number} of {search.plan.tries}: {try_words(search)}"


def relaunch_with(what: str) -> str:
    """Return what the key R does; *what* is a limit, or a value that was found."""
    return f"relaunch with {what}"


def with_margin(limit: int) -> str:
    """Return the text with the limit to set; *limit* is in bytes."""
    return f"With a margin: {format_bytes(limit)}. "
