"""What a check finds, and many of them at once, none of which can hold up the others."""

import threading
import time
from collections.abc import Callable
from typing import Literal, NamedTuple

State = Literal["ok", "missing", "unknown"]


class Check(NamedTuple):
    """One thing that a run needs: how it stands, and what helps where it is missing."""

    name: str
    state: State
    text: str
    remedy: str = ""


def run_all(groups: dict[tuple[str, ...], Callable[[], list[Check]]], timeout_s: float) -> list[Check]:
    """What the checks find, in the order of their names; those that take longer, or fail, are unknown."""
    found: dict[tuple[str, ...], list[Check]] = {}

    def run(names: tuple[str, ...], checks: Callable[[], list[Check]]) -> None:
        try:
            found[names] = checks()
        except Exception as error:
            why = f"the check has failed: {type(error).__name__}: {error}"
            found[names] = [Check(name, "unknown", why) for name in names]

    # Not a pool: its threads are waited for at the end, and a driver may hang for ever.
    threads = [threading.Thread(target=run, args=each, daemon=True) for each in groups.items()]
    for thread in threads:
        thread.start()
    give_up = time.monotonic() + timeout_s
    for thread in threads:
        thread.join(max(0.0, give_up - time.monotonic()))
    late = f"no answer within {timeout_s:.0f} s"
    return [check for names in groups for check in found.get(names) or [Check(n, "unknown", late) for n in names]]
