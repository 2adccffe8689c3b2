"""Sums that are updated at each reading equal the sums of all readings, whichever processes come and go."""

from hypothesis import given
from hypothesis import strategies as st

from tests import streams as s
from tfmemtop import events
from tfmemtop.state import State, apply
from tfmemtop.state.lookup import allocators_on, cpu_pool_readings, of_run, pool_use

PIDS = (100, 200, 300)
SIZES = st.integers(0, 5)


def effective(pid: int, gpu: int | None) -> events.Effective:
    """Return the event that process *pid* has its first GPU device on card *gpu*. ``None``: the card is not known."""
    uuid = None if gpu is None else f"GPU-{gpu}"
    return events.Effective(
        t=0.0, pid=pid, device="GPU:0", physical=gpu, uuid=uuid, growth=None, limit=None, allocator="bfc"
    )


def reading(pid: int, name: str, in_use: int, pool: int | None) -> events.Allocator:
    return s.allocator(0.0, pid, in_use, in_use, pool, name)


HELD = st.dictionaries(st.sampled_from(PIDS), SIZES)
STREAMS = st.lists(
    st.one_of(
        st.builds(reading, st.sampled_from(PIDS), st.sampled_from(["GPU:0", "CPU:0"]), SIZES, st.none() | SIZES),
        st.builds(reading, st.sampled_from(PIDS), st.sampled_from(["GPU:0", "CPU:0"]), SIZES, SIZES),
        st.builds(effective, st.sampled_from(PIDS), st.sampled_from([0, 1, None])),
        st.builds(lambda pid, run: s.process(0.0, pid, run), st.sampled_from(PIDS), st.sampled_from([1, 2, None])),
        st.builds(lambda pid: s.hook(0.0, pid), st.sampled_from(PIDS)),
        st.builds(lambda pid: events.HookEnd(t=0.0, pid=pid, reason=events.HookEnding.EXIT), st.sampled_from(PIDS)),
        st.builds(lambda pids: s.alive(0.0, *pids), st.sets(st.sampled_from(PIDS))),
        st.builds(lambda number: s.run(0.0, number), st.sampled_from([1, 2])),
        st.builds(
            s.device_reading, st.just(0.0), st.dictionaries(st.sampled_from(PIDS), SIZES), st.sampled_from([0, 1])
        ),
        st.builds(lambda: s.device(2)),
    ),
    max_size=40,
)


@given(STREAMS)
def test_the_sums_that_are_kept_are_those_of_all_readings(stream: list[events.Event]) -> None:
    state = State()
    begin: list[events.Event] = [s.session(), s.device(0), s.device(1), s.run(), *(s.process(0.2, pid) for pid in PIDS)]
    begin += [s.hook(0.3, pid) for pid in PIDS]
    begin += [effective(pid, gpu) for pid, gpu in zip(PIDS, (0, 0, 1), strict=True)]
    begin += [reading(pid, name, 1, 2) for pid in PIDS for name in ("GPU:0", "CPU:0")]
    for event in [*begin, *stream]:
        apply(state, event)
        assert not state.notices
        places = [(device.sums, allocators_on(state, device)) for device in state.devices.values()]
        if state.cpu_pool:
            places.append((state.cpu_pool.sums, cpu_pool_readings(state)))
        for kept, readings in places:
            if kept is not None and kept.shape == state.shape:
                assert (kept.all.in_use, kept.all.pool) == pool_use(readings)
                ours = [one for one in readings if of_run(state, one.pid)]
                assert (kept.run.in_use, kept.run.pool) == pool_use(ours)
