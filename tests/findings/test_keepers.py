"""Who keeps the memory that fills a pool, and why one request was too large: each rule where it just applies, and not.

The pool has a limit of 1 GiB, of which 1000 MiB are in use. 64 MiB more are asked for.
"""

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from tests import streams as s
from tests import windows as w
from tests.findings.situations import begin, effective, reading
from tests.findings.test_exhausted import error, told
from tests.streams import GIB, MIB
from tfmemtop import events
from tfmemtop.findings.cause import Cause, Key
from tfmemtop.findings.keepers import keeper, tensors_without_path
from tfmemtop.findings.outliers import Request, outlier
from tfmemtop.findings.remedy import Action, Remedy, raise_limit
from tfmemtop.findings.room import no_room
from tfmemtop.findings.scene import MANY, Need, Scene
from tfmemtop.state.attribution import Kind
from tfmemtop.state.holders import Part
from tfmemtop.state.inventory import Inventory
from tfmemtop.state.lookup import hooked_of
from tfmemtop.state.model import Hooked

IN_USE = 1000 * MIB
FULL = Need(asked=64 * MIB, whole=GIB, failed=True, rose=900 * MIB)


def look(*alike: events.Alike, variables: list[events.Variable] | None = None, **rest: Any) -> events.Census:
    largest = variables or []
    kinds = {"GPU:0": {"variables": sum(one.bytes for one in largest)}}
    return events.Census(t=30.0, pid=100, kinds=kinds, largest=largest, tensors=9, alike=list(alike), **rest)


def hooked(*parts: events.Event) -> Hooked:
    process = hooked_of(s.fold([*begin(), *parts]), 100)
    assert process is not None
    return process


def stock(census: events.Census | None = None, *parts: Part, device: str = "GPU:0", names: str = "") -> Inventory:
    return Inventory(device, IN_USE, census, census, parts, frozenset(names.split()))


def kept(
    census: events.Census,
    *parts: Part,
    need: Need = FULL,
    device: str = "GPU:0",
    made: int = 0,
    file: str = "/a/train.py",
) -> Cause | None:
    """Return who keeps the memory; *made* is how often one function, which is defined in *file*, was made anew."""
    traced = events.Traced("step", 99, 9, file, 12, anew=made)
    process = hooked(events.Functions(t=3.0, pid=100, functions=[traced]))
    return keeper(Scene(stock(census, *parts, device=device), need, process))


def part(operation: str, size: int, count: int = 1, kind: Kind = Kind.ACTIVATIONS, shape: Any = (256, 1024)) -> Part:
    return Part(kind, "", operation, shape, "float32", "output", bytes=size, requested=size, count=count)


def group(
    holder: str, count: int, size: int, kind: str = "tensors", items: int = 0, shape: Any = (256, 1024)
) -> events.Alike:
    return events.Alike(holder, count, None if shape is None else list(shape), "float32", "GPU:0", size, kind, items)


def actions(cause: Cause | None) -> list[Remedy]:
    return list(cause.remedies) if cause else []


def test_a_collection_of_tensors() -> None:
    cause = kept(look(group("losses", MANY, 300 * MIB)))
    assert cause is not None and (cause.key, cause.holder) == (Key.TENSORS_KEPT, "losses")
    assert (cause.bytes, cause.count, actions(cause)) == (300 * MIB, MANY, [Action.KEEP_ARRAYS])
    assert kept(look(group("losses", MANY - 1, 300 * MIB))) is None, "so few may be needed"
    assert kept(look(group("losses", MANY - 1, 500 * MIB))) is not None, "but not half of the memory"
    assert kept(look(group("losses", 900, 249 * MIB))) is None, "less than a quarter does not matter"
    assert kept(look(group("losses", 900, 1100 * MIB))) is None, "views of other memory: more than is in use"
    # Without them, there would have been no room either.
    assert kept(look(group("losses", 900, 300 * MIB)), need=replace(FULL, asked=400 * MIB)) is None


