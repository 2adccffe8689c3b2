"""The limit to suggest for a run: the only place that computes one, for findings, dialogs and reports."""

import shlex
from collections.abc import Iterator, Sequence

import msgspec

from tfmemtop.events.machine import is_cpu, is_gpu
from tfmemtop.findings.rules.leaks import leaks
from tfmemtop.findings.rules.out_of_memory import failures
from tfmemtop.findings.run_devices import PoolKind, hooked_of_run, pool_kind
from tfmemtop.limits import Basis, DeviceLimit, SuggestedLimit, typed, whole_mib, with_margin, with_room
from tfmemtop.settings import Growth, Settings
from tfmemtop.state import State
from tfmemtop.state.anatomy import Anatomy
from tfmemtop.state.lookup import of_run
from tfmemtop.state.model import RunState
from tfmemtop.state.predicted import predicted
from tfmemtop.units import MIB, counted, format_bytes

_FROM_THE_SUREST = (
    *(Basis.FIT, Basis.POOL_REACHED, Basis.REPLAYED),
    *(Basis.REPLAYED_SO_FAR, Basis.POOL_SO_FAR, Basis.PEAK),
)
"""What a limit computed from a run may rest on, the surest first."""

_AT_MOST = 2
"""A pool that grows, or a pool of one region, is as a rule at most this many times the peak. Only a guess."""


