"""The limit to suggest for a run: the only place that computes one, for findings, dialogs and reports."""

from collections.abc import Sequence
from dataclasses import dataclass

from tfmemtop.events.device_names import is_cpu, is_gpu
from tfmemtop.findings.leaks import leaks
from tfmemtop.findings.memory import failures
from tfmemtop.findings.replayed import replayed_limits
from tfmemtop.settings import Growth, Settings
from tfmemtop.state import State
from tfmemtop.state.anatomy import Anatomy, anatomies
from tfmemtop.state.lookup import LimitBy
from tfmemtop.state.model import RunState
from tfmemtop.suggested import Basis, DeviceLimit, SuggestedLimit, whole_mib, with_margin, with_room
from tfmemtop.units import MIB

_FROM_THE_SUREST = (
    *(Basis.FIT, Basis.POOL_REACHED, Basis.REPLAYED, Basis.REPLAYED_SO_FAR),
    *(Basis.POOL_SO_FAR, Basis.PEAK, Basis.FAILED_REQUEST),
)
"""What a limit computed from a run may rest on, the surest first."""

_AT_MOST = 2
"""A pool that grows, or a pool of one region, is as a rule at most this many times the peak. Only a guess."""


@dataclass(frozen=True, slots=True)
class _Need:
    """What one logical device needs, in bytes; ``figure`` is what ``size`` rests on."""

    device: str
    size: int
    basis: Basis
    figure: int
    growth: Growth | None
    seen: tuple[int, int] | None = None  # allocations and steps that were replayed


def needed_by(anatomy: Anatomy) -> int | None:
    """Return the bytes in use that the failed allocation would have led to; ``None`` where that is not known."""
    return None if anatomy.asked is None or anatomy.in_use is None else anatomy.in_use + anatomy.asked


def suggested_limit(state: State, run: RunState | None = None, growth: Growth | None = None) -> SuggestedLimit | None:
    """Return the limit to suggest after *run*, by default the newest run.

    Where the run's allocations were replayed, the limit is for *growth*.

    ``None`` if nothing has been read of the run, if a limit would have no effect on its allocator, or if the run does
    not show what is needed. That is so if it leaked, or if it failed (perhaps by a crash with a full pool) without a
    failed allocation that is known.
    """
    run = run or state.run
    if run is None or _asynchronous(run):
        return None
    newest = run is state.run
    if newest and leaks(state):
        return None
    if run.out_of_memory:
        needs = _after_failure(state, run) if newest else []
    elif newest and failures(state):
        needs = []  # it crashed as its pool ran out: what it needs is not known
    elif not run.failed:
        needs = [_need(state, run, device, growth) for device in _limited(run)]
    else:
        needs = []
    return _together(run, needs)


def suggested_limits(state: State, settings: Settings, argv: Sequence[str]) -> list[SuggestedLimit]:
    """Return the limits to suggest for the next run with *settings* and *argv*, the surest first.

    Where the newest run gives none, or only a guess, an earlier run of the same command may give a better one.
    """
    alike = [run for run in state.runs[:-1] if run.argv == list(argv)]
    newest = suggested_limit(state, growth=settings.growth)
    found = [newest] if newest else []
    if newest is None or newest.is_guess:
        earlier = (suggested_limit(state, run) for run in reversed(alike))
        found = [*(one for one in earlier if one and not one.is_guess)][:1] + found
    # On a machine with GPUs, the limit of the next run applies to the GPUs, not to the CPU pool.
    return [one.under(settings.growth) for one in found if one.on_gpu or not state.devices]


def _asynchronous(run: RunState) -> bool:
    return any(effective.allocator == "cuda_malloc_async" for effective in run.effective.values())


def _limited(run: RunState) -> list[str]:
    """Return the logical devices to which a limit applies: the GPUs, or the CPU if there are none."""
    gpus = sorted(device for device in run.peaks if is_gpu(device))
    return gpus or [device for device in run.peaks if is_cpu(device)]


