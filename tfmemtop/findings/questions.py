"""The facts that the answers to the five questions rest on, for one run. Pure."""

from dataclasses import dataclass

from tfmemtop import events
from tfmemtop.events.device_names import is_gpu, is_pinned
from tfmemtop.findings.callsite import Callsite, devices_made_at
from tfmemtop.findings.finding import Question
from tfmemtop.findings.fitting import needed_by, suggested_limit
from tfmemtop.findings.leaks import leaks
from tfmemtop.findings.pool import WHOLE_CARD
from tfmemtop.findings.run_devices import hooked_of_run, run_devices, used_cards
from tfmemtop.findings.run_figures import Peaks, PoolKind, peaks, pool_kind
from tfmemtop.findings.run_review import CardUse, RunReview
from tfmemtop.settings import Growth
from tfmemtop.state.account import Account
from tfmemtop.state.anatomy import anatomies
from tfmemtop.state.holdings import Holdings, holdings
from tfmemtop.state.model import RunState, State
from tfmemtop.suggested import SuggestedLimit


@dataclass(frozen=True, slots=True)
class AllTaken:
    """Whether the script requested growth, and what the pools then took.

    ``calls`` are its requests, ``made_at`` the lines at which TensorFlow made its devices, ``chosen`` the growth that
    the user set. ``card`` is the size of the largest GPU that the run uses, in bytes.
    """

    calls: tuple[events.Requested, ...]
    made_at: tuple[Callsite, ...]
    chosen: Growth | None
    kind: PoolKind
    peaks: Peaks
    card: int | None

    @property
    def most_of_card(self) -> bool:
        """Whether the pool took most of the card."""
        taken = self.peaks.process_total if self.peaks.pool is None else self.peaks.pool
        return taken is not None and self.card is not None and taken >= self.card * WHOLE_CARD


def all_taken(state: State, run: RunState) -> AllTaken:
    """Return the facts for :attr:`~tfmemtop.findings.finding.Question.ALL_TAKEN`."""
    hooked = [hooked for _, hooked in hooked_of_run(state)]
    cards = used_cards(state) or state.devices.keys()
    totals = [total for index in cards if (total := state.devices[index].info.total) is not None]
    return AllTaken(
        calls=tuple(r for one in hooked for r in one.requested if r.call is events.Call.SET_MEMORY_GROWTH),
        made_at=tuple(site for one in hooked if (site := devices_made_at(one))),
        chosen=run.settings.growth,
        kind=pool_kind(run),
        peaks=peaks(run),
        card=max(totals, default=None),
    )


@dataclass(frozen=True, slots=True)
class TakenAndBusy:
    """The most bytes taken of a card's ``whole``: by all processes (``taken``), and by the run's (``own``).

    ``busy`` is how busy the card was, in percent. A value that is not known is ``None``.
    """

    taken: int
    own: int | None
    whole: int | None
    busy: float | None


@dataclass(frozen=True, slots=True)
class FullNotUsed:
    """How much of each GPU was taken, and how busy it was. ``fragmentation`` is that of the newest map.

    ``cards`` are pairs of a GPU's NVML index and its figures.
    """

    cards: tuple[tuple[int, TakenAndBusy], ...]
    peaks: Peaks
    fragmentation: float | None


def full_not_used(seen: RunReview, run: RunState) -> FullNotUsed:
    """Return the facts for :attr:`~tfmemtop.findings.finding.Question.FULL_NOT_USED`."""

    def of(index: int, card: CardUse) -> TakenAndBusy:
        return TakenAndBusy(card.most_used, run.totals.get(index), seen.state.devices[index].info.total, card.busy)

    cards = tuple((index, of(index, card)) for index, card in seen.cards.items())
    return FullNotUsed(cards, peaks(run), run.fragmentation)


@dataclass(frozen=True, slots=True)
class Efficiently:
    """How much memory the run needed; bytes.

    ``failed`` if it ran out of memory; ``needed`` is then the memory in use that the failed allocation would have led
    to. ``leaks`` if the memory in use kept rising, ``good_end`` if the run ended with exit status 0. ``limit`` is
    ``None`` where none is suggested. ``peak`` is that of the device that had most; ``each`` are those of every logical
    device, where these share a GPU.
    """

    peak: int | None
    each: tuple[tuple[str, int], ...]
    failed: bool
    leaks: bool
    going: bool
    good_end: bool
    needed: int | None
    limit: SuggestedLimit | None
    argv: tuple[str, ...]
    kernel: bool = False


