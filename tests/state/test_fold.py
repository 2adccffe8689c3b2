"""What the user sees follows from the events, and only from them."""

from hypothesis import given
from hypothesis import strategies as st

from tests import streams as s
from tests.streams import GIB, MIB
from tfmemtop import events
from tfmemtop.state import State, apply
from tfmemtop.state.views import allocators, panels, processes, run_status, settings_in_effect


def training(pool: int | None = None) -> list[events.AnyEvent]:
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
    return {layer.label: layer.size for layer in panels(state)[0].layers}


def test_layers_of_a_process_total_add_up() -> None:
    # The H200's measured figures: 1634 MiB in all, a pool of 1026, of which 140 in use.
    found = layers(s.fold(training(pool=1026 * MIB)))
    assert found["in use"] == 140 * MIB
    assert found["cached"] == 886 * MIB
    assert found["context+outside"] == (1634 - 1026) * MIB
    assert found["others"] == 3 * GIB
    assert sum(found.values()) == 140 * GIB - 615 * MIB


def test_without_a_pool_figure_nothing_is_called_cached() -> None:
    found = layers(s.fold(training(pool=None)))
    assert "cached" not in found
    assert found["rest of process"] == (1634 - 140) * MIB


def test_where_the_driver_names_no_processes_the_rest_is_not_called_the_scripts() -> None:
    stream = [*training(), s.device_reading(3.0, {100: None}, missing="inside a container")]
    state = s.fold(stream)
    assert "rest+others" in layers(state)
    assert panels(state)[0].note == "inside a container"
    assert next(row for row in processes(state) if row.pid == 100).gpu_memory is None


def test_a_process_has_a_row_on_each_gpu_with_what_is_there() -> None:
    stream = [
        *training(),
        s.device(1),
        s.device_reading(3.0, {100: 700 * MIB}, index=1),
        s.effective(3.1, 100, name="GPU:1", uuid="GPU-1"),
        s.allocator(3.2, 100, in_use=5 * MIB, name="GPU:1"),
    ]
    rows = {row.gpu: row for row in processes(s.fold(stream)) if row.pid == 100}
    assert rows[0].in_use == 140 * MIB and rows[0].gpu_memory == 1634 * MIB
    assert rows[1].in_use == 5 * MIB and rows[1].gpu_memory == 700 * MIB


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


def test_the_peaks_of_a_run_stay_when_the_next_begins() -> None:
    stream = [
        *training(),
        events.RunEnd(t=9.0, run=1, exit_code=None, signal=15),
        s.alive(9.5, 900),
        s.run(t=10.0, number=2, pid=200),
        s.process(10.1, 200, run=2),
        s.hook(10.2, 200),
        s.allocator(10.3, 200, in_use=MIB),
    ]
    state = s.fold(stream)
    first, second = state.runs
    assert (first.peak_in_use, first.peak_process_total, first.signal) == (908 * MIB, 1634 * MIB, 15)
    assert second.peak_in_use == MIB
    assert 100 not in state.processes


def test_when_the_script_ends_its_last_picture_stays() -> None:
    state = s.fold([*training(), events.RunEnd(t=9.0, run=1, exit_code=3, signal=None), s.alive(9.5, 900)])
    row = next(row for row in processes(state) if row.pid == 100)
    assert row.gone and row.peak == 908 * MIB
    status = run_status(state)
    assert status is not None and status.phase == "ended" and status.elapsed_s == 9.0 - 0.1


def test_settings_in_effect_are_those_of_tensorflow_once_it_says_so() -> None:
    assert settings_in_effect(s.fold(training())) == ["growth on", "limit 4.0 GiB", "bfc"]


def test_a_process_known_first_through_its_hook_is_one_row() -> None:
    state = s.fold(
        [s.session(), s.run(), s.hook(0.5, 100), s.allocator(0.6, 100, MIB), s.process(1.0, 100), s.alive(1.1, 100)]
    )
    (row,) = processes(state)
    assert row.in_use == MIB and row.user == "ada"


def test_a_pid_used_anew_is_another_process() -> None:
    state = s.fold([*training(), s.process(50.0, 100, run=None, command="bash")])
    row = next(row for row in processes(state) if row.pid == 100)
    assert not row.hooked and row.command == "bash"


def test_output_kept_is_bounded_and_the_newest() -> None:
    state = s.fold([s.session(), s.run()])
    for number in range(300):
        apply(state, events.Output(t=float(number), run=1, text=f"{number:05}" * 1000))
    assert state.output[-1].text.endswith("00299")
    assert sum(len(chunk.text) for chunk in state.output) <= 256 * 1024


any_event = st.sampled_from(
    [
        *training(pool=1026 * MIB),
        s.alive(3.0),
        s.alive(3.0, 100),
        s.run(4.0, 2, 200),
        events.RunEnd(t=4.0, run=1, exit_code=0, signal=None),
        events.HookEnd(t=4.0, pid=100, reason="exit"),
        events.OutOfMemory(t=4.0, pid=100, message="OOM"),
        s.device_reading(5.0, {100: None}),
        s.allocator(5.0, 100, in_use=0, name="CPU:0"),
    ]
)


@given(st.lists(any_event, max_size=40))
def test_events_in_any_order_fold_and_draw(stream: list[events.AnyEvent]) -> None:
    state = s.fold(stream)
    for panel in panels(state):
        assert all(layer.size >= 0 for layer in panel.layers)
    processes(state)
    allocators(state)
    run_status(state)