@pytest.mark.parametrize(
    ("shape", "action", "line"),
    [
        ([256, 1024], Action.KEEP_ARRAYS, "tensor.numpy()"),
        (None, Action.KEEP_ARRAYS, "tensor.numpy()"),
        ([], Action.KEEP_NUMBERS, "losses.append(float(loss))"),
    ],
)
def test_a_number_is_advised_only_for_what_float_takes(shape: list[int] | None, action: Remedy, line: str) -> None:
    cause = kept(look(group("losses", 900, 600 * MIB, shape=shape)))
    assert cause is not None and actions(cause) == [action] and cause.code[0].startswith(line)


def test_what_functions_capture_in_several_cells_is_one_holder() -> None:
    cells = [group(f"penalties[*].__closure__[{cell}].cell_contents", 36, 200 * MIB, items=36) for cell in (0, 1)]
    cause = kept(look(*cells))
    assert cause is not None and (cause.count, cause.bytes) == (72, 400 * MIB)
    assert cause.text.startswith("The functions in `penalties[*]` capture 72 tensors")


def test_more_tensors_of_the_shape_without_a_path_are_told() -> None:
    def evidence(size: int) -> str:
        cause = kept(look(group("maps", 42, 400 * MIB), group("", 43, size)))
        assert cause is not None
        return " ".join(cause.evidence)

    assert "Python holds 43 more of that shape, 390.0 MiB" in evidence(390 * MIB)
    assert "more of that shape" not in evidence(MIB)
    two = kept(look(group("maps", 42, 400 * MIB), group("logs", 41, 390 * MIB)))
    assert two is not None and "`logs` keeps 41 more, 390.0 MiB." in two.evidence


def test_gradients_are_kept_if_there_are_more_than_one_for_each_variable() -> None:
    weights = [events.Variable(f"w{i}", "variables", [1024, 1024 * i], "float32", "GPU:0", 40 * MIB) for i in range(10)]
    largest = [replace(one, name=f"grads[{i}]", kind="tensors") for i, one in enumerate(weights)]

    def cause(size: int) -> Cause | None:
        made = part("MatMul", size, shape=(1024, 1024))
        census = look(group("grads", 10, size, shape=None), variables=[*weights, *largest])
        return kept(replace(census, kinds={"GPU:0": {"variables": 400 * MIB}}), made)

    assert cause(400 * MIB) is None, "as in each step"
    several = cause(401 * MIB)
    assert several is not None and actions(several) == [Action.SUM_UP]


def test_memory_that_rises_without_a_failure_must_have_risen_by_a_quarter_of_what_is_kept() -> None:
    rising = Need(0, None, failed=False, rose=150 * MIB)
    assert kept(look(group("losses", 900, 300 * MIB)), need=rising) is not None
    assert kept(look(group("losses", 900, 300 * MIB)), need=replace(rising, rose=74 * MIB)) is None


def test_tensors_without_a_path_are_more_than_one_step_needs() -> None:
    def cause(count: int, tapes: int = 0, code: str = "") -> Cause | None:
        census = look(group("", count, 300 * MIB), tapes=tapes)
        waiting = events.Waiting(t=29.0, pid=100, operation=None, file="/a/train.py", line=9, code=code)
        return tensors_without_path(Scene(stock(census), FULL, hooked(waiting)))

    many = cause(32)
    assert many is not None and (many.key, many.holder, many.count) == (Key.TENSORS_KEPT, "", 32)
    assert actions(many) == [Action.KEEP_ARRAYS]
    assert actions(cause(32, code="masks = model.predict(images)")) == [Action.PREDICT_PARTS]
    assert cause(31) is None and cause(64, tapes=1) is None


def test_an_audit_hook_that_limited_the_search_is_named_only_where_no_holder_was_found() -> None:
    def evidence(holder: str) -> str:
        census = look(group(holder, 900, 600 * MIB), hidden=events.Unseen.AUDITED)
        cause = kept(census)
        assert cause is not None
        return " ".join(cause.evidence)

    sentence = "The script has an audit hook, so what generators, coroutines, queues and caches hold was not looked at."
    assert sentence in evidence("") and sentence not in evidence("losses")


def test_a_local_variable_of_a_coroutine_whose_name_is_not_known() -> None:
    cause = kept(look(group("Server.serve.<locals>", 900, 600 * MIB)))
    assert cause is not None and cause.text.startswith("A local variable of Server.serve() keeps 900 tensors")


