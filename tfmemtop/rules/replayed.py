"""What the replay of a run's allocations says of the limit it needs, and whether the replay can speak for the run."""

from dataclasses import dataclass

from tfmemtop.events import SmallestLimits
from tfmemtop.settings import Growth
from tfmemtop.state import State
from tfmemtop.state.foretold import HIGHER_LATER, Foretold, foretold
from tfmemtop.state.lookup import of_run
from tfmemtop.state.model import RunState


@dataclass(frozen=True, slots=True)
class ReplayedLimits:
    """The smallest limits of a pool, in bytes: ``surely`` all fits in any likely order, below ``at_least`` in none.

    They rest on ``allocations`` of ``steps`` (0 if no step was seen), and are for that ``growth``. ``more`` is by how
    much the run's peak has risen since, which is in both of them.
    """

    surely: int
    at_least: int
    allocations: int
    steps: int
    growth: Growth
    more: int


def replayed_limits(state: State, run: RunState, device: str, growth: Growth | None) -> ReplayedLimits | None:
    """Of *device* in *run*, the newest, with *growth* or as it is there; ``None`` if no replay speaks for it."""
    if run is not state.run:
        return None
    view = next((view for view in foretold(state, device) if of_run(state, view.pid)), None)
    if view is None or not _speaks_for(view, run, device):
        return None
    present = view.replayed.present
    assert present is not None
    wanted: Growth = growth or ("on" if present.growth else "off")
    least = view.least(wanted == "on")
    return None if least is None else _limits(view, run.peaks[device], least, wanted)


def _speaks_for(view: Foretold, run: RunState, device: str) -> bool:
    """Whether what came after the recorded allocations needed no more than they did."""
    replayed, present = view.replayed, view.replayed.present
    if replayed.lost or replayed.missing or present is None or not present.in_order.fits:
        return False
    if not replayed.whole and (view.share is None or view.share < 1):
        return False
    pool, known = run.pools.get(device), present.in_order
    return run.peaks[device] <= known.peak * HIGHER_LATER and (pool is None or pool <= known.peak_pool)


def _limits(view: Foretold, peak: int, least: SmallestLimits, growth: Growth) -> ReplayedLimits:
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
