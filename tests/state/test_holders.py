"""The rows of a window add up to the byte, and have the names that a reader of the model would give them."""

from itertools import accumulate

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests import streams as s
from tests import windows as w
from tests.streams import MIB
from tfmemtop import events
from tfmemtop.state.attribution import Kind
from tfmemtop.state.holders import By, Moment, Standing, course, slices, standing
from tfmemtop.state.model import Hooked


def hooked(*more: events.Event) -> Hooked:
    """Return a process with the census of the model."""
    stream = [s.session(), s.run(), s.process(0.6, 100), s.hook(1.1, 100), w.census(), *more]
    state = s.fold(stream)
    found = state.processes[100].hooked
    assert found is not None
    return found


def adds_up(found: Standing) -> bool:
    return sum(row.bytes for row in found.holders) + found.unknown == found.total and all(
        sum(part.bytes for part in row.parts) == row.bytes and sum(part.count for part in row.parts) == row.count
        for row in found.holders
    )


def test_a_step_by_layer() -> None:
    window = w.step().done()
    found = standing(window, hooked(), By.LAYER)
    assert adds_up(found) and found.total == window.peak and found.unknown == 0
    rows = {row.name or row.kind.value: row for row in found.holders}
    up = {(part.kind, part.kept): part.bytes for part in rows["up"].parts if part.kind is not Kind.OPTIMIZER}
    assert up == {(Kind.VARIABLES, False): w.SIZE, (Kind.GRADIENTS, False): w.SIZE, (Kind.ACTIVATIONS, True): w.SIZE}
    slots = [part for part in rows["up"].parts if part.kind is Kind.OPTIMIZER]
    assert sorted(part.python_name for part in slots) == [
        "adam/sequential_up_kernel_momentum",
        "adam/sequential_up_kernel_velocity",
    ]
    assert rows["optimizer"].bytes == 2 * w.SIZE  # its temporaries


def test_the_slots_of_mixed_precision_belong_to_their_layer() -> None:
    for optimizer in ("adam", "loss_scale_optimizer/adam"):
        slot = w.variable(f"{optimizer}/sequential_up_kernel_momentum", "optimizer", address=w.BASE)
        census = events.Census(t=9.9, pid=100, kinds={}, largest=[w.variable("sequential/up/kernel"), slot])
        window = w.Window()
        window.has(w.SIZE, "Fill", window=1)
        window.allocate(MIB, f"{w.CALL}sequential_1/up_1/Relu")
        rows = {row.name: row.kind for row in standing(window.done(), hooked(census), By.LAYER).holders}
        assert rows == {"up": Kind.OPTIMIZER}


def test_variables_made_after_a_window_was_opened_are_known_while_it_goes_on() -> None:
    """The window of a run's start is read while it goes on. At its opening there was no variable yet."""
    opened = events.Census(t=1.2, pid=100, kinds={}, largest=[], moment=events.CensusMoment.OPENED, window=1)
    window = w.Window()
    made = [window.allocate(w.SIZE, f"{w.CALL}adam/AssignSubVariableOp", shape=[1024, 1024]) for _ in range(6)]
    window.free(window.allocate(w.SIZE, f"{w.CALL}adam/Sqrt", shape=[1024, 1024]))
    found = standing(window.done(opened=events.Opened.START), hooked(opened, w.census()), By.KIND)
    sizes = {row.kind: row.bytes for row in found.holders}
    assert len(made) == 6 and sizes == {Kind.VARIABLES: 2 * w.SIZE, Kind.OPTIMIZER: 5 * w.SIZE}


def test_variables_that_a_failed_compiled_step_was_given_are_known_though_it_has_freed_them() -> None:
    ended = msgspec.structs.replace(w.census(), moment=events.CensusMoment.END, window=1)
    window = w.Window()
    given = [window.has(w.SIZE, "AddV2") for _ in range(6)]
    window.allocate(w.SIZE, "")
    window.free(given[0])
    found = standing(window.done(opened=events.Opened.START), hooked(ended), By.KIND, 0)
    assert {row.kind: row.bytes for row in found.holders}[Kind.VARIABLES] == 2 * w.SIZE