def test_models_in_a_list_are_counted_by_their_items() -> None:
    variables = group("models[*]", 56, 300 * MIB, "variables", items=14)
    copies = named(*(f"sequential_{model}/dense/kernel" for model in range(14)))
    whole = look(variables, group("models[*]", 56, 300 * MIB, "optimizer", items=14), variables=copies)
    cause = kept(whole)
    assert cause is not None and (cause.key, cause.holder) == (Key.VARIABLES_KEPT, "models[*]")
    assert (cause.count, cause.bytes) == (14, 600 * MIB) and "14 models with their optimizers" in cause.text
    assert actions(cause) == [Action.SEPARATE_PROCESS, Action.DROP_MODELS]
    in_keras = "/lib/keras/src/trainer.py"
    assert actions(kept(whole, file=in_keras)) == [Action.SEPARATE_PROCESS, Action.ONE_MODEL]
    plain = kept(look(variables, variables=copies))
    assert plain is not None and actions(plain)[0] is Action.BOUND_CACHE
    kinds = "variables", "optimizer"
    searched = [group("trials[*]", 56, 300 * MIB, kind, items=14, shape=None) for kind in kinds]
    found = kept(look(*searched))
    assert found is not None and found.holder == "trials[*]", "models of a search have different shapes"
    assert actions(kept(look(*searched), file=in_keras)) == [Action.SEPARATE_PROCESS]
    assert kept(look(*searched), need=replace(FULL, rose=299 * MIB)) is None, "made at once"
    assert kept(look(searched[0])) is None, "layers of one model"
    assert kept(look(group("model", 56, 300 * MIB, "variables", items=1))) is None, "one model is needed"
    assert kept(look(group("layers[*]", 12, 300 * MIB, "variables", items=4))) is None, "layers of one model"


def named(*names: str, kind: str = "variables") -> list[events.Variable]:
    return [events.Variable(name, kind, [1024, 25600], "float32", "GPU:0", 100 * MIB) for name in names]


@pytest.mark.parametrize(
    ("variables", "number"),
    [
        (named("sequential/dense/kernel", "sequential_1/dense_1/kernel", "sequential_2/dense_2/kernel"), 3),
        (named("average", "average", "average"), 3),
        (named("adam/dense_kernel", "adam_1/dense_kernel", "adam_2/dense_kernel", kind="optimizer"), 3),
        (named("sequential/dense/kernel", "sequential_1/dense_1/kernel"), 0),  # as in a GAN
        (named("sequential/dense/kernel", "sequential/dense_1/kernel", "sequential/dense_2/kernel"), 0),
        (named("dense/kernel", "dense_1/kernel", "dense_2/kernel"), 0),
        (named("Variable", "Variable", "Variable"), 0),
        (named("adam/dense_kernel", "adam/dense_1_kernel", "adam/dense_2_kernel", kind="optimizer"), 0),
    ],
)
def test_copies_of_variables_are_told_from_layers_by_their_names(variables: list[events.Variable], number: int) -> None:
    cause = kept(look(variables=variables))
    assert ((cause is not None and cause.key is Key.VARIABLES_KEPT and cause.count) or 0) == number
    assert (Action.DROP_MODELS in actions(cause)) == bool(number and "/" in variables[0].name)
    assert kept(look(variables=variables), need=replace(FULL, rose=149 * MIB)) is None, "made at once"


def test_variables_that_python_has_dropped() -> None:
    older = part("", 400 * MIB, 90, Kind.BEFORE)
    assert kept(look(gone=[events.Gone("GPU:0", 40, 300 * MIB)])) is None, "nothing in the pool is as old"
    cause = kept(look(gone=[events.Gone("GPU:0", 40, 300 * MIB)]), older)
    assert cause is not None and (cause.key, cause.count, cause.bytes) == (Key.RUNTIME_KEEPS, 40, 300 * MIB)
    assert actions(cause) == [Action.SEPARATE_PROCESS]
    assert kept(look(gone=[events.Gone("GPU:1", 40, 300 * MIB)])) is None
    line = events.OperationLine("Fill", "/a/train.py", 9, "model.fit(x)")
    value = replace(part("adam/Assign", 200 * MIB, 5, Kind.OPTIMIZER), layer="up", python_name="adam/m", line=line)
    like = kept(look(gone=[events.Gone("GPU:0", 40, 300 * MIB)]), older, value)
    assert like is not None and "such as those of `up`, made at train.py:9" in like.text
    assert any("made by model.fit(x)" in each for each in like.evidence)
    # What a window has of the time before it bounds what TensorFlow can still hold.
    assert kept(look(gone=[events.Gone("GPU:0", 40, 300 * MIB)]), part("", 100 * MIB, kind=Kind.BEFORE)) is None


