"""What the screen says of a search, whatever it is for. Pure."""

import shlex

from tfmemtop.fit.session import SessionFit, SessionTries
from tfmemtop.fit.session_largest import SessionLargest
from tfmemtop.units import format_bytes
from tfmemtop.words import fit, fit_largest, searching


def title(search: SessionTries) -> str:
    """Over the search."""
    return searching.RESULT_LARGEST if isinstance(search, SessionLargest) else searching.RESULT


def try_words(search: SessionTries) -> str:
    """How the try under way is called."""
    if isinstance(search, SessionLargest):
        return fit_largest.value_words(search.search.wanted.name, search.value)
    return fit.limit_words(search.limit) if isinstance(search, SessionFit) else ""


def table(search: SessionTries, *, pools: bool) -> list[tuple[str, bool]]:
    """A heading, and all tries, each with whether it passed. *pools*: with how large the pool became."""
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
    """What was found, or why nothing was."""
    if isinstance(search, SessionLargest):
        return fit_largest.conclusion(search.search, search.stopped, search.hint)
    return fit.conclusion(search.search, search.stopped, search.hint) if isinstance(search, SessionFit) else []


def found_words(search: SessionLargest) -> str:
    """The value that was found: ``batch=1024``."""
    return fit_largest.value_words(search.search.wanted.name, search.search.works or 0)


def next_time(search: SessionLargest) -> str:
    """The command line with the value that was found."""
    return shlex.join(search.command)


STOP = "stop, leave the run going"
HIDE = "hide this, go on"
GO_ON = "go on with the search"
NEXT_TIME = " relaunches with it. Next time:"
"""After the key."""


def begin(running: str) -> str:
    """What Enter does; *running* is the run that it ends, empty if none."""
    return f"end {running[:1].lower()}{running[1:]} and begin" if running else "begin"


def goal(search: SessionTries) -> str:
    """How far the script is to get, and in how many tries."""
    tries = "1 try" if search.plan.tries == 1 else f"{search.plan.tries} tries"
    return f"{fit.goal_text(search.plan.goal)}, in at most {tries}"


def under_way(search: SessionTries) -> str:
    """Which try runs, and of what."""
    return f"try {search.number} of {search.plan.tries}: {try_words(search)}"


def relaunch_with(what: str) -> str:
    """What R does; *what* is a limit, or a value that was found."""
    return f"relaunch with {what}"


def with_margin(limit: int) -> str:
    """The limit to set, in bytes."""
    return f"With a margin: {format_bytes(limit)}. "