def test_variables_that_lie_where_something_older_was_are_known_after_a_failure() -> None:
    ended = replace(w.census(), moment=events.CensusMoment.END, window=1)
    window = w.Window()
    older, *_ = (window.has(w.SIZE, "Relu") for _ in range(6))
    window.free(older)
    made = window.allocate(w.SIZE, "AddV2")
    window.spans[made] = (window.spans[made][0], window.spans[older][1], *window.spans[made][2:])
    found = standing(window.done(opened=events.Opened.START), hooked(ended), By.KIND, window.event - 1)
    assert {row.kind: row.bytes for row in found.holders} == {Kind.VARIABLES: 2 * w.SIZE, Kind.OPTIMIZER: 4 * w.SIZE}


def test_what_cudnn_tries_its_algorithms_with_is_workspace() -> None:
    """As in the first step of ResNet-50 on an H100: no region, no shape, and far more than the gradient."""
    window, scope = w.Window(), f"{w.CALL}gradient_tape/conv5_block3_3_conv/convolution/Conv2DBackpropFilter"
    window.allocate(8 * MIB, scope, shape=[512, 2048], dtype="float32")
    window.free(window.allocate(2454 * MIB, scope, region=""))
    rows = {row.kind: row.bytes for row in standing(window.done(), hooked(), By.KIND).holders}
    assert rows == {Kind.GRADIENTS: 8 * MIB, Kind.WORKSPACE: 2454 * MIB}


def test_a_sum_amid_the_backward_pass_is_one_of_gradients() -> None:
    window = w.Window()
    names = (
        f"{w.CALL}AddN",
        f"{w.CALL}sequential_1/up_1/Relu",
        f"{w.BACK}up_1/ReluGrad",
        f"{w.CALL}AddN_1/tmp_var_zeros",
    )
    for operation in names:
        window.allocate(MIB, operation)
    rows = {row.kind: row.bytes for row in standing(window.done(), hooked(), By.KIND).holders}
    assert rows == {Kind.ACTIVATIONS: 2 * MIB, Kind.GRADIENTS: 2 * MIB}


def test_what_is_freed_before_the_backward_pass_is_not_kept() -> None:
    window = w.step().done()
    at = standing(window, hooked(), By.LAYER, 3)
    parts = {part.operation.rpartition("/")[2]: part for row in at.holders for part in row.parts}
    assert not parts["mul"].kept and parts["BiasAdd"].kept and parts["Relu"].kept


def test_the_course_is_what_stands_at_each_moment() -> None:
    window = w.step().done()
    moments = course(window, hooked())
    assert moments[0].event == -1 and moments[0].total == window.before
    assert max(moment.total for moment in moments) == window.peak == moments[window.peak_at + 1].total
    for moment in moments:
        found = standing(window, hooked(), By.KIND, moment.event)
        assert found.total == moment.total == sum(moment.by_kind.values())
        assert {row.kind: row.bytes for row in found.holders} == {
            kind: size for kind, size in moment.by_kind.items() if size and kind is not Kind.UNKNOWN
        }


