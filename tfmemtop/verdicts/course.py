"""A whole run looked back on: what was found when, how busy the GPUs were, the last account of its memory."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from tfmemtop import events
from tfmemtop.state import State, apply
from tfmemtop.state.account import Account, accounts
from tfmemtop.state.lookup import of_run
from tfmemtop.verdicts import findings
from tfmemtop.verdicts.finding import Finding
from tfmemtop.verdicts.look import uses

LOOK_S = 1.0
"""The engine reads the cards once a second: looking more often finds little more."""

LOOKS = 2000
"""Beyond so many, looks are twice as far apart, and so on: a week is looked through in seconds."""

FOUND = 1000
"""Findings that are remembered; so many different ones no reader wants."""


@dataclass(slots=True)
class Told:
    """A finding in its newest words, and from when to when it held, in seconds since the run began."""

    finding: Finding
    first: float
    last: float


@dataclass(slots=True)
class Card:
    """One GPU while the run had TensorFlow on it: the most used of it in bytes, and percent busy over readings."""

    most_used: int = 0
    percent: int = 0
    readings: int = 0

    @property
    def busy(self) -> float | None:
        return self.percent / self.readings if self.readings else None


@dataclass(slots=True)
class Course:
    """``state`` is as the run's last event left it; ``account`` the last of the process that held most."""

    state: State = field(default_factory=State)
    told: list[Told] = field(default_factory=list)
    cards: dict[int, Card] = field(default_factory=dict)  # by NVML index
    account: Account | None = None
    end: float = 0.0  # seconds since the run began, of the last look while it went


def follow(stream: Iterable[events.AnyEvent], run: int | None = None) -> Course:
    """Look through *stream* up to the end of run number *run*, else of the last one in it."""
    course = Course()
    state, pace, looks, next_look = course.state, LOOK_S, 0, 0.0
    by_key: dict[tuple[str, int], Told] = {}
    for event in stream:
        if isinstance(event, events.Run):
            if run is not None and event.run > run:
                break
            by_key.clear()
            course.cards.clear()
            course.account, course.end = None, 0.0
        elif isinstance(event, events.RunEnd):
            _look(course, by_key)  # the last picture while its processes are there
        apply(state, event)
        if isinstance(event, events.DeviceReading):
            _read(course, event)
        if isinstance(event, events.MemoryMap) and event.moment == "out_of_memory":
            _look(course, by_key)  # what is found for the moment may be over before the next look
        if state.now >= next_look:
            looks += 1
            if looks % LOOKS == 0:
                pace *= 2
            next_look = state.now + pace
            _look(course, by_key)
    _look(course, by_key)
    course.told = sorted(by_key.values(), key=lambda told: told.first)
    return course


def _look(course: Course, by_key: dict[tuple[str, int], Told]) -> None:
    state = course.state
    run = state.run
    if run is None:
        return
    now = (state.now if run.ended is None else min(state.now, run.ended)) - run.started
    if run.going:
        course.end = now
        _balance(course)
    seen: dict[str, int] = {}
    for finding in findings(state):
        number = seen[finding.key] = seen.get(finding.key, -1) + 1
        known = by_key.get((finding.key, number))
        if known is None and len(by_key) >= FOUND:
            continue
        if known is None:
            by_key[finding.key, number] = Told(finding, now, now)
        else:
            known.finding, known.last = finding, now


def _balance(course: Course) -> None:
    state = course.state
    found = [a for pid in state.processes if of_run(state, pid) for a in accounts(state, pid) if a.pools]
    best = max(found, key=lambda account: account.total or 0, default=None)
    if best is not None and (best.total is not None or course.account is None):
        course.account = best


def _read(course: Course, reading: events.DeviceReading) -> None:
    run = course.state.run
    known = reading.index in course.state.devices  # a recording may have lost its beginning
    if run is None or not run.going or not known or not any(name.startswith("GPU") for name in run.effective):
        return
    used = {use.card.info.index for use in uses(course.state) if use.card}
    if used and reading.index not in used:  # else it is not known which cards they are
        return
    card = course.cards.setdefault(reading.index, Card())
    card.most_used = max(card.most_used, reading.used or 0)
    if reading.utilisation is not None:
        card.percent += reading.utilisation
        card.readings += 1