def _need(state: State, run: RunState, device: str, growth: Growth | None = None) -> _Need:
    to_its_end = run.ending is not None and run.ending.good and not run.unread
    if limits := replayed_limits(state, run, device, growth):
        basis = Basis.REPLAYED if to_its_end else Basis.REPLAYED_SO_FAR
        seen, under = (limits.allocations, limits.steps), limits.growth if is_gpu(device) else None
        return _Need(device, with_margin(limits.surely), basis, limits.at_least, under, seen)
    pool, peak, limit = run.pools.get(device), run.peaks[device], run.limits.get(device)
    had = _growth(run, device)
    guess = _Need(device, whole_mib(_AT_MOST * peak), Basis.PEAK, peak, had)
    at_once = is_gpu(device) and had != "on"
    if pool is None or (at_once and guess.size < pool):
        return guess
    # The run came as far as it did under the limit that it had, so a higher one is not needed.
    enough = with_room(pool, peak) if limit is None else min(with_room(pool, peak), max(limit, pool))
    return _Need(device, whole_mib(enough), Basis.POOL_REACHED if to_its_end else Basis.POOL_SO_FAR, pool, had)


def _growth(run: RunState, device: str) -> Growth | None:
    effective = run.effective.get(device)
    if not is_gpu(device) or effective is None or effective.growth is None:
        return None
    return "on" if effective.growth else "off"


def _after_failure(state: State, run: RunState) -> list[_Need]:
    """Return what each pool needs: for the allocation that failed in it, or else by what it has held so far."""
    failed: dict[str, _Need] = {}
    for anatomy in anatomies(state):
        need = _for_request(run, anatomy)
        if need is None:
            return []
        if need.device not in failed or failed[need.device].size < need.size:
            failed[need.device] = need
    others = [_need(state, run, device) for device in _limited(run) if device not in failed]
    return [*failed.values(), *others] if failed else []


def _for_request(run: RunState, a: Anatomy) -> _Need | None:
    """Return what a pool needs in which an allocation failed: its size at that time, and a region for the request.

    ``None`` if not enough is known, if the limit is TensorFlow's own, which cannot be raised, or if the card has no
    more memory.
    """
    if a.device is None or a.asked is None or a.limit is None or a.limit_by is LimitBy.TENSORFLOW:
        return None
    # If the reading shows room for the request, the pool was read at another moment: take the limit instead.
    held = a.limit if a.pool is None or a.pool + a.asked <= a.limit else a.pool
    size = with_room(held + a.asked, run.peaks.get(a.device, 0))
    if a.card_total is not None:
        if held + a.asked > a.card_total:
            return None
        size = min(size, a.card_total // MIB * MIB)
    return _Need(a.device, size, Basis.FAILED_REQUEST, a.asked, _growth(run, a.device))


def _together(run: RunState, needs: list[_Need]) -> SuggestedLimit | None:
    """Return one limit for each GPU, so high that every logical device gets what it needs."""
    if not needs:
        return None
    cards: dict[str, list[_Need]] = {}
    for need in needs:
        cards.setdefault(_card(run, need.device), []).append(need)
    # The whole suggestion is only as sure as its least sure part.
    weakest = max(needs, key=lambda need: (_FROM_THE_SUREST.index(need.basis), need.size))
    growths = {need.growth for need in needs}
    return SuggestedLimit(
        size=max(_for_card(run, devices) for devices in cards.values()),
        basis=weakest.basis,
        figure=weakest.figure,
        on_gpu=is_gpu(weakest.device),
        run=run.run,
        growth=growths.pop() if len(growths) == 1 else None,
        each=tuple(DeviceLimit(need.device, card, need.size) for card, devices in cards.items() for need in devices),
        seen=weakest.seen,
    )


def _card(run: RunState, device: str) -> str:
    effective = run.effective.get(device)
    return (effective.uuid if effective else None) or device


def _for_card(run: RunState, devices: list[_Need]) -> int:
    """Return the limit of a card whose logical devices share it as in *run*, or equally if that is not known."""
    if len(devices) == 1:
        return devices[0].size
    had = [run.limits.get(need.device) for need in devices]
    weights = [limit // MIB if limit else 0 for limit in had]
    if not all(weights):
        weights = [1] * len(devices)
    wholes = [need.size * sum(weights) // weight for need, weight in zip(devices, weights, strict=True)]
    return whole_mib(max(wholes)) + MIB  # the hook computes shares with fractions, and rounds them down