class _Need(msgspec.Struct, frozen=True):
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
    not show what is needed. That is so if it leaked, or if it failed: a request that found no room shows what was
    needed at least, and later ones may need any amount more.
    """
    run = run or state.run
    if run is None or pool_kind(run) is PoolKind.CUDA:
        return None
    if run.failed or run.out_of_memory or (run is state.run and (leaks(state) or failures(state))):
        return None
    good = run.ending is not None and run.ending.good
    if not good and run is state.run and found_no_room(state):
        return None
    return _together(run, [_need(state, run, device, growth) for device in _limited(run)])


def found_no_room(state: State) -> bool:
    """Return whether an allocation of the newest run found no room at first, and so waited for some."""
    return any(pool.exhausted for _, hooked in hooked_of_run(state) for pool in hooked.pools.values())


def suggested_limits(state: State, settings: Settings, argv: Sequence[str]) -> list[SuggestedLimit]:
    """Return the limits to suggest for the next run with *settings* and *argv*, the surest first.

    Where the newest run gives none, or only a guess, an earlier run of the same command may give a better one. None is
    suggested after a run that leaked, and none that is no higher than a limit under which the newest run failed.
    """
    if leaks(state):
        return []
    alike = [run for run in state.runs[:-1] if run.argv == list(argv)]
    newest = suggested_limit(state, growth=settings.growth)
    found = [newest] if newest else []
    if newest is None or newest.is_guess:
        earlier = (suggested_limit(state, run) for run in reversed(alike))
        found = [*(one for one in earlier if one and not one.is_guess)][:1] + found
    too_low = max((failed.anatomy.limit or 0 for failed in failures(state)), default=0)
    found = [one for one in found if one.size > too_low]
    # On a machine with GPUs, the limit of the next run applies to the GPUs, not to the CPU pool.
    return [one.under(settings.growth) for one in found if one.on_gpu or not state.devices]


def _limited(run: RunState) -> list[str]:
    """Return the logical devices to which a limit applies: the GPUs, or the CPU if there are none."""
    gpus = sorted(device for device in run.peaks if is_gpu(device))
    return gpus or [device for device in run.peaks if is_cpu(device)]


def _need(state: State, run: RunState, device: str, growth: Growth | None = None) -> _Need:
    to_its_end = run.ending is not None and run.ending.good and not run.unread
    if replayed := _replayed(state, run, device, growth, to_its_end):
        return replayed
    pool, peak, limit = run.pools.get(device), run.peaks[device], run.limits.get(device)
    had = _growth(run, device)
    guess = _Need(device, whole_mib(_AT_MOST * peak), Basis.PEAK, peak, had)
    at_once = is_gpu(device) and had != "on"
    if pool is None or (at_once and guess.size < pool):
        return guess
    # The run came as far as it did under the limit that it had, so a higher one is not needed.
    enough = with_room(pool, peak) if limit is None else min(with_room(pool, peak), max(limit, pool))
    return _Need(device, whole_mib(enough), Basis.POOL_REACHED if to_its_end else Basis.POOL_SO_FAR, pool, had)


def _replayed(state: State, run: RunState, device: str, growth: Growth | None, to_its_end: bool) -> _Need | None:
    """Return what *device* needs by the replay of its allocations, with *growth* or with the growth that it has there.

    ``None`` if *run* is not the newest run, or if no replay holds for the whole run, as far as is known.
    """
    view = next((view for view in predicted(state, device) if of_run(state, view.pid)), None)
    if run is not state.run or view is None:
        return None
    replayed, present = view.replayed, view.replayed.present
    if replayed.lost or replayed.is_missing or present is None or not present.in_order.fits:
        return None
    of_all = replayed.whole or (view.share is not None and view.share >= 1)
    if not of_all or replayed.outgrown(run.peaks[device], run.pools.get(device)):
        return None
    wanted: Growth = growth or ("on" if present.growth else "off")
    ends = view.ends(wanted == "on")
    if ends is None or ends.surely is None:
        return None
    return _Need(
        device,
        with_margin(ends.surely),
        Basis.REPLAYED if to_its_end else Basis.REPLAYED_SO_FAR,
        ends.at_least,
        wanted if is_gpu(device) else None,
        (replayed.allocations, replayed.steps),
    )


def _growth(run: RunState, device: str) -> Growth | None:
    effective = run.effective.get(device)
    if not is_gpu(device) or effective is None or effective.growth is None:
        return None
    return "on" if effective.growth else "off"


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
        figure=max(need.figure for need in needs if need.basis is weakest.basis),
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


GUESS = "~ a guess"
"""The beginning of a choice if no run is known to have worked under that limit."""

IN_THE_SCRIPT = "or, in the script, before TensorFlow is imported:"
"""The text that comes before the lines of :func:`code`."""


def amount(suggested: SuggestedLimit) -> str:
    """Return the limit: ``1078M``, or ``~1078M`` if it is a guess."""
    return ("~" if suggested.is_guess else "") + typed(suggested.size)


def basis(suggested: SuggestedLimit) -> str:
    """Return what the limit rests on, for a dialog's list: ``rests on the pool that run 1 reached, 1.0 GiB``."""
    if suggested.divided:
        return (f"{GUESS}: " if suggested.is_guess else "") + f"shared by {_each(suggested)}"
    return (f"{GUESS}: " if suggested.is_guess else "rests on ") + _figure(suggested)


def _figure(suggested: SuggestedLimit) -> str:
    figure = format_bytes(suggested.figure)
    growth = f" with growth {suggested.growth}" if suggested.growth else ""
    allocations, steps = suggested.seen or (0, 0)
    of_steps = f" of {counted(steps, 'step')}" if steps else ""
    replayed = f"{counted(allocations, 'allocation')}{of_steps}, replayed with TensorFlow's own allocator"
    return {
        Basis.POOL_REACHED: f"the pool that run {suggested.run} reached{growth}, {figure}",
        Basis.FIT: f"a try of fit that passed under {figure}",
        Basis.REPLAYED: f"{replayed}{growth}",
        Basis.REPLAYED_SO_FAR: f"{replayed}{growth}; later ones are not known",
        Basis.POOL_SO_FAR: f"the pool of run {suggested.run} came to {figure}, as far as it ran",
        Basis.PEAK: f"twice the peak in use, {figure}",
        Basis.OTHER_GROWTH: f"it worked{growth} only",
    }[suggested.basis]


