"""The review of a whole run: what was found when, how busy the GPUs were, the last account of its memory."""

from collections.abc import Hashable, Iterable, Iterator

import msgspec
from msgspec.structs import replace

from tfmemtop import events
from tfmemtop.events.machine import is_gpu
from tfmemtop.findings.cause import Cause, Key
from tfmemtop.findings.finding import Finding
from tfmemtop.findings.judgement import findings, judged
from tfmemtop.findings.rules.host_growth import HostGrowth
from tfmemtop.findings.rules.leaks import Leak
from tfmemtop.findings.rules.notices import Noticed
from tfmemtop.findings.rules.out_of_memory import AllocationFailed, NoRoom
from tfmemtop.findings.rules.pool import CachedButIdle, TightLimit
from tfmemtop.findings.rules.retracing import Retraced
from tfmemtop.findings.run_devices import hooked_of_run, used_cards
from tfmemtop.state import State, apply
from tfmemtop.state.account import Account, accounts
from tfmemtop.state.lookup import of_run

LOOK_S = 1.0
"""Seconds between two looks. The engine reads the cards once a second, so looking more often finds little more."""

LOOKS = 2000
"""After each so many looks, the time between two is doubled. So the review of a week takes only seconds."""

FOUND = 1000
"""The most findings that are stored: more than a person would read."""

_TO_THE_END_S = 2.0
"""Seconds. What was last found so shortly before the run's end held to its end."""

_Key = tuple[Hashable, int]


class HeldFinding(msgspec.Struct):
    """A finding with its newest figures, and from when to when it held, in seconds since the run began.

    ``place`` is its place then among all findings, the most serious first.
    """

    finding: Finding
    first: float
    last: float
    place: int


class CardUse(msgspec.Struct):
    """One GPU, for the time in which TensorFlow had devices on it.

    ``most_used`` is in bytes. ``percent`` is the sum over ``readings`` of how busy it was.
    """

    most_used: int = 0
    percent: int = 0
    readings: int = 0

    @property
    def busy(self) -> float | None:
        return self.percent / self.readings if self.readings else None


class RunReview(msgspec.Struct):
    """What was found in a run.

    ``state`` is the state after the run's last event; ``account`` is the last one of the process that held most.
    ``end`` is the time of the last look while the run went on, in seconds since the run began. ``alive`` is whether the
    session still goes on, which its events do not show.
    """

    state: State = msgspec.field(default_factory=State)
    held: list[HeldFinding] = msgspec.field(default_factory=list)
    cards: dict[int, CardUse] = msgspec.field(default_factory=dict)  # by NVML index
    account: Account | None = None
    end: float = 0.0
    alive: bool = False

    def ceased(self, last: float) -> bool:
        """Return whether what was found up to second *last* had ceased before the run's end."""
        return last < self.end - _TO_THE_END_S

    @property
    def running(self) -> bool:
        """Whether the run goes on now, and not only at the end of the recording; ``False`` if tfmemtop has left it."""
        run = self.state.run
        return self.alive and run is not None and run.going and not run.left


def review(
    stream: Iterable[events.Event], run: int | None = None, look_s: float = LOOK_S, *, alive: bool = False
) -> RunReview:
    """Review run number *run* of *stream*, by default its last, with a look at the findings every *look_s* seconds.

    *alive* is whether the session still goes on.
    """
    seen = RunReview()
    for seen in reviews(stream, look_s, alive=alive):
        if run is not None and seen.state.run is not None and seen.state.run.run >= run:
            break
    return seen


def reviews(
    stream: Iterable[events.Event], look_s: float = LOOK_S, *, alive: bool = False, state: State | None = None
) -> Iterator[RunReview]:
    """Review each run of *stream*, in the way of :func:`review`; one without a run is reviewed as well.

    It is the same object each time, which the next run changes. The events are folded into *state*, if it is given.
    """
    seen = RunReview(State() if state is None else state, alive=alive)
    state, pace, looks, next_look = seen.state, look_s, 0, 0.0
    by_key: dict[_Key, HeldFinding] = {}
    for event in stream:
        if isinstance(event, events.Run):
            if state.run is not None:
                yield _complete(seen, by_key)
            by_key.clear()
            seen.cards.clear()
            seen.account, seen.end = None, 0.0
        elif isinstance(event, events.RunEnd):
            _look(seen, by_key)  # the last look while the run's processes are still there
        apply(state, event)
        if isinstance(event, events.DeviceReading):
            _read(seen, event)
        if isinstance(event, events.MemoryMap) and event.moment is events.MapMoment.OUT_OF_MEMORY:
            _look(seen, by_key)  # a finding of this moment may be over before the next look
        if state.now >= next_look:
            looks += 1
            if looks % LOOKS == 0:
                pace *= 2
            next_look = state.now + pace
            _look(seen, by_key)
    yield _complete(seen, by_key)