def efficiently(state: State, run: RunState) -> Efficiently:
    """Return the facts for :attr:`~tfmemtop.findings.finding.Question.EFFICIENTLY`."""
    needed = [size for anatomy in anatomies(state) if anatomy.asked and (size := needed_by(anatomy)) is not None]
    limit = suggested_limit(state, run)
    return Efficiently(
        peak=run.peak_in_use,
        each=tuple((one.device, run.peaks[one.device]) for one in limit.each) if limit and limit.divided else (),
        failed=bool(run.out_of_memory),
        leaks=leaks(state),
        going=run.going,
        good_end=run.ending is not None and run.ending.good,
        needed=max(needed, default=None),
        limit=limit,
        argv=tuple(run.argv),
        kernel=run.kernel is not None,
    )


@dataclass(frozen=True, slots=True)
class GrowthEffect:
    """What growth changed. Sizes are in bytes.

    ``asked_limit`` is the sum of the limits that were set, ``free`` what was free at the start
    of the GPUs that the run uses, on the one that had most. ``taken`` is the sum of
    the pools that had such a limit, at their largest; ``None`` where one is not known. ``own_limit`` is the largest
    limit of the GPUs' allocators, which TensorFlow reserves with growth off; ``None`` if none is known. ``steps`` are
    the growths of the largest pool; ``started`` is the time at which the run began.
    """

    kind: PoolKind
    asked_limit: int
    taken: int | None
    free: int | None
    own_limit: int | None
    peaks: Peaks
    steps: tuple[events.PoolGrowth, ...]
    started: float


def growth_effect(state: State, run: RunState) -> GrowthEffect:
    """Return the facts for :attr:`~tfmemtop.findings.finding.Question.GROWTH`."""
    limited = [device for device in run_devices(state) if device.asked_limit is not None]
    pools = [run.pools.get(device.name) for device in limited]
    cards = used_cards(state) or run.before.keys()
    return GrowthEffect(
        kind=pool_kind(run),
        asked_limit=sum(device.asked_limit or 0 for device in limited),
        taken=None if None in pools else sum(pool or 0 for pool in pools),
        free=max((free for index, (_, free) in run.before.items() if index in cards), default=None),
        own_limit=max((limit for name, limit in run.limits.items() if is_gpu(name)), default=None),
        peaks=peaks(run),
        steps=_steps(state),
        started=run.started,
    )


def _steps(state: State) -> tuple[events.PoolGrowth, ...]:
    """Return the growths of the pool that became largest. Steps of two pools in one row would mean nothing."""
    pools = [
        tuple(growth for growth in pool.growths if growth.after > growth.before)
        for _, hooked in hooked_of_run(state)
        for name, pool in hooked.pools.items()
        if not is_pinned(name)
    ]
    return max(pools, key=lambda growths: max((growth.after for growth in growths), default=0), default=())


@dataclass(frozen=True, slots=True)
class ReportsLess:
    """The last account of the process that held most, and what is in use on its devices.

    Without an account, ``held`` is the most bytes that the run's processes held of a GPU, ``None`` if not known.
    """

    account: Account | None
    holdings: tuple[Holdings, ...]
    held: int | None = None


def reports_less(seen: RunReview) -> ReportsLess:
    """Return the facts for :attr:`~tfmemtop.findings.finding.Question.REPORTS_LESS`."""
    account = seen.account
    if account is None:
        return ReportsLess(None, (), seen.state.run.peak_process_total if seen.state.run else None)
    devices = {pool.device for pool in account.pools}
    return ReportsLess(account, tuple(held for held in holdings(seen.state, account.pid) if held.device in devices))


_IDLE_PERCENT = 50.0
"""A full card that is busy for less than this gives reason to ask why."""


def arising(seen: RunReview) -> set[Question]:
    """Return the questions that the run gives reason to ask."""
    run = seen.state.run
    if run is None:
        return set()
    found = {held.finding.answers for held in seen.held if held.finding.answers is not None}
    kind = pool_kind(run)
    if all_taken(seen.state, run).most_of_card:
        found.add(Question.ALL_TAKEN)
    if any(_full_and_idle(card) for _, card in full_not_used(seen, run).cards):
        found.add(Question.FULL_NOT_USED)
    if run.peak_in_use is not None:
        found.add(Question.EFFICIENTLY)
    if kind in (PoolKind.GROWING, PoolKind.RESERVED):
        found.add(Question.GROWTH)
    if seen.account is not None and seen.account.total is not None:
        found.add(Question.REPORTS_LESS)
    return found


def _full_and_idle(card: TakenAndBusy) -> bool:
    full = card.whole is not None and card.taken >= card.whole * WHOLE_CARD
    return full and card.busy is not None and card.busy < _IDLE_PERCENT
