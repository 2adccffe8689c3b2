"""What a signal to one of our processes may do to the training by design, all in one place."""

import random
import signal
from typing import Literal, NamedTuple

Way = Literal["live", "attached", "record", "fit", "outside"]
"""``outside``: ``tfmemtop attach PID`` reads a training that was started without tfmemtop."""
Moment = Literal["start", "silent", "printing", "exit", "relaunch", "reading"]
Blow = Literal["TERM", "HUP", "INT", "QUIT", "KILL", "STOP", "USR1", "PIPE", "SEGV", "PKILL"]
"""``STOP`` is followed by SIGCONT a little later. ``PKILL`` is ``pkill -9 -f tfmemtop``."""

Expected = Literal["goes on", "passed on", "may end"]

BLOWS: tuple[Blow, ...] = ("TERM", "HUP", "INT", "QUIT", "KILL", "STOP", "USR1", "PIPE", "SEGV")

ROLES: dict[Way, tuple[str, ...]] = {
    "live": ("command", "engine", "keeper", "other"),
    "attached": ("second", "command", "engine", "keeper"),
    "record": ("command", "recorder", "group-listener", "builder"),
    "fit": ("command",),
    "outside": ("command", "engine"),
}
MOMENTS: dict[Way, tuple[Moment, ...]] = {
    "live": ("start", "silent", "printing", "exit", "relaunch"),
    "attached": ("printing", "exit", "relaunch"),
    "record": ("start", "silent", "printing", "exit"),
    "fit": ("start", "printing"),
    "outside": ("start", "reading"),
}


class Plan(NamedTuple):
    """One kill."""

    way: Way
    role: str
    blow: Blow
    moment: Moment
    tensorflow: bool
    after: float
    """When to strike: a share, from 0 to 1, of the length of the moment."""

    def __str__(self) -> str:
        with_it = " with TensorFlow" if self.tensorflow else ""
        return f"{self.way}{with_it}: {self.blow} to {self.role} at {self.moment}+{self.after:.2f}"


def plans(seed: int, count: int) -> list[Plan]:
    """Return *count* kills that go through the whole matrix in a random order, with one ``PKILL`` in ten."""
    chance = random.Random(seed)
    cells = [
        (way, role, blow, moment) for way in ROLES for role in ROLES[way] for blow in BLOWS for moment in MOMENTS[way]
    ]
    order = chance.sample(cells, len(cells))
    found = []
    for number in range(count):
        way, role, blow, moment = order[number % len(order)]
        if number % 10 == 9:
            role, blow = "all", "PKILL"
        with_it = role == "builder" or way == "outside" or number % 20 == 7
        found.append(Plan(way, role, blow, moment, with_it and way != "fit", chance.random()))
    return found


def expected(plan: Plan, struck: str) -> Expected:
    """Return what the training has to do by design after a blow to the role *struck*.

    *struck* is the role that was really hit; it may differ from the plan's.
    """
    if plan.way == "outside":
        return "goes on"
    if plan.way == "fit":
        return "may end"  # each of fit's runs is a try, which fit itself ends
    if plan.moment in ("start", "relaunch"):
        # The user does not yet know that the training runs, or has just asked to end it.
        return "may end"
    if struck == "keeper" and plan.blow == "KILL":
        return "may end"  # the keeper leads the session: the kernel sends SIGHUP, as when a terminal is closed
    if struck == "engine" and plan.blow == "TERM":
        return "may end"  # SIGTERM is the way to end a session
    if (
        plan.way == "record"
        and struck in ("command", "recorder")
        and plan.blow in ("TERM", "HUP", "INT", "QUIT", "USR1")
    ):
        # A signal to `record` is a signal to the command that it runs. At the command's exit either may come first.
        return "may end" if plan.moment == "exit" else "passed on"
    return "goes on"


def number_of(blow: Blow) -> signal.Signals:
    """Return the signal of *blow*."""
    return signal.SIGKILL if blow == "PKILL" else signal.Signals[f"SIG{blow}"]
