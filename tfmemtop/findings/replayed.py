"""The limit that a run needs by the replay of its allocations, and whether the replay holds for the whole run."""

from dataclasses import dataclass

from tfmemtop.events import SmallestLimits
from tfmemtop.settings import Growth
from tfmemtop.state import State
from tfmemtop.state.lookup import of_run
from tfmemtop.state.model import RunState
from tfmemtop.state.predicted import Predicted, predicted


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
