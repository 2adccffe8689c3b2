"""The result of a check, and :func:`run_all`, which runs many at once. A check that hangs does not stop the others."""

import threading
import time
from collections.abc import Callable
from enum import Enum
from typing import NamedTuple


class State(str, Enum):
    """The state of a thing that a run needs."""

    OK = "ok"
    MISSING = "missing"
    UNKNOWN = "unknown"


class Check(NamedTuple):
    """One thing that a run needs: its state, what was found, and what helps if something is missing."""

    name: str
    state: State
    text: str
    remedy: str = ""


def ok(name: str, text: str) -> Check:
    """Return a check that found what a run needs."""
    return Check(name, State.OK, text)


def missing(name: str, text: str, remedy: str = "") -> Check:
    """Return a check that found something missing."""
    return Check(name, State.MISSING, text, remedy)


def unknown(name: str, text: str, remedy: str = "") -> Check:
    """Return a check that could not find out."""
    return Check(name, State.UNKNOWN, text, remedy)


def run_all(groups: dict[tuple[str, ...], Callable[[], list[Check]]], timeout_s: float) -> list[Check]:
    """Run all groups of checks at once, and return their results in the order of *groups*.

    Each key of *groups* has the names of the checks that its function returns. A check that raises an exception, or has
    no result within *timeout_s* seconds, is unknown.
    """
    found: dict[tuple[str, ...], list[Check]] = {}

    def run(names: tuple[str, ...], checks: Callable[[], list[Check]]) -> None:
        try:
            found[names] = checks()
        except Exception as error:
            why = f"the check has failed: {type(error).__name__}: {error}"
            found[names] = [unknown(name, why) for name in names]

    # Not a thread pool: at its end it waits for its threads, and a call to a driver may never return.
    threads = [threading.Thread(target=run, args=each, daemon=True) for each in groups.items()]
    for thread in threads:
        thread.start()
    give_up = time.monotonic() + timeout_s
    for thread in threads:
        thread.join(max(0.0, give_up - time.monotonic()))
    late = f"no answer within {timeout_s:.0f} s"
    return [check for names in groups for check in found.get(names) or [unknown(name, late) for name in names]]