def test_a_tape_that_is_open() -> None:
    results = part("while/MatMul", 600 * MIB, 300)
    cause = kept(look(tapes=1), results)
    assert cause is not None and (cause.key, cause.count, cause.bytes) == (Key.TAPE_OPEN, 300, 600 * MIB)
    assert "300 of them [256,1024]" in cause.text and actions(cause) == [Action.TAPE_EACH_STEP]
    several = kept(look(tapes=58), results)
    assert several is not None and actions(several) == [Action.DROP_TAPES]
    assert kept(look(tapes=0), results) is None
    assert kept(look(tapes=1), part("while/MatMul", 600 * MIB, MANY - 1)) is None
    mixed = kept(look(tapes=1), part("Mul", 300 * MIB, 40), part("Tanh", 300 * MIB, 40))
    assert mixed is not None and mixed.count == 80, "of one shape, though no operation made so many"
    nameless = kept(look(tapes=1), part("Tanh", 600 * MIB, 300, shape=None))
    assert nameless is not None and "300 of them 2.0 MiB each" in nameless.text, "as on a GPU, without recorded shapes"
    logits = part("logits/MatMul", 500 * MIB, shape=(4096, 20000))
    assert kept(look(tapes=1), logits, part("cell/AddV2", 9 * MIB, 300)) is None, "one output has nearly all"


def test_constants_of_a_function_that_is_made_again_and_again() -> None:
    constants = part("step/Const_3", 400 * MIB, 4, Kind.UNKNOWN)
    cause = kept(look(), constants, made=3)
    assert cause is not None and (cause.key, cause.holder, cause.count) == (Key.CONSTANTS_CAPTURED, "step", 4)
    assert "train.py:12" in cause.text and actions(cause) == [Action.DEFINE_ONCE]
    traced = kept(look(), constants, made=2)
    assert traced is not None and actions(traced) == [Action.FIX_ARGUMENTS], "it was traced nine times"
    assert kept(look(), part("step/MatMul", 400 * MIB, 4, Kind.UNKNOWN), made=3) is None
    assert kept(look(), constants, made=3, file="/a/keras/src/trainer.py") is None, "Keras makes one for each model"
    without_shape = replace(part("step/mul/y", 400 * MIB, 4, Kind.UNKNOWN, None), region="")
    assert kept(look(), without_shape, made=3, device="CPU:0") is not None
    assert kept(look(), without_shape, made=3) is None, "on a GPU many results have no recorded shape"


def test_what_outlives_its_call_is_a_constant_where_each_call_traces() -> None:
    line = events.OperationLine(
        "MatVec/a", "/a/train.py", 14, "w @ table", ("<module> /a/train.py:18", "step /a/train.py:14")
    )
    table = replace(part("MatVec/a", 400 * MIB, 9), line=line)

    def cause(calls: int, *parts: Part) -> Cause | None:
        traced = events.Traced("step", calls, 9, "/a/train.py", 12, anew=1)
        process = hooked(events.Functions(t=3.0, pid=100, functions=[traced]))
        return keeper(Scene(stock(look(), *parts), FULL, process))

    found = cause(9, table)
    assert found is not None and found.key is Key.CONSTANTS_CAPTURED and actions(found) == [Action.FIX_ARGUMENTS]
    assert cause(99, table) is None, "of most calls it may be the result"
    assert cause(9, replace(table, operation="while/MatVec/a")) is None, "a loop may collect it"
    assert cause(9, replace(table, line=None)) is None


def test_copies_on_the_gpu_of_tensors_on_the_host() -> None:
    def cause(count: int, each: int = MIB, device: str = "CPU:0") -> Cause | None:
        batches = events.Alike("batches", 900, [256, 1024], "float32", device, 900 * MIB, items=900)
        return kept(look(batches), part("Conv2D", count * each, count, shape=(0,)))

    found = cause(800)
    assert found is not None and (found.key, found.holder, found.count) == (Key.TENSORS_KEPT, "batches", 800)
    assert cause(901) is None, "more copies than tensors"
    assert cause(800, each=MIB + 4) is None, "of another size"