def sentences(suggested: SuggestedLimit) -> Iterator[str]:
    """Yield the limit and what it rests on, in whole sentences."""
    if suggested.divided:
        guesses = ". These are guesses" if suggested.is_guess else ""
        yield f"Each logical device needs a limit of its own: {_each(suggested)}{guesses}."
        yield f"--memory-limit is for a whole GPU, and its logical devices share it: {amount(suggested)}."
    else:
        limit = f"A limit of {amount(suggested)}"
        limit += f" for each of {suggested.gpus} GPUs" if suggested.gpus > 1 else ""
        if suggested.is_guess:
            yield f"{limit} is a guess: {_figure(suggested)}."
        elif suggested.basis is Basis.REPLAYED:
            yield f"{limit}: what the replayed run needs, plus a margin."
            yield f"The limit rests on {_figure(suggested)}."
        else:
            margin = ", plus a margin" if suggested.size > suggested.figure else ""
            yield f"{limit}: {_figure(suggested)}{margin}."
    if suggested.basis in (Basis.REPLAYED, Basis.REPLAYED_SO_FAR):
        # Because some wait, this may be below the run's peak.
        least = format_bytes(suggested.figure)
        yield f"Under less than {least} the allocations do not fit, even if some wait until others have freed memory."
    if suggested.is_guess:
        yield "tfmemtop fit finds the smallest limit that works."


def _each(suggested: SuggestedLimit) -> str:
    about = "~" if suggested.is_guess else ""
    return ", ".join(f"{limit.device} {about}{typed(limit.size)}" for limit in suggested.each)


def options(suggested: SuggestedLimit) -> tuple[str, ...]:
    """Return the options of tfmemtop that set the limit."""
    option = "--memory-limit" if suggested.on_gpu else "--cpu-pool"
    growth = ("--growth", suggested.growth) if suggested.growth else ()
    return (*growth, option, typed(suggested.size))


def started(suggested: SuggestedLimit, command: Sequence[str]) -> tuple[str, ...]:
    """Return the words of the command line with which tfmemtop starts *command* under the limit."""
    return ("tfmemtop", *options(suggested), "--", *command)


def kernel_installed(suggested: SuggestedLimit) -> tuple[str, ...]:
    """Return the words of the command line that sets the limit for all kernels of tfmemtop, which Jupyter starts."""
    return ("tfmemtop", "kernel", "install", *options(suggested))


def command_line(suggested: SuggestedLimit, command: Sequence[str]) -> str:
    """Return the words of :func:`started` as one line for the shell."""
    return shlex.join(started(suggested, command))


def code(suggested: SuggestedLimit) -> tuple[str, ...]:
    """Return the lines of Python that set the limit in the script itself."""
    if not suggested.on_gpu:
        return (
            "import os",
            'os.environ["TF_CPU_ALLOCATOR_USE_BFC"] = "true"',
            f'os.environ["TF_CPU_BFC_MEM_LIMIT_IN_MB"] = "{suggested.size // MIB}"',
        )
    return (*_growing(suggested), "import tensorflow as tf", *_limits(suggested))


def _growing(suggested: SuggestedLimit) -> tuple[str, ...]:
    if suggested.growth != "on":
        return ()
    return (
        "import os",
        'os.environ["TF_FORCE_GPU_ALLOW_GROWTH"] = "true"  # a limit alone turns growth off',
    )


def _limits(suggested: SuggestedLimit) -> Iterator[str]:
    if not suggested.divided:
        yield 'for gpu in tf.config.list_physical_devices("GPU"):'
        yield f"    limit = tf.config.LogicalDeviceConfiguration(memory_limit={suggested.size // MIB})  # MiB"
        yield "    tf.config.set_logical_device_configuration(gpu, [limit])"
        return
    yield 'gpus = tf.config.list_physical_devices("GPU")'
    for index, card in enumerate(dict.fromkeys(limit.card for limit in suggested.each)):
        yield f"tf.config.set_logical_device_configuration(gpus[{index}], ["
        for limit in suggested.each:
            if limit.card == card:
                mib = limit.size // MIB
                yield f"    tf.config.LogicalDeviceConfiguration(memory_limit={mib}),  # {limit.device}, MiB"
        yield "])"
