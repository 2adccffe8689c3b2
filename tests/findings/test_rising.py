"""Which series of readings count as a steady rise."""

from hypothesis import given
from hypothesis import strategies as st

from tfmemtop.findings.rising import merged, merged_if_higher, rises
from tfmemtop.state.trend import UseWindow

STEPS = st.lists(st.tuples(st.integers(-2, 4), st.integers(0, 5)), max_size=200)


@given(STEPS, st.sampled_from([1, 3, 6, 12]))
def test_the_look_at_three_windows_passes_over_no_rise(steps: list[tuple[int, int]], times: int) -> None:
    low, windows = 100, []
    for at, (step, more) in enumerate(steps):
        low += step
        windows.append(UseWindow(10.0 * at, low, low + more))
    whole, found = merged(windows, times), merged_if_higher(windows, times)
    assert found in ([], whole)
    if whole and rises([one.low for one in whole]) and rises([one.high for one in whole]):
        assert found == whole