def test_a_graph_of_tensorflow_1_that_grows() -> None:
    def cause(number: int = MANY, function: str = "SessionRun", rose: int = 900 * MIB, line: int = 0) -> Cause | None:
        lines = [
            events.OperationLine(f"Assign_{n}", "/a/train.py", 9 + line * n, "run(w.assign(x))") for n in range(MANY)
        ]
        added = [replace(part(f"Assign_{n}/value", 50 * MIB), line=one) for n, one in enumerate(lines[:number])]
        process = hooked(replace(w.step().done(t=20.0), function=function))
        return keeper(Scene(stock(None, *added), replace(FULL, rose=rose), process))

    grows = cause()
    assert grows is not None and (grows.key, grows.count, grows.bytes) == (Key.CONSTANTS_CAPTURED, MANY, 400 * MIB)
    assert "train.py:9" in grows.text and actions(grows) == [Action.BUILD_ONCE]
    assert cause(MANY - 1) is None and cause(line=1) is None and cause(function="step") is None
    assert cause(rose=199 * MIB) is None, "all in one step, as of the layers of a model"


def test_what_was_recorded_of_tensors_without_a_path_shows_who_made_them() -> None:
    def evidence(recorded: int) -> str:
        line = events.OperationLine("concat", "/a/train.py", 29, "maps.append(gathered)")
        made = replace(part("all/concat", recorded * MIB, recorded), line=line)
        cause = kept(look(group("", 200, 600 * MIB)), made)
        return " ".join(cause.evidence) if cause else ""

    assert "Most of them were made by concat at train.py:29, maps.append(gathered)." in evidence(100)
    assert "Of 62 that were recorded, most were made by concat" in evidence(62)
    assert "made by" not in evidence(MANY - 1)


def test_a_buffer_of_a_data_set_lies_in_the_hosts_memory() -> None:
    def cause(kind: str, elements: int, device: str = "CPU:0") -> Cause | None:
        return kept(look(buffers=[events.DatasetBuffer(kind, elements, MIB)]), device=device)

    shuffled = cause("shuffle", 600)
    assert shuffled is not None and (shuffled.key, shuffled.bytes) == (Key.DATASET_BUFFER, 600 * MIB)
    assert shuffled.holder == "tf.data shuffle" and "up to 600 elements" in shuffled.text
    assert cause("shuffle", 600, device="GPU:0") is None
    assert cause("shuffle", 200) is None, "less than a quarter does not matter"
    assert cause("prefetch", MANY - 1) is None and cause("generator", 600) is None


def test_results_of_the_models_layers_are_no_elements_of_a_data_set() -> None:
    def size(layer: str) -> int | None:
        kernel = replace(part("kernel", MIB, kind=Kind.VARIABLES), layer="conv")
        result = replace(part("Conv2D", 300 * MIB, 2, shape=None), layer=layer)
        census = look(buffers=[events.DatasetBuffer("prefetch", 1000, 3 * MIB)])
        cause = kept(census, kernel, result, device="CPU:0")
        return cause.bytes if cause else None

    assert (size("conv"), size("")) == (700 * MIB, IN_USE)


def test_elements_that_do_not_fit_a_shuffle_buffer_lie_in_the_cache() -> None:
    def holder(shuffled: int) -> str:
        buffers = [events.DatasetBuffer("shuffle", shuffled, MIB), events.DatasetBuffer("cache", None, MIB)]
        elements = part("resize", 600 * MIB, 600, shape=(512, 512))
        cause = kept(look(buffers=buffers), elements, device="CPU:0")
        return cause.holder if cause else ""

    assert (holder(300), holder(299)) == ("tf.data shuffle", "tf.data cache")


def test_results_of_a_notebooks_cells() -> None:
    results = [group("Out[3]", 1, 200 * MIB), group("_", 1, 200 * MIB)]
    cause = kept(look(*results))
    assert cause is not None and (cause.key, cause.bytes) == (Key.NOTEBOOK_HISTORY, 400 * MIB)
    assert actions(cause) == [Action.CLEAR_RESULTS]
    assert kept(look(results[0])) is None and kept(look(group("Output[3]", 1, 400 * MIB))) is None


