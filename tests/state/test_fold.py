"""The state that the user sees follows from the events, and only from them."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from tests import streams as s
from tests.streams import GIB, MIB
from tfmemtop import events
from tfmemtop.state import State, apply
from tfmemtop.state.model import GONE_KEPT
from tfmemtop.state.pool_views import allocators
from tfmemtop.state.process_rows import processes
from tfmemtop.state.views import panels


def training(pool: int | None = None) -> list[events.Event]:
    return [
        s.session(),
        s.run(),
        s.device(),
        s.process(0.3, 100),
        s.process(0.3, 900, run=None, command="python other.py"),
        s.alive(1.0, 100, 900),
        s.hook(1.1, 100),
        s.effective(1.2, 100, limit=4 * GIB),
        s.device_reading(2.0, {100: 1634 * MIB, 900: 3 * GIB}),
        s.allocator(2.1, 100, in_use=140 * MIB, peak=908 * MIB, pool=pool),
    ]


def layers(state: State) -> dict[str, int]:
    return {layer.name: layer.size for layer in panels(state)[0].layers}


def test_a_process_has_a_row_on_each_gpu_with_what_is_there() -> None:
    stream = [
        *training(),
        s.device(1),
        s.device_reading(3.0, {100: 700 * MIB}, index=1),
        s.effective(3.1, 100, name="GPU:1", uuid="GPU-1"),
        s.allocator(3.2, 100, in_use=5 * MIB, name="GPU:1"),
    ]
    state = s.fold(stream)
    rows = {row.gpu: row for row in processes(state) if row.pid == 100}
    assert rows[0].in_use == 140 * MIB and rows[0].gpu_memory == 1634 * MIB
    assert rows[1].in_use == 5 * MIB and rows[1].gpu_memory == 700 * MIB


def test_what_a_run_held_at_most_is_of_one_card_at_one_time() -> None:
    later = [s.device(1), s.device_reading(3.0, {100: 700 * MIB}, index=1), s.device_reading(4.0, {100: 500 * MIB})]
    run = s.fold([*training(), *later]).run
    assert run and run.peak_process_total == 1634 * MIB


def test_two_logical_devices_on_one_card_sum_up_in_its_panel() -> None:
    stream = [
        *training(pool=1026 * MIB),
        s.effective(3.1, 100, name="GPU:1", uuid="GPU-0", limit=2 * GIB),
        s.allocator(3.2, 100, in_use=10 * MIB, pool=64 * MIB, name="GPU:1"),
    ]
    state = s.fold(stream)
    assert layers(state)["in use"] == 150 * MIB
    assert panels(state)[0].limit == 6 * GIB
    assert [row.device for row in allocators(state)] == ["GPU:0", "GPU:1"]


def test_when_the_script_ends_its_last_picture_stays() -> None:
    state = s.fold([*training(), events.RunEnd(t=9.0, run=1, exit_code=3, signal=None), s.alive(9.5, 900)])
    row = next(row for row in processes(state) if row.pid == 100)
    assert row.process.gone and row.peak == 908 * MIB


def test_the_script_has_ended_with_its_run_and_a_child_of_it_may_go_on() -> None:
    child = [s.process(0.4, 101, ppid=100), s.alive(1.05, 100, 101, 900), s.hook(1.15, 101)]
    ended = events.RunEnd(t=3.0, run=1, exit_code=0, signal=None)
    state = s.fold([*training(), *child, ended])  # a recording may end here
    assert {row.pid: row.process.gone for row in processes(state)} == {100: True, 101: False, 900: False}


def test_a_pid_used_anew_is_another_process() -> None:
    state = s.fold([*training(), s.process(50.0, 100, run=None, command="bash")])
    row = next(row for row in processes(state) if row.pid == 100)
    assert not row.process.hooked and row.command == "bash"


any_event = st.sampled_from(
    [
        *training(pool=1026 * MIB),
        s.alive(3.0),
        s.alive(3.0, 100),
        s.run(4.0, 2, 200),
        events.RunEnd(t=4.0, run=1, exit_code=0, signal=None),
        events.HookEnd(t=4.0, pid=100, reason=events.HookEnding.EXIT),
        events.OutOfMemory(t=4.0, pid=100, message="OOM"),
        s.device_reading(5.0, {100: None}),
        s.allocator(5.0, 100, in_use=0, name="CPU:0"),
    ]
)


@given(st.lists(any_event, max_size=40))
def test_events_in_any_order_fold_and_draw(stream: list[events.Event]) -> None:
    state = s.fold(stream)
    for panel in panels(state):
        assert all(layer.size >= 0 for layer in panel.layers)
    processes(state)
    allocators(state)


def test_a_failure_of_an_unknown_device_is_marked_where_the_script_has_a_pool() -> None:
    failure = events.OutOfMemory(t=4.0, pid=100, message="Out of memory while trying to allocate 3.00MiB.")
    state = s.fold([*training(), s.device(1), failure])
    assert {panel.key: panel.ran_out for panel in panels(state)} == {"gpu0": (4.0,), "gpu1": ()}


def cpu_history(state: State) -> list[tuple[int, ...] | None]:
    assert state.cpu_pool is not None
    return s.columns(state.cpu_pool.history, 8.0, 8, state.now)


def test_a_spike_between_two_readings_is_in_the_history() -> None:
    quiet = s.allocator(2.1, 100, in_use=100, pool=1000, name="CPU:0")
    spiky = msgspec.structs.replace(s.allocator(3.1, 100, in_use=100, pool=1000, name="CPU:0"), high=900)
    stream: list[events.Event] = [s.session(), s.run(), s.hook(1.1, 100), quiet, spiky]
    stream.append(s.allocator(4.1, 100, in_use=100, pool=1000, name="CPU:0"))
    assert [column and column[0] for column in cpu_history(s.fold(stream))[-3:]] == [100, 900, 100]


def test_a_spike_on_a_gpu_rises_above_what_was_in_use() -> None:
    spiky = msgspec.structs.replace(s.allocator(3.1, 100, in_use=140 * MIB, pool=1026 * MIB), high=1000 * MIB)
    state = s.fold([*training(pool=1026 * MIB), spiky])
    columns = s.columns(state.devices[0].history, 8.0, 8, state.now)
    assert columns[-1] is not None and columns[-1][:2] == (1000 * MIB, 1026 * MIB)
    assert columns[-1][-2] == 1634 * MIB
    assert layers(state)["in use"] == 140 * MIB


def test_pinned_host_memory_is_on_no_gpu() -> None:
    pinned = s.allocator(2.2, 100, in_use=GIB, peak=2 * GIB, pool=GIB, name="HOST:0")
    state = s.fold([*training(pool=1026 * MIB), pinned])
    assert layers(state) == layers(s.fold(training(pool=1026 * MIB)))
    assert state.run is not None and state.run.peak_in_use == 908 * MIB
    rows = {row.device: row for row in allocators(state)}
    assert rows["HOST:0"].gpu is None and rows["HOST:0"].pool == GIB and rows["GPU:0"].gpu == 0
    assert {row.in_use for row in processes(state) if row.pid == 100} == {140 * MIB}


def test_of_children_without_end_the_newest_are_kept() -> None:
    state = s.fold([s.session(), s.run(), s.process(0.2, 100)])
    for number in range(300):
        t, pid = 1.0 + number, 1000 + number
        for event in (s.process(t, pid, ppid=100), s.hook(t, pid), s.alive(t, 100, pid), s.alive(t + 0.5, 100)):
            apply(state, event)
    assert [*state.processes] == [100, *range(1300 - GONE_KEPT, 1300)]


def test_of_very_many_phases_each_name_keeps_its_highest() -> None:
    def phase(number: int, name: str, peak: int) -> events.ScriptPhase:
        return events.ScriptPhase(
            t=2.0, pid=100, number=number, name=name, epoch=number, began=1.0, ended=2.0, peaks={"GPU:0": peak}
        )

    state = s.fold([s.session(), s.run(), s.process(0.6, 100), s.hook(1.1, 100)])
    apply(state, phase(0, "evaluate", MIB))
    for number in range(1, 300):
        apply(state, phase(number, "fit", GIB if number == 7 else number))
    assert state.run is not None and len(state.run.phases) == events.PHASES_KEPT
    assert state.run.phase_peaks == {"evaluate": MIB, "fit": GIB}


def test_a_last_look_that_was_cut_short_does_not_replace_what_was_found_before() -> None:
    def looks(hidden: events.Unseen | None) -> str:
        found = events.Alike("trials[*].model", 40, None, "float32", "CPU:0", 64 << 20, "variables", 9)
        before = events.Census(t=5.0, pid=100, kinds={}, largest=[], tensors=0, alike=[found])
        last = msgspec.structs.replace(
            before,
            t=9.0,
            alike=[msgspec.structs.replace(found, holder="")],
            hidden=hidden,
            moment=events.CensusMoment.END,
        )
        return kept(before, last)

    def kept(*looks: events.Census) -> str:
        state = s.fold([s.session(), s.run(), s.process(0.6, 100), s.hook(1.1, 100), *looks])
        hooked = state.processes[100].hooked
        assert hooked is not None and hooked.look is not None
        return hooked.look.alike[0].holder

    assert looks(events.Unseen.LATE) == "trials[*].model"
    assert looks(None) == "", "it may have been let go of"
    found = events.Alike("answers", 40, None, "float32", "CPU:0", 64 << 20, "tensors", 9)
    before = events.Census(t=5.0, pid=100, kinds={}, largest=[], tensors=40, alike=[found])
    busy = msgspec.structs.replace(before, t=9.0, tensors=None, alike=[], hidden=events.Unseen.BUSY)
    assert kept(before, busy) == "answers", "the script was busy, so nothing was looked at"
    few = [events.Alike("loss", 1, None, "float32", "CPU:0", 4, "tensors")]
    one = msgspec.structs.replace(before, t=9.0, tensors=1, alike=few, hidden=events.Unseen.BUSY)
    assert kept(before, one) == "answers", "of many tensors, one was looked at"


def test_a_table_of_replays_stays_where_a_longer_trace_gives_none() -> None:
    table = events.Replayed(t=5.0, pid=100, device="GPU:0", events=40)
    slow = msgspec.structs.replace(table, t=9.0, unreplayed=events.Unreplayed.SLOW, count=700)

    def known(*answers: events.Replayed) -> events.Replayed | None:
        hooked = s.fold([*training(), *answers]).processes[100].hooked
        return hooked.windows["GPU:0"].replayed if hooked else None

    longer = msgspec.structs.replace(table, t=9.0, events=60)
    assert known(table, slow) is table and known(table, longer) is longer and known(slow, table) is table
