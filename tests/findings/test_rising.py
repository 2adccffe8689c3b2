"""Which series of readings count as memory that rises, and when the script's objects are looked at for it."""

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests import windows as w
from tests.findings.situations import begin, effective, found, reading
from tests.findings.test_keepers import actions, group, hooked, look, part, stock
from tests.streams import GIB, MIB
from tfmemtop import events
from tfmemtop.findings.cause import Cause, Key
from tfmemtop.findings.remedy import Action
from tfmemtop.findings.review import review, verdict
from tfmemtop.findings.rising import (
    comes_again,
    has_stopped,
    larger_each_time,
    may_rise,
    merged,
    of_rounds,
    risen,
    rises,
    settled,
)
from tfmemtop.findings.rules.leaks import Leak, WindowWishes
from tfmemtop.findings.scene import Need, Scene
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


def test_memory_that_rose_has_stopped_once_it_pauses_for_longer_than_before() -> None:
    def stopped(pause: int, flat: int) -> bool:
        """It rose for a minute, but for *pause* seconds in every twenty, and has been *flat* for some time."""
        rise = [MIB * (second - pause * (second // 20)) for second in range(60) if second % 20 >= pause or not second]
        at = [second for second in range(60) if second % 20 >= pause or not second]
        lows = {**dict(zip(at, rise, strict=True)), **{60 + i: rise[-1] for i in range(flat)}}
        held, windows = 0, []
        for second in range(60 + flat):
            held = max(held, lows.get(second, 0))
            windows.append(UseWindow(float(second), held, held + MIB))
        return has_stopped(windows, None)

    jumps = [UseWindow(float(second), GIB * (second // 15), GIB * (second // 15) + MIB) for second in range(70)]
    assert not has_stopped(jumps, None), "a model that is made every 15 s, as large as the others"
    assert [stopped(pause=0, flat=flat) for flat in (0, 4, 12)] == [False, False, True]
    assert [stopped(pause=8, flat=flat) for flat in (0, 8, 24)] == [False, False, True]


def test_what_rises_in_jumps_goes_on_until_a_pause_is_much_longer_than_before() -> None:
    def again(*jumps: int, now: int) -> bool:
        """Memory rises by 64 MiB at the seconds *jumps*."""
        use = [MIB + 64 * MIB * sum(jump <= second for jump in jumps) for second in range(now + 1)]
        return comes_again([UseWindow(float(second), size, size) for second, size in enumerate(use)])

    assert again(10, 30, 50, now=85), "a model every 20 s, the next of which is late"
    assert not again(10, 30, 50, now=95)
    assert not again(10, 12, 14, 16, 40, now=42), "a buffer that was full, and a jump by chance"
    assert not again(10, 12, now=13), "too few to tell"


def test_a_buffer_that_is_full_is_not_told_as_rising() -> None:
    def told(full_after: int, seconds: int) -> bool:
        use = [GIB + 16 * MIB * min(i // 10, full_after) for i in range(seconds * 10)]
        stream = [reading(3.0 + i / 10, size, pool=4 * GIB, limit=4 * GIB) for i, size in enumerate(use)]
        return Leak in found(begin(), effective(True), stream)

    assert told(full_after=40, seconds=39) and not told(full_after=40, seconds=47)


def test_a_cache_whose_size_varies_once_it_is_full_is_not_told_as_rising() -> None:
    def told(seconds: int) -> bool:
        use = [min(4 * MIB * i, 120 * MIB + (i % 7) * MIB + i // 4 * MIB) for i in range(seconds)]
        stream = [reading(3.0 + i / 2, GIB // 8 + use[i // 2], pool=4 * GIB, limit=4 * GIB) for i in range(2 * seconds)]
        return Leak in found(begin(), effective(True), stream)

    assert told(32) and not any(told(seconds) for seconds in range(46, 60))


def test_a_rise_that_comes_once_an_epoch_is_told_within_a_minute() -> None:
    def told(epoch_s: int, kept: int, seconds: int = 60) -> bool:
        each = [GIB + kept * (i // (10 * epoch_s)) + MIB * (i % 3) for i in range(seconds * 10)]
        stream = [reading(3.0 + i / 10, size, pool=4 * GIB, limit=4 * GIB) for i, size in enumerate(each)]
        return Leak in found(begin(), effective(True), stream)

    assert told(5, 16 * MIB) and told(8, 24 * MIB, seconds=80)
    assert all(told(5, 8 * MIB, seconds) for seconds in range(90, 100)), "also in the midst of an epoch"
    assert not told(25, 128 * MIB), "a few models, or phases"
    assert not told(5, 2 * MIB), "so little may end by itself"


def test_a_collection_that_each_round_fills_and_frees_does_not_keep_rising() -> None:
    def told(rounds_s: int) -> bool:
        use = [GIB + 32 * MIB * (i // 10 % rounds_s) for i in range(779)]  # the last round is nearly over
        stream = [reading(3.0 + i / 10, size, pool=4 * GIB, limit=4 * GIB) for i, size in enumerate(use)]
        many = look(group("collected", 24, 32 * MIB * (rounds_s - 1)))
        cause = verdict(review([*begin(), effective(True), *stream, replace(many, t=80.8)], alive=True))
        return cause is not None and cause.key is Key.TENSORS_KEPT

    assert told(rounds_s=78) and not told(rounds_s=13)


def test_what_rounds_free_is_no_rise_while_the_newest_round_holds_it() -> None:
    """Python frees objects in a cycle now and then: a look at the top of a tooth must not tell more than one below."""

    def rose(seconds: int) -> int:
        windows = [UseWindow(i, (100 + i // 12 + 3 * (i % 6)) * MIB, 200 * MIB) for i in range(seconds)]
        return risen(settled(windows, of_rounds(windows)), 0.5) // MIB

    assert len({rose(seconds) for seconds in range(60, 66)}) <= 2, "one more at most, as its low points rise by so much"
    steady = [UseWindow(i, (100 + 2 * i) * MIB, 400 * MIB) for i in range(60)]
    assert of_rounds(steady) == 1.0, "a steady rise frees nothing"


def test_memory_that_rose_in_a_recording_that_breaks_off_is_told_in_the_past() -> None:
    stream = [reading(3.0 + i / 10, GIB + 2 * MIB * i, pool=4 * GIB, limit=4 * GIB) for i in range(400)]
    texts = [verdict(review([*begin(), effective(True), *stream], alive=alive)) for alive in (True, False)]
    assert ["is rising" in one.text for one in texts if one is not None] == [True, False]


def test_what_is_larger_in_each_step_is_told_with_the_tensor_that_the_script_lets_grow() -> None:
    def window(rows: list[int], number: int = 1) -> events.Holders:
        steps = w.Window(number=number)
        for each in rows:
            steps.allocate(each * 4096, "ConcatV2", shape=[each, 1024], dtype="float32")
        return steps.done(t=20.0 + number)

    def cause(
        *rows: list[int], name: str = "bank.keys", share: int = 500, weights: int = 0, found: int = 0
    ) -> Cause | None:
        grown = replace(part("ConcatV2", share * MIB, shape=(9000, 1024)), python_name=name)
        kernel = events.Variable("dense/kernel", "trainable", [weights, 1024], "float32", "GPU:0", weights * 4096)
        own = events.Variable("bank.keys", "tensors", [found, 1024], "float32", "GPU:0", found * 4096)
        there = stock(look(variables=[kernel, own]), grown)
        process = hooked(*(window(each, number) for number, each in enumerate(rows, 1)))
        return larger_each_time(Scene(there, Need(0, None, False, 0), process))

    growing = cause([*range(1000, 9000, 1000), 9000])
    assert growing is not None and (growing.key, growing.holder) == (Key.GROWN_BY_COPYING, "bank.keys")
    assert "[1000,1024]" in growing.text and actions(growing) == [Action.CONCAT_ON_HOST]
    nameless = cause([*range(1000, 9000, 1000), 9000], name="")
    assert nameless is not None and actions(nameless) == [Action.BOUND_REQUEST]
    assert cause([*range(1000, 9000, 1000), 9000], name="", found=5000) == growing, "the search found an earlier one"
    assert cause([*range(1000, 9000, 1000), 9000, 9500]) == growing, "the window has gone on"
    assert cause([*range(1000, 9000, 1000), 9000], share=499) is None, "other memory is more"
    assert cause([*range(2000, 8000, 1000), 9000]) is None, "so few may be layers"
    assert cause([*range(1000, 9000, 1000), 2000, 9000]) is None, "batches of all lengths do not grow"
    assert cause([*range(1000, 5000, 1000)], [*range(4000, 10000, 1000)]) == growing, "each window has few of them"
    assert cause([*range(2000, 10000, 1000)], [*range(1000, 9000, 1000)]) is None
    with_gradients = [*range(1000, 5000, 1000), 64, *range(5000, 10000, 1000), 64]
    assert cause(with_gradients) is None and cause(with_gradients, weights=64) == growing