def test_of_several_the_one_that_keeps_most_is_told() -> None:
    census = look(group("losses", 900, 300 * MIB), gone=[events.Gone("GPU:0", 40, 301 * MIB)])
    cause = kept(census, part("", 400 * MIB, 90, Kind.BEFORE))
    assert cause is not None and cause.key is Key.RUNTIME_KEEPS


# Why one request was too large.


def request(
    census: events.Census, *windows: events.Event, operation: str | None = "MatMul", names: str = "", **asked: Any
) -> Cause | None:
    wanted = {"asked": 64 * MIB, "shape": None, "operation": operation, "limit": GIB, "message": "", **asked}
    anatomy = replace(told([*begin(), effective(True), reading(29.9, GIB, pool=GIB)], error()).anatomy, **wanted)
    return outlier(Request(anatomy, stock(census, names=names), hooked(*windows), 30.0))


def test_an_array_that_is_copied_as_a_whole() -> None:
    census = look(arrays=[events.HostArray("x", [2048, 8192], "float32", 64 * MIB)])
    cause = request(census, operation=None)
    assert cause is not None and (cause.key, cause.holder, cause.bytes) == (Key.INPUT_ON_DEVICE, "x", 64 * MIB)
    assert actions(cause) == [Action.FEED_BATCHES]
    assert request(replace(census, tensors=None), operation="_EagerConst") == cause, "also where nobody looked"
    assert request(census, operation=None, asked=32 * MIB) is not None, "in half of its precision"
    assert request(census, operation=None, asked=63 * MIB) is None
    assert any("lambda: x," in line for line in cause.code)
    assert request(census) is None, "a product that happens to have its size"
    small = look(arrays=[events.HostArray("x", [1024], "float32", 4096)])
    assert request(small, operation=None, asked=4096) is None


def test_a_copy_of_which_the_array_is_not_known() -> None:
    cause = request(look(), operation=None, asked=512 * MIB, message="Dst tensor is not initialized.")
    assert cause is not None and cause.key is Key.INPUT_ON_DEVICE
    assert request(look(), operation=None, asked=511 * MIB, message="Dst tensor is not initialized.") is None
    assert request(look(), operation=None, asked=512 * MIB) is None, "XLA may have asked for it"
    assert request(look(), operation=None, asked=512 * MIB, device="CPU:0") == cause
    assert request(look(), operation="_EagerConst", asked=512 * MIB) == cause
    assert request(look(), asked=512 * MIB) is None, "an operation asks"
    assert request(look(), operation=None, asked=512 * MIB, message="OOM when allocating tensor") is None


def test_a_tensor_that_grows_by_copying() -> None:
    def cause(rows: int, operation: str = "ConcatV2") -> Cause | None:
        old = events.Variable("history", "tensors", [rows, 1024], "float32", "GPU:0", rows * 4096)
        return request(look(variables=[old]), operation=operation, asked=64 * MIB, shape=[16384, 1024])

    grown = cause(8192)
    assert grown is not None and (grown.key, grown.holder) == (Key.GROWN_BY_COPYING, "history")
    assert grown.keeps_growing and actions(grown) == [Action.CONCAT_ON_HOST]
    assert cause(8191) is None and cause(16384) is None and cause(8192, "MatMul") is None


def test_operands_that_are_broadcast_to_a_large_tensor() -> None:
    def cause(operation: str = "Sub", in_use: int = MIB, rows: int = 4096) -> Cause | None:
        held = events.Variable("y", "tensors", [rows, 1024], "float32", "GPU:0", rows * 4096)
        census = look(variables=[held])
        return request(census, operation=operation, asked=64 * MIB, shape=[4096, 4096], in_use=in_use)

    made = cause()
    assert (
        made is not None and made.key is Key.LIMIT_TOO_SMALL and "broadcasts its operands to [4096,4096]" in made.text
    )
    assert actions(made)[0] is Action.CHECK_SHAPES
    sides = [events.Variable("", "tensors", shape, "float32", "GPU:0", 16384) for shape in ([4096], [4096, 1], [4096])]
    known = request(look(variables=sides), operation="Sub", asked=64 * MIB, shape=[4096, 4096], in_use=MIB)
    assert known is not None and "broadcasts [4096] and [4096,1] to [4096,4096]" in known.text
    assert cause("MatMul") is None, "its result may be larger than its operands"
    assert cause(in_use=65 * MIB) is None and cause(rows=4097) is None, "an operand may be as large as the result"