def _complete(seen: RunReview, by_key: dict[_Key, HeldFinding]) -> RunReview:
    _look(seen, by_key)
    seen.held = sorted(by_key.values(), key=lambda held: held.first)
    return seen


def _look(seen: RunReview, by_key: dict[_Key, HeldFinding]) -> None:
    state = seen.state
    run = state.run
    if run is None:
        return
    now = (state.now if run.ended is None else min(state.now, run.ended)) - run.started
    if run.going:
        seen.end = now
        _balance(seen)
    counts: dict[Hashable, int] = {}
    for place, finding in enumerate(findings(state)):
        number = counts[finding.kind] = counts.get(finding.kind, -1) + 1
        known = by_key.get((finding.kind, number))
        if known is not None:
            known.finding, known.last, known.place = finding, now, place
        elif len(by_key) < FOUND:
            known = by_key[finding.kind, number] = HeldFinding(finding, now, now, place)
        if known is not None and isinstance(finding, AllocationFailed):
            known.first = finding.anatomy.t - run.started  # its figures are those of the newest failure


def _balance(seen: RunReview) -> None:
    state = seen.state
    found = [a for pid in state.processes if of_run(state, pid) for a in accounts(state, pid) if a.pools]
    best = max(found, key=lambda account: account.total or 0, default=None)
    if best is not None and (best.total is not None or seen.account is None):
        seen.account = best


def _read(seen: RunReview, reading: events.DeviceReading) -> None:
    run = seen.state.run
    known = reading.index in seen.state.devices  # a recording may have lost its beginning
    if run is None or not run.going or not known or not any(is_gpu(name) for name in run.effective):
        return
    if all(hooked.ended for _, hooked in hooked_of_run(seen.state) if hooked.effective):
        return  # those processes of the run that had a device are over
    used = used_cards(seen.state)
    if used and reading.index not in used:  # if none is in *used*, it is not known which cards the run uses
        return
    card = seen.cards.setdefault(reading.index, CardUse())
    card.most_used = max(card.most_used, reading.used or 0)
    if reading.utilisation is not None:
        card.percent += reading.utilisation
        card.readings += 1


WIDTH = 96
"""Columns of a report."""

_CEASES = Leak, HostGrowth, NoRoom
"""What is no cause once it has ceased: memory that rose and then stayed as it was, a wait for room."""


def verdict(seen: RunReview) -> Cause | None:
    """Return the cause that the run is judged by, with the text of a verdict; ``None`` if there was no run."""
    if seen.state.run is None:
        return None
    found = (held.finding for held in weighed(seen) if not _over(seen, held))
    cause, _ = judged(seen.state, found, going=seen.running)
    return replace(cause, text=cause.advised)


def _over(seen: RunReview, held: HeldFinding) -> bool:
    """Return whether what was found is no cause any more."""
    return isinstance(held.finding, _CEASES) and seen.ceased(held.last)


def weighed(seen: RunReview) -> list[HeldFinding]:
    """Return what was found in the run, the most serious first, without findings that a more serious one includes.

    A cache that was used again was not idle: it is left out too.
    Of equally serious ones, those come first that held to the run's end: figures of others were no longer true then.
    """
    failed = [held.finding for held in seen.held if isinstance(held.finding, AllocationFailed)]
    pools = {(one.anatomy.pid, one.anatomy.device) for one in failed}

    def left_out(finding: Finding) -> bool:
        """Return whether a failure reports the same: that there was no room, or hardly any, or what filled the pool."""
        if finding.aside or (isinstance(finding, Noticed) and not finding.of_state):
            return True
        if isinstance(finding, Retraced) or (isinstance(finding, HostGrowth) and finding.retraced):
            return any(one.cause.key == Key.CONSTANTS_CAPTURED for one in failed)
        if isinstance(finding, NoRoom):
            return (finding.anatomy.pid, finding.anatomy.device) in pools
        devices = {one.anatomy.device for one in failed if one.cause.keeps_growing or isinstance(finding, TightLimit)}
        return isinstance(finding, TightLimit | Leak) and finding.place.device in devices

    used_again = {id(one) for one in seen.held if isinstance(one.finding, CachedButIdle) and seen.ceased(one.last)}
    found = [held for held in seen.held if id(held) not in used_again and not left_out(held.finding)]
    return sorted(found, key=lambda held: (held.finding.severity, seen.ceased(held.last), held.place))
