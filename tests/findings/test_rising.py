"""Which series of readings count as memory that rises, and when the script's objects are looked at for it."""

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.findings.situations import begin, effective, reading
from tests.findings.test_keepers import look
from tests.streams import GIB, MIB
from tfmemtop import events
from tfmemtop.findings.rising import may_rise, merged, rises
from tfmemtop.findings.rules.leaks import WindowWishes
from tfmemtop.state.history import UseWindow


def test_what_rises_in_a_few_large_steps_is_looked_into_and_again_once_it_has_doubled() -> None:
    def looks(at: float | None, models: int) -> list[int]:
        """After a minute, a model is made every 10 s. The script's objects were looked at *at* then."""
        rise = [reading(3.0 + i, 64 * MIB * max(1, i // 10 - 5), pool=4 * GIB) for i in range(60 + 10 * models)]
        names = [f"sequential_{number}/dense_{number}/kernel" for number in range(models)]
        variables = [events.Variable(name, "variables", [4096, 4096], "float32", "GPU:0", 64 * MIB) for name in names]
        told = events.Census(t=rise[-1].t, pid=100, kinds={}, largest=variables)
        looked = [] if at is None else [replace(look(variables=variables), t=at)]
        stream = sorted([*rise, told, *looked], key=lambda event: event.t)
        return WindowWishes().due([*begin(), effective(True), *stream])

    assert looks(at=None, models=8) == [100]
    assert looks(at=110.0, models=8) == []
    assert looks(at=110.0, models=14) == [100]


STEPS = st.lists(st.tuples(st.integers(-2, 4), st.integers(0, 5)), max_size=200)


@given(STEPS, st.sampled_from([1, 3, 6, 12]))
def test_the_look_at_three_windows_passes_over_no_rise(steps: list[tuple[int, int]], times: int) -> None:
    low, windows = 100, []
    for at, (step, more) in enumerate(steps):
        low += step
        windows.append(UseWindow(10.0 * at, low, low + more))
    whole = merged(windows, times)
    if whole and rises([one.low for one in whole]) and rises([one.high for one in whole]):
        assert may_rise(windows, times)