def test_a_sparse_or_ragged_tensor_that_is_made_dense() -> None:
    for operation, remedy in (("SparseToDense", Action.STAY_SPARSE), ("RaggedTensorToTensor", Action.PAD_ALIKE)):
        dense = request(look(), operation=operation, in_use=MIB)
        assert dense is not None and dense.key is Key.LIMIT_TOO_SMALL and actions(dense)[0] is remedy
        assert request(look(), operation=operation, in_use=65 * MIB) is None, "other memory matters more"


def test_the_gradient_of_a_table_that_is_made_dense() -> None:
    def cause(rows: int = 8192, names: str = "embedding/Gather UnsortedSegmentSum") -> Cause | None:
        table = events.Variable("embeddings", "variables", [rows, 1024], "float32", "GPU:0", rows * 4096)
        return request(look(variables=[table]), names=names, asked=rows * 4096, shape=[rows, 1024])

    dense = cause()
    assert dense is not None and (dense.key, dense.holder) == (Key.DENSE_GRADIENT, "embeddings")
    assert actions(dense) == [Action.KEEP_SPARSE]
    assert cause(rows=8191) is None, "no table"
    assert cause(names="embedding/Gather") is None and cause(names="UnsortedSegmentSum") is None


def test_a_step_that_asks_for_more_than_those_before() -> None:
    steps = w.step(rows=2048).done(t=20.0)  # 8 MiB for each activation

    def cause(rows: int, census: events.Census | None = None, shape: bool = True) -> Cause | None:
        wanted = [rows, 1024] if shape else None
        return request(census or look(), steps, operation="Relu", asked=rows * 4096, shape=wanted)

    larger = cause(3072)
    assert larger is not None and (larger.key, larger.bytes) == (Key.STEP_LARGER, 12 * MIB)
    assert "8.0 MiB" in larger.text and actions(larger) == [Action.BOUND_REQUEST]
    assert cause(3071) is None
    own = events.Variable("kernel", "variables", [3072, 1024], "float32", "GPU:0", 12 * MIB)
    assert cause(3072, look(variables=[own])) is None, "the request is for a variable or its gradient"
    before = events.Variable("table", "variables", [2048, 1024], "float32", "GPU:0", 8 * MIB)
    assert cause(3072, look(variables=[before])) is None, "the request before was for another variable"
    assert request(look(), steps, operation="Relu", asked=12 * MIB, shape=[2048, 1536]) is None, "a wider layer"
    assert request(look(), w.step(rows=4096).done(t=20.0), operation="Relu", asked=12 * MIB, shape=[3072, 1024]) is None
    assert request(look(), operation="Relu", asked=12 * MIB, shape=[3072, 1024]) is None, "nothing was recorded"
    small = w.Window(number=1)
    small.allocate(256, "_EagerConst", shape=[0], dtype="float32")
    assert request(look(), small.done(t=20.0), operation="_EagerConst", asked=12 * MIB) is None, "another array"


def test_an_argument_of_another_size_is_told_and_not_one_of_any_size() -> None:
    def evidence(after: str) -> str:
        changed = [events.Changed("x", "float32[8,1024]", after, 2)]
        functions = events.Functions(t=3.0, pid=100, functions=[events.Traced("f", 2, 2, "t.py", 12, changed=changed)])
        steps = functions, w.step(rows=2048).done(t=20.0)
        cause = request(look(), *steps, operation="Relu", asked=12 * MIB, shape=[3072, 1024])
        return " ".join(cause.evidence) if cause else ""

    assert "`x`" in evidence("float32[12,1024]") and "`x`" not in evidence("float32[None,1024]")


