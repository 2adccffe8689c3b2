"""The slices of a process's memory add up, in recordings of real runs."""

import pytest

from tests.streams import fold
from tests.ui.recorded import events_until
from tfmemtop.state import State
from tfmemtop.state.account import KINDS, Breakdown, MemoryPart, breakdowns


def recorded(name: str, t: float) -> State:
    return fold(events_until(name, t))


def all_of(state: State) -> list[Breakdown]:
    return [found for pid in state.processes for found in breakdowns(state, pid)]


@pytest.mark.parametrize(
    "name, t", [("h200-settings", 44.0), ("h200-settings", 125.0), ("h200-runs", 140.5), ("h200-four-cards", 20.0)]
)
def test_the_slices_of_a_gpu_add_up_to_the_drivers_total(name: str, t: float) -> None:
    found = all_of(recorded(name, t))
    assert found
    for one in found:
        assert one.account is not None and one.size == one.account.total
        assert all(part.size >= 0 for part in one.slices)


def test_what_is_in_use_is_divided_by_kind_where_kinds_were_counted() -> None:
    (undivided,) = all_of(recorded("h200-settings", 44.0))
    assert [part.part for part in undivided.slices] == [
        MemoryPart.CONTEXT,
        MemoryPart.IN_USE,
        MemoryPart.CACHED,
        MemoryPart.OUTSIDE,
    ]
    (divided,) = all_of(recorded("h200-runs", 140.5))
    sizes = {part.part: part.size for part in divided.slices}
    assert sizes[MemoryPart.OPTIMIZER] == pytest.approx(2 * sizes[MemoryPart.VARIABLES], rel=0.01)  # Adam's two copies
    assert divided.account is not None
    assert sum(sizes.get(part, 0) for part in (*KINDS, MemoryPart.OTHER_IN_USE)) == divided.account.in_use


def test_a_pool_on_the_cpu_is_in_use_and_cached() -> None:
    (found,) = (one for one in all_of(recorded("cpu-demo", 60.0)) if one.size)
    assert found.gpu is None and found.account is None
    assert found.slices[-1].part is MemoryPart.CACHED and found.size == 514 * 2**20
