"""The limit that a run needs by the replay of its allocations, and whether the replay holds for the whole run."""

from dataclasses import dataclass

from tfmemtop.events import Replayed, SmallestLimits
from tfmemtop.events.device_names import is_gpu
from tfmemtop.settings import Growth
from tfmemtop.state import State
from tfmemtop.state.lookup import of_run
from tfmemtop.state.model import RunState
from tfmemtop.state.predicted import Predicted, predicted
from tfmemtop.suggested import typed


@dataclass(frozen=True, slots=True)
class ReplayedLimits:
    """The smallest limits of a pool, in bytes.

    Under ``surely``, all allocations fit in any likely order; below ``at_least``, in none. They rest on the replay of
    ``allocations`` in ``steps`` (0 if no step was seen), and are for that ``growth``. ``more`` is the bytes by which
    the run's peak has risen since; both limits include it.
    """

    surely: int
    at_least: int
    allocations: int
    steps: int
    growth: Growth
    more: int


@dataclass(frozen=True, slots=True)
class WouldPass:
    """What would have been enough for a run that ran out of memory, by the replay of an earlier run.

    ``run`` is the number of that run, which had the same command. ``on`` and ``off`` are the smallest limits with
    growth on and off; for the CPU's pool, ``off`` is ``None``. ``same_limit`` is the other growth, if that is enough
    under the limit that the run had. ``share`` is the share of the batch that would fit under that limit. Either is
    ``None`` where it does not help or is not known.
    """

    run: int
    on_gpu: bool
    on: SmallestLimits | None
    off: SmallestLimits | None
    same_limit: Growth | None
    share: float | None

    @property
    def text(self) -> str:
        """Which limit, growth or batch would have been enough."""
        limits = [
            f"{typed(least.surely)}{f' with growth {growth}' if self.on_gpu else ''} (at least {typed(least.at_least)})"
            for growth, least in (("on", self.on), ("off", self.off))
            if least is not None
        ]
        said = f"The allocations of run {self.run}, replayed, surely fit under a limit of {' or of '.join(limits)}."
        if self.same_limit is not None:
            said += f" Under this limit they fit with growth {self.same_limit}."
        if self.share is not None:
            said += f" With this limit ~{100 * self.share:.0f} % of the batch would fit."
        return said


def would_pass(state: State, device: str, limit: int | None) -> WouldPass | None:
    """Return what would have been enough for *device*, on which the newest run failed under *limit* bytes.

    ``None`` if no earlier run of the same command shows it.
    """
    run = state.run
    if run is None:
        return None
    for earlier in reversed(state.runs[:-1]):
        replayed = earlier.replayed.get(device)
        if earlier.argv == run.argv and replayed is not None and _tells(earlier, replayed, device):
            on, off = replayed.least(True), replayed.least(False)
            effective = run.effective.get(device)
            growth: Growth = "off" if is_gpu(device) and effective and effective.growth is False else "on"
            had, other = (on, off) if growth == "on" else (off, on)
            another: Growth = "off" if growth == "on" else "on"
            same = another if limit is not None and other is not None and other.surely <= limit else None
            return WouldPass(earlier.run, is_gpu(device), on, off, same, _share(replayed, had, limit))
    return None


def _tells(run: RunState, replayed: Replayed, device: str) -> bool:
    """Return whether *run* needed no more than what was *replayed*, and has not failed."""
    present = replayed.present
    if replayed.is_missing or replayed.lost or not replayed.whole or present is None or not present.in_order.fits:
        return False
    needed_more = replayed.outgrown(run.peaks.get(device, 0), run.pools.get(device))
    return not (run.out_of_memory or run.failed or needed_more)


def _share(replayed: Replayed, least: SmallestLimits | None, limit: int | None) -> float | None:
    """Return the share of the batch that would fit under *limit* bytes; ``None`` if that is not known.

    All memory but what is kept between steps is taken to grow with the batch.
    """
    if least is None or limit is None or replayed.kept is None or not replayed.kept < limit < least.surely:
        return None
    return (limit - replayed.kept) / (least.surely - replayed.kept)


def replayed_limits(state: State, run: RunState, device: str, growth: Growth | None) -> ReplayedLimits | None:
    """Return the smallest limits of *device* in *run*, with *growth* or with the growth that it has there.

    ``None`` if *run* is not the newest run, or if there is no replay that holds for the whole run.
    """
    if run is not state.run:
        return None
    view = next((view for view in predicted(state, device) if of_run(state, view.pid)), None)
    if view is None or not _speaks_for(view, run, device):
        return None
    present = view.replayed.present
    assert present is not None
    wanted: Growth = growth or ("on" if present.growth else "off")
    least = view.replayed.least(wanted == "on")
    return None if least is None else _limits(view, run.peaks[device], least, wanted)


def _speaks_for(view: Predicted, run: RunState, device: str) -> bool:
    """Return whether the run needed no more than the recorded allocations did, as far as is known."""
    replayed, present = view.replayed, view.replayed.present
    if replayed.lost or replayed.is_missing or present is None or not present.in_order.fits:
        return False
    if not replayed.whole and (view.share is None or view.share < 1):
        return False
    return not replayed.outgrown(run.peaks[device], run.pools.get(device))


def _limits(view: Predicted, peak: int, least: SmallestLimits, growth: Growth) -> ReplayedLimits:
    assert view.replayed.present is not None
    more = max(0, peak - view.replayed.present.in_order.peak)
    replayed = view.replayed
    return ReplayedLimits(
        surely=least.surely + more,
        at_least=least.at_least + more,
        allocations=replayed.allocations,
        steps=replayed.steps,
        growth=growth,
        more=more,
    )