def test_the_phase_that_asked_for_more_is_named() -> None:
    full = [*begin(), effective(True, GIB), reading(29.9, IN_USE, pool=GIB, limit=GIB), w.step(rows=2048).done(t=20.0)]
    asked = events.OutOfMemory(
        t=30.0, pid=100, message="OOM", device="GPU:0", requested=48 * MIB, operation="Relu", shape=[12288, 1024]
    )

    def text(name: str, ended: float | None) -> str:
        peaks = {"GPU:0": IN_USE}
        phase = events.ScriptPhase(
            t=29.0, pid=100, number=2, name=name, epoch=None, began=22.0, ended=ended, peaks=peaks
        )
        return told(full, phase, asked).cause.text

    assert " in evaluate asked for 48.0 MiB" in text("evaluate", None) and " in evaluate" in text("evaluate", 30.1)
    assert " in " not in text("evaluate", 29.0) and " in " not in text("fit", None)


def test_where_nobody_keeps_it_the_room_decides_and_no_figure_is_made_up() -> None:
    anatomy = told([*begin(), effective(True), reading(29.9, GIB, pool=GIB, limit=GIB)], error()).anatomy
    assert no_room(anatomy).key is Key.LIMIT_TOO_SMALL
    unknown = no_room(replace(anatomy, limit=None, card_total=None, card_free=None))
    assert unknown.key is Key.UNKNOWN and "limit" in unknown.text
    on_cpu = no_room(replace(anatomy, device="CPU:0", asked=None))
    assert actions(on_cpu) == [raise_limit(GIB, on_cpu=True)]


def test_what_is_too_large_before_there_is_a_model_is_not_the_batch() -> None:
    def advice(census: events.Census) -> list[Remedy]:
        empty = [*begin(), effective(True, GIB), reading(29.9, MIB, pool=2 * MIB, limit=GIB)]
        return actions(told(empty, census, error(requested=2 * GIB, operation="OneHot")).cause)

    assert advice(look()) == [Action.IN_PARTS]
    kernel = events.Variable("dense/kernel", "variables", [256, 1024], "float32", "GPU:0", MIB)
    assert advice(look(variables=[kernel])) == [Action.REDUCE_BATCH]


def test_what_the_line_of_a_variable_asks_for_is_no_batch() -> None:
    def advice(code: str, census: events.Census) -> list[Remedy]:
        full = [*begin(), effective(True, GIB), reading(29.9, GIB - MIB, pool=GIB, limit=GIB)]
        line = events.Waiting(t=20.0, pid=100, operation="AddV2", file="/a/train.py", line=9, code=code)
        return actions(told(full, line, census, error(operation="AddV2")).cause)

    assert Action.SMALLER_MODEL in advice("self.user = tf.Variable(init([users, dim]))", look(tapes=0))
    assert Action.REDUCE_BATCH in advice("self.user = tf.Variable(init([users, dim]))", look(tapes=1))
    assert Action.SMALLER_MODEL not in advice("x = init([users, dim])", look(tapes=0))


def test_a_full_pool_names_the_few_large_tensors_that_the_script_holds() -> None:
    full = [*begin(), effective(True, GIB), reading(29.9, IN_USE, pool=GIB, limit=GIB)]
    window = w.Window(number=1)
    for _ in range(2):
        window.allocate(300 * MIB, "AddV2", shape=[300, 262144], dtype="float32")
    own = [events.Variable(n, "tensors", [300, 262144], "float32", "GPU:0", 300 * MIB) for n in ("x_train", "flipped")]
    cause = told(full, window.done(t=20.0), look(variables=own), error()).cause
    assert cause.key is Key.LIMIT_TOO_SMALL and cause.mostly == "Mostly `x_train`, `flipped`."
    other = [replace(one, name=f"error_handler.<locals>.args[{at}]") for at, one in enumerate(own)]
    assert "args" not in told(full, window.done(t=20.0), look(variables=other), error()).cause.mostly


def test_a_keeper_that_is_found_in_a_run_is_its_cause() -> None:
    """The look belongs to the failure only if it was made near it."""
    full = [*begin(), effective(True, GIB), reading(29.9, IN_USE, pool=GIB, limit=GIB)]
    assert told(full, look(group("losses", 900, 300 * MIB)), error()).cause.holder == "losses"
    old = msgspec.structs.replace(look(group("losses", 900, 300 * MIB)), t=9.0)
    assert not told(full, old, error()).cause.holder