def test_a_collection_of_which_few_addresses_are_listed_has_what_the_same_operation_made() -> None:
    window = w.Window()
    frames = [window.allocate(MIB, "RealDiv", shape=[MIB // 4], dtype="float32") for _ in range(12)]
    window.allocate(MIB, "Relu", shape=[MIB // 4], dtype="float32")
    listed = b"".join((w.BASE + MIB * place).to_bytes(8, "little") for place in frames[:4])
    memory = events.Alike("memory", 11, [MIB // 4], "float32", "GPU:0", 11 * MIB, packed=listed)
    look = events.Census(t=9.9, pid=100, kinds={}, largest=[], tensors=11, alike=[memory])
    rows = standing(window.done(), hooked(look), By.OPERATION).holders
    assert {row.name: row.count for row in rows} == {"memory": 11, "RealDiv": 1, "Relu": 1}


def test_tensors_of_eager_operations_to_which_no_path_is_known_have_the_operation() -> None:
    window = w.Window()
    for operation in ("Relu", "Relu", "BiasAdd"):
        window.allocate(MIB, operation, shape=[MIB // 4], dtype="float32")
    listed = b"".join((w.BASE + MIB * place).to_bytes(8, "little") for place in range(3))
    taped = events.Alike("", 3, [MIB // 4], "float32", "GPU:0", 3 * MIB, packed=listed)
    look = events.Census(t=9.9, pid=100, kinds={}, largest=[], tensors=3, alike=[taped])
    rows = standing(window.done(), hooked(look), By.LAYER).holders
    assert {(row.name, row.kind, row.count) for row in rows} == {
        ("Relu", Kind.TENSORS, 2),
        ("BiasAdd", Kind.TENSORS, 1),
    }


def test_variables_that_a_census_has_no_room_to_list_are_known_by_their_shape_and_their_bytes() -> None:
    window = w.Window()
    for operation, count in (("Fill", 12), ("AddV2", 3), ("Relu", 1)):
        for _ in range(count):
            window.allocate(w.SIZE, operation, shape=[1024, 1024])
    counted = {"variables": 4 * w.SIZE, "optimizer": 12 * w.SIZE}
    many = events.Census(t=9.9, pid=100, kinds={"GPU:0": counted}, largest=[w.variable("c9_a0")])
    sizes = {row.kind: row.bytes for row in standing(window.done(), hooked(many), By.KIND).holders}
    assert sizes == {Kind.OPTIMIZER: 12 * w.SIZE, Kind.VARIABLES: 3 * w.SIZE, Kind.ACTIVATIONS: w.SIZE}
    all_listed = replace(many, kinds={"GPU:0": {"variables": w.SIZE}})
    sizes = {row.kind: row.bytes for row in standing(window.done(), hooked(all_listed), By.KIND).holders}
    assert sizes == {Kind.ACTIVATIONS: 16 * w.SIZE}


def test_a_value_that_a_variable_had_before_is_no_memory_of_the_optimizer() -> None:
    """A callback keeps the weights of each epoch: the optimizer's operation has made them."""
    window = w.Window()
    places = [window.allocate(w.SIZE, f"{w.CALL}adam/AssignSubVariableOp_2", shape=[1024, 1024]) for _ in range(5)]
    window.allocate(w.SIZE, f"{w.CALL}adam/AssignSubVariableOp_9", shape=[1024, 1024])
    weights = w.variable("sequential/up/kernel", address=w.BASE + w.SIZE * places[-1])

    def sizes(*slots: events.Variable) -> dict[Kind, int]:
        census = events.Census(t=9.9, pid=100, kinds={}, largest=[weights, *slots])
        return {row.kind: row.bytes for row in standing(window.done(), hooked(census), By.KIND).holders}

    assert sizes(w.variable("adam/momentum", "optimizer")) == {Kind.VARIABLES: 5 * w.SIZE, Kind.OPTIMIZER: w.SIZE}
    assert sizes() == {Kind.VARIABLES: 6 * w.SIZE}, "no slot has that shape"


def test_values_of_variables_at_an_earlier_peak_are_known_by_the_operations_of_the_last_step() -> None:
    """An optimizer moved the kernel since: the census at the end has the address at the end."""
    made, other = f"{w.CALL}sgd/AssignSubVariableOp_2", f"{w.CALL}sgd/Mul"

    def step(number: int, more: str, t: float) -> events.Holders:
        window = w.Window(number=number, top=w.BASE * number)
        window.allocate(w.SIZE, more, shape=[1024, 1024])
        for operation in (made, other, other):
            window.allocate(w.SIZE, operation, shape=[1024, 1024])
        return window.done(t=t)

    weights = w.variable("sequential/up/kernel", address=2 * w.BASE + w.SIZE)
    moved = w.variable("adam/sequential_up_kernel_momentum", "optimizer", address=2 * w.BASE + 2 * w.SIZE)
    end = events.Census(t=99.9, pid=100, kinds={}, largest=[weights, moved])
    closed = events.Census(t=10.1, pid=100, kinds={}, largest=[], moment=events.CensusMoment.CLOSED, window=1)
    for layer, known in (("up", w.SIZE), ("conv/fifth", 0)):
        earlier = step(1, f"{w.CALL}{layer}/Relu", 10.0)
        process = hooked(earlier, closed, step(2, f"{w.CALL}up/Relu", 99.8))
        assert Kind.VARIABLES not in {row.kind for row in standing(earlier, process, By.KIND).holders}
        process.census = end  # it comes after the window
        rows = {row.kind: row.bytes for row in standing(earlier, process, By.KIND).holders}
        assert rows.get(Kind.VARIABLES, 0) == known, "of the same model only"
        assert rows[Kind.OPTIMIZER] == 3 * w.SIZE - known, "one that makes other memory too is no variable's"


def test_slots_that_have_gone_by_the_end_are_known_by_the_census_before_the_peak() -> None:
    window = w.Window()
    for operation in ("AddV2", "Fill"):
        window.has(w.SIZE, operation, window=1)
    window.allocate(w.SIZE, f"{w.CALL}up/Relu", shape=[1024, 1024])
    kernel = w.variable("sequential/up/kernel", address=w.BASE)
    slot = w.variable("adam/sequential_up_kernel_momentum", "optimizer", address=w.BASE + w.SIZE)
    before = events.Census(t=2.0, pid=100, kinds={}, largest=[kernel, slot])
    end = events.Census(t=60.0, pid=100, kinds={}, largest=[kernel], moment=events.CensusMoment.END, window=1)
    others = [events.Census(t=t, pid=100, kinds={}, largest=[]) for t in (30.0, 59.0)]
    peak = window.done(opened=events.Opened.START)
    rows = {row.kind: row.bytes for row in standing(peak, hooked(before, peak, *others, end), By.KIND).holders}
    assert rows == {Kind.VARIABLES: w.SIZE, Kind.OPTIMIZER: w.SIZE, Kind.ACTIVATIONS: w.SIZE}


def test_operations_that_tensorflow_has_optimized_have_the_line_of_what_the_script_wrote() -> None:
    window = w.Window()
    names = ("ArithmeticOptimizer/ReplaceMulWithSquare_mul", "mul-0-TransposeNHWCToNCHW-LayoutOptimizer", "Relu")
    for operation in names:
        window.allocate(MIB, f"{w.CALL}{operation}", shape=[MIB // 4])
    line = events.OperationLine(f"{w.CALL}mul", "/a/train.py", 7, "penalty = x * x")
    process = hooked(events.OperationLines(t=9.0, pid=100, lines=[line]))
    rows = {row.name: row.count for row in standing(window.done(), process, By.LINE).holders}
    assert rows == {"/a/train.py:7": 2, "": 1}
    assert {row.name: row.count for row in standing(window.done(), process, By.LAYER).holders} == {"mul": 2, "Relu": 1}


def test_what_the_function_of_a_data_set_makes_is_input() -> None:
    window = w.Window()
    window.allocate(MIB, "GatherV2", shape=[MIB // 4])
    for graph, kind in (("Dataset_map_grab_batch", Kind.INPUT), ("train_step", Kind.ACTIVATIONS)):
        line = events.OperationLine("GatherV2", "/a/train.py", 7, "model.fit(x, y)", graph=graph)
        process = hooked(events.OperationLines(t=9.0, pid=100, lines=[line]))
        assert [row.kind for row in standing(window.done(), process, By.LINE).holders] == [kind]


def test_what_another_gpu_may_have_sent_is_no_input() -> None:
    window = w.Window()
    window.allocate(MIB, "SameWorkerRecvDone", shape=[MIB // 4])
    for cards, kind in ((1, Kind.INPUT), (2, Kind.ACTIVATIONS)):
        process = hooked(*(s.effective(1.2, 100, f"GPU:{card}", f"GPU-{card}") for card in range(cards)))
        assert [row.kind for row in standing(window.done(), process, By.LAYER).holders] == [kind]


def test_batches_that_data_sets_keep_are_no_tensors_of_the_script() -> None:
    window = w.Window(device="CPU:0")
    for size in (3 * MIB, 3 * MIB, MIB):
        window.has(size, window=1)
    window.allocate(MIB, "Relu")
    kept = events.DatasetBuffer("prefetch", 2, 3 * MIB)
    census = events.Census(t=9.9, pid=100, kinds={}, largest=[], buffers=[kept])
    rows = {row.kind: row.bytes for row in standing(window.done(), hooked(census), By.KIND).holders}
    assert rows == {Kind.INPUT: 6 * MIB, Kind.TENSORS: MIB, Kind.ACTIVATIONS: MIB}


def test_tensors_of_several_shapes_have_what_lies_at_their_addresses_also_some_time_later() -> None:
    window = w.Window()
    for size in (MIB, 3 * MIB, MIB):
        window.allocate(size, "MatMul", shape=[size // 4], dtype="float32")
    listed = b"".join((w.BASE + MIB * place).to_bytes(8, "little") for place in (0, 1, 4))
    early = events.Census(t=9.9, pid=100, kinds={}, largest=[], tensors=9, alike=[])
    for size, count in ((5 * MIB, 3), (4 * MIB, 2)):
        pending = events.Alike("pending[*]", 3, None, "float32", "GPU:0", size, packed=listed)
        late = events.Census(t=18.0, pid=100, kinds={}, largest=[], tensors=3, alike=[pending])
        rows = standing(window.done(), hooked(early, late), By.OPERATION).holders
        assert {row.name: row.count for row in rows}["pending[*]"] == count, "no more than they have in all"


def test_a_look_while_the_script_waits_for_room_is_as_of_the_beginning_of_that() -> None:
    """It comes a second later, and finds slices, which are smaller than the allocations they lie in."""
    window = w.Window()
    for _ in range(2):
        window.allocate(MIB, "RealDiv", shape=[MIB // 4], dtype="float32")
    ended = window.done()
    listed = b"".join((w.BASE + MIB * place + 512).to_bytes(8, "little") for place in range(2))
    slices_of = events.Alike("slices", 2, [64], "float32", "GPU:0", 512, packed=listed)
    look = events.Census(
        t=ended.ended + 1.5, pid=100, kinds={}, largest=[], tensors=2, alike=[slices_of],
        moment=events.CensusMoment.WAITING,
    )  # fmt: skip
    waits = events.Waiting(t=ended.ended + 0.1, pid=100, operation="RealDiv", file="t.py", line=9)
    for before, name in (((waits,), "slices"), ((), "RealDiv")):
        rows = standing(ended, hooked(*before, look), By.OPERATION).holders
        assert {row.name: row.count for row in rows} == {name: 2}


def test_without_a_census_variables_are_before_the_window() -> None:
    state = s.fold([s.session(), s.run(), s.process(0.6, 100), s.hook(1.1, 100)])
    bare = state.processes[100].hooked
    assert bare is not None
    found = standing(w.step().done(), bare, By.KIND)
    assert {row.kind: row.bytes for row in found.holders}[Kind.BEFORE] == 6 * w.SIZE


def test_results_of_compiled_calls_are_told_from_what_a_call_needs_while_it_runs() -> None:
    """Three calls: the second has a new value for each variable, the third has failed and freed its result first."""
    window = w.Window()
    window.has(1000, window=1)
    for _ in range(2):
        needed, _ = window.allocate(3000, region=""), window.allocate(1000, region="")
        window.free(needed)
    window.allocate(3000, region="")
    window.free(window.allocate(1000, region=""))
    compiled = events.Traced("train_step", 3, 1, "/a/train.py", 7, compiled=True)
    process = hooked(events.Functions(t=4.0, pid=100, functions=[compiled]))
    rows = standing(window.done(), process, By.KIND, window.event - 1).holders
    assert {(row.kind, part.requested // part.count, row.count) for row in rows for part in row.parts} == {
        (Kind.RESULTS, 1000, 3),
        (Kind.XLA, 3000, 1),
    }


def test_memory_without_an_operation_is_xlas_on_a_gpu_where_something_is_compiled() -> None:
    compiled = events.Functions(t=4.0, pid=100, functions=[events.Traced("f", 1, 1, "/a/train.py", 7, compiled=True)])
    xla, unknown = (Kind.RESULTS, Kind.XLA), (Kind.TENSORS, Kind.UNKNOWN)
    for device, more, kinds in (("GPU:0", (compiled,), xla), ("GPU:0", (), unknown), ("CPU:0", (compiled,), unknown)):
        window = w.Window(device=device)
        window.has(5 * MIB, window=1)
        window.allocate(3 * MIB, "", region="")
        rows = {row.kind: row.bytes for row in standing(window.done(), hooked(*more), By.KIND).rows}
        assert rows == dict(zip(kinds, (5 * MIB, 3 * MIB), strict=True))


def test_what_xla_tries_while_it_compiles_is_told_from_what_a_call_needs() -> None:
    """As on an H200: cuDNN's algorithms are tried with large buffers, which no later call asks for."""
    compiling = w.Window()
    kept = compiling.allocate(500, region="")
    compiling.free(compiling.allocate(6000, region=""), kept)
    compiling.free(compiling.allocate(6000, region=""))
    compiling.allocate(3000, region="")
    call = w.Window(number=2)
    call.free(call.allocate(3000, region=""))
    compiled = events.Traced("train_step", 3, 1, "/a/train.py", 7, compiled=True)
    functions = events.Functions(t=4.0, pid=100, functions=[compiled])

    def at_peak(*more: events.Event) -> dict[Kind, int]:
        window = compiling.done(t=10.0)
        rows = standing(window, hooked(functions, window, *more), By.KIND).holders
        return {row.kind: sum(part.requested for part in row.parts) for row in rows}

    assert at_peak(call.done(t=30.0)) == {Kind.WORKSPACE: 6500}
    assert Kind.WORKSPACE not in at_peak(), "of one call it is not known what others need"


@given(
    st.lists(st.tuples(st.integers(0, 5000), st.integers(0, 5), st.booleans()), max_size=30),
    st.integers(0, 4000),
    st.integers(-2, 60),
    st.sampled_from(By),
)
def test_any_window_adds_up(made: list[tuple[int, int, bool]], unknown: int, at: int, by: By) -> None:
    names = ["", "sequential_1/up_1/Relu", "adam/Mul_1", "gradients/x_grad/MatMul", "Mul", "a/b/c"]
    window = w.Window()
    places: list[int] = []
    for requested, name, freed in sorted(made, key=lambda one: one[0] % 2):  # what was there before comes first
        place = window.allocate(requested, names[name]) if requested % 2 else window.has(requested, names[name])
        places += [place] if freed else []
    window.free(*places)
    event = window.done(unknown=unknown)
    assert adds_up(standing(event, hooked(), by, at))
    peak = standing(event, hooked(), by)
    assert adds_up(peak) and peak.total == event.peak


def window_course(*levels: tuple[int, int]) -> list[Moment]:
    """A step that has so many bytes in use from each of these times on, in µs."""
    return [Moment(number - 1, at, {Kind.TENSORS: size}, size) for number, (at, size) in enumerate(levels)]


def test_a_slice_is_as_high_as_what_was_in_use_at_its_start() -> None:
    found = slices(window_course((0, 0), (1, 100), (74, 5), (100, 5)), 4)
    assert [one.ends[-1] for one in found] == [100, 100, 100, 5]
    # The cursor goes to the highest moment among those of the slice itself.
    assert [(one.event, one.total) for one in found] == [(0, 100), (0, 100), (1, 5), (2, 5)]


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 100)), min_size=1, max_size=12), st.integers(1, 7))
def test_each_slice_is_as_high_as_the_most_that_was_in_use_in_it(steps: list[tuple[int, int]], count: int) -> None:
    times = list(accumulate(wait for wait, _ in steps))
    moments = window_course(*zip(times, (size for _, size in steps), strict=True))
    whole = max(1, times[-1] - times[0])
    ends = [times[0] + whole * (number + 1) / count for number in range(count)]
    for start, end, one in zip([-1, *ends], ends, slices(moments, count), strict=False):
        at_start = [moment.total for moment in moments if moment.at_us <= start][-1:]
        assert one.ends[-1] == max(at_start + [moment.total for moment in moments if start < moment.at_us <= end])
