"""The parts of a process's memory add up to its total, without a remainder.

The slices of a breakdown add up, in recordings of real runs.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import streams as s
from tests.findings.situations import begin, effective, initialised, reading
from tests.streams import GIB, MIB, fold
from tests.ui.shown import events_until
from tfmemtop import events
from tfmemtop.reports.account import others_say, why_they_differ
from tfmemtop.state import State
from tfmemtop.state.account import USUAL_CONTEXT, Account, Breakdown, MemoryPart, accounts, breakdowns

UNTOLD = events.SharesMissing.NOT_TOLD_IN_CONTAINER


def account(*stream: events.Event) -> Account:
    (found,) = accounts(s.fold([*begin(), *stream]), 100)
    return found


MEASURED: list[events.Event] = [
    effective(True),
    reading(2.5, 256, 256, pool=2 * MIB),
    s.device_reading(2.6, {100: 522 * MIB}),  # the context, and TensorFlow's first region
    reading(2.7, 256, 256, pool=2 * MIB),  # still nothing computed
    reading(4.0, 140 * MIB, 908 * MIB, pool=1026 * MIB),
    s.device_reading(4.1, {100: 1634 * MIB}),
]


def test_the_h200s_measured_layers_come_out() -> None:
    found = account(*MEASURED)
    assert (found.total, found.context, found.in_use, found.cached, found.outside) == (
        1634 * MIB,
        520 * MIB,
        140 * MIB,
        886 * MIB,
        88 * MIB,
    )
    assert found.context_exact
    assert list(others_say(found))[1] == (
        "TensorFlow",
        'current 140.0 MiB, peak 908.0 MiB by get_memory_info("GPU:0")',
    )
    assert "counts 1.5 GiB more" in why_they_differ(found)
    assert "886.0 MiB are cached in the pool, and 608.0 MiB are CUDA's context" in why_they_differ(found)


def test_an_account_is_of_one_moment_also_while_a_pool_grows_and_while_the_process_ends() -> None:
    at_once = account(*MEASURED)
    grown = account(*MEASURED, reading(4.9, 2 * GIB, pool=4 * GIB))
    assert grown == at_once and grown.t == 4.1
    # Its pool has gone, and what other libraries hold is still there.
    ending = account(*MEASURED, s.device_reading(5.1, {100: 892 * MIB}))
    assert (ending.total, ending.outside, ending.t) == (1634 * MIB, 88 * MIB, 4.1)
    ended = events.HookEnd(t=5.0, pid=100, reason=events.HookEnding.EXIT)
    assert account(*MEASURED, ended, s.device_reading(5.1, {100: 1234 * MIB})) == ending


def test_a_context_that_was_not_seen_alone_is_marked() -> None:
    found = account(*MEASURED[3:])
    assert not found.context_exact and found.context == USUAL_CONTEXT


def test_a_context_is_exact_only_where_nothing_was_computed_on_either_side_of_nvmls_reading() -> None:
    before, total = reading(2.5, 1792, 1792, pool=2 * MIB), s.device_reading(2.6, {100: 522 * MIB})
    assert account(effective(True), before, total, reading(2.7, 1792, 1792, pool=2 * MIB)).context_exact
    # An operation of a few kilobytes loads kernels, and gives cuBLAS its workspace.
    worked = s.device_reading(2.6, {100: 590 * MIB})
    found = account(effective(True), before, worked, reading(2.7, 1792, 41_984, pool=2 * MIB))
    assert not found.context_exact and found.context == USUAL_CONTEXT
    # NVML was read before TensorFlow had initialised its devices: only a part of the context existed.
    early = s.device_reading(1.9, {100: 300 * MIB})
    assert not account(early, effective(True), before, reading(2.7, 1792, 1792, pool=2 * MIB)).context_exact


def test_a_context_is_measured_without_the_probe_where_the_pool_grows_from_its_first_region() -> None:
    total, after = s.device_reading(2.6, {100: 522 * MIB}), reading(2.7, 1792, 1792)
    found = account(effective(True), total, after)
    assert found.context_exact and found.context == 520 * MIB
    assert not account(effective(False), total, after).context_exact
    assert not account(effective(True, allocator="cuda_malloc_async"), total, after).context_exact


def test_the_devices_may_be_known_only_after_nvmls_reading() -> None:
    made, total = initialised(t=2.0), s.device_reading(2.01, {100: 522 * MIB})
    found = account(made, total, effective(True, t=2.02), reading(2.03, 1792, 1792))
    assert found.context_exact and found.context == 520 * MIB


def test_a_context_is_at_most_what_was_ever_seen_beside_the_pools() -> None:
    late: list[events.Event] = [
        effective(True),
        reading(3.0, GIB, GIB, pool=GIB),
        s.device_reading(3.1, {100: GIB + 300 * MIB}),
    ]
    found = account(*late)
    assert (found.context, found.context_exact, found.outside) == (300 * MIB, False, 0)


def test_without_the_probe_cached_and_outside_are_one() -> None:
    found = account(reading(3.0, 140 * MIB, 908 * MIB), s.device_reading(4.1, {100: 1634 * MIB}))
    assert found.outside is None and found.rest == (1634 - 520 - 140) * MIB
    assert why_they_differ(found).endswith("what is cached, CUDA's context and libraries.")


def test_two_logical_devices_share_one_total() -> None:
    second: list[events.Event] = [effective(True, name="GPU:1"), reading(4.2, 10 * MIB, pool=64 * MIB, name="GPU:1")]
    found = account(*MEASURED, *second, s.device_reading(4.3, {100: 1698 * MIB}))
    assert [pool.device for pool in found.pools] == ["GPU:0", "GPU:1"]
    assert (found.in_use, found.cached, found.outside) == (150 * MIB, 940 * MIB, 88 * MIB)


def test_a_process_without_our_hook_has_a_total_and_no_more() -> None:
    (found,) = accounts(s.fold([*begin(), s.device_reading(3.0, {900: GIB})]), 900)
    assert found.total == GIB and found.context is None
    assert why_they_differ(found) == ""


def test_where_the_driver_names_no_processes_the_total_is_not_known() -> None:
    found = account(reading(3.0, 140 * MIB), s.device_reading(4.1, {100: None}, missing=UNTOLD))
    assert found.total is None and why_they_differ(found) == ""


sizes = st.integers(0, 200 * GIB)


@given(total=sizes, in_use=sizes, pool=st.none() | sizes, first=sizes)
def test_the_parts_always_add_up(total: int, in_use: int, pool: int | None, first: int) -> None:
    found = account(
        reading(2.5, 0, 0, pool=0 if pool is not None else None),
        s.device_reading(2.6, {100: first}),
        reading(3.0, in_use, pool=pool),
        s.device_reading(3.1, {100: total}),
    )
    assert found.total is not None and found.context is not None
    left = found.outside if found.outside is not None else found.rest
    assert left is not None and left >= 0 and found.context >= 0
    assert found.context + found.in_use + (found.cached or 0) + left == found.total


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


def test_a_pool_on_the_cpu_is_in_use_and_cached() -> None:
    (found,) = (one for one in all_of(recorded("cpu-demo", 60.0)) if one.size)
    assert found.gpu is None and found.account is None
    assert found.slices[-1].part is MemoryPart.CACHED and found.size == 514 * 2**20
