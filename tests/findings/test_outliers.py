"""Why one request was too large: each rule where it just applies, and not. The pool is that of the tests of keepers."""

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from tests import windows as w
from tests.findings.situations import begin, effective, reading
from tests.findings.test_exhausted import error, moment, told
from tests.findings.test_keepers import IN_USE, actions, hooked, look, part, stock
from tests.streams import GIB, MIB
from tfmemtop import events
from tfmemtop.findings.cause import Cause, Key
from tfmemtop.findings.outliers import outlier
from tfmemtop.findings.remedy import Action
from tfmemtop.findings.request import Request
from tfmemtop.state.holders import Part
from tfmemtop.state.windows import unpacked


def request(
    census: events.Census,
    *windows: events.Event,
    operation: str | None = "MatMul",
    names: str = "",
    parts: tuple[Part, ...] = (),
    **asked: Any,
) -> Cause | None:
    wanted = {"asked": 64 * MIB, "shape": None, "operation": operation, "limit": GIB, "message": "", **asked}
    anatomy = replace(told([*begin(), effective(True), reading(29.9, GIB, pool=GIB)], error()).anatomy, **wanted)
    return outlier(Request(anatomy, stock(census, *parts, names=names), hooked(*windows), 30.0))


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
    def cause(rows: int, operation: str = "ConcatV2", name: str = "history") -> Cause | None:
        old = events.Variable(name, "tensors", [rows, 1024], "float32", "GPU:0", rows * 4096)
        return request(look(variables=[old]), operation=operation, asked=64 * MIB, shape=[16384, 1024])

    grown = cause(8192)
    assert grown is not None and (grown.key, grown.holder) == (Key.GROWN_BY_COPYING, "history")
    assert grown.keeps_growing and actions(grown) == [Action.CONCAT_ON_HOST]
    assert cause(8191) is None and cause(16384) is None and cause(8192, "MatMul") is None
    assert cause(8192, name="raise_from_not_ok_status.<locals>.e.__traceback__") is None, "an operand of this join"


def test_where_only_an_operations_name_is_known_it_must_have_asked_for_each_size_again_and_again() -> None:
    def cause(sizes: list[int]) -> Cause | None:
        steps = w.Window(number=1)
        for size in sizes:
            steps.allocate(size * MIB, "RealDiv")
        steps.free(steps.allocate(4096, "RealDiv", shape=[4096], dtype="uint8"))  # scratch memory
        first, last = (replace(steps.done(t=20.0), window=number) for number in (1, 2))  # one goes on from the other
        return request(look(), first, last, operation="RealDiv", asked=64 * MIB)

    larger = cause([8, 8, 8, 24, 24, 24])
    assert larger is not None and larger.key is Key.STEP_LARGER and "at most 24.0 MiB" in larger.text
    assert cause([8, 8, 8, 24, 24]) is None, "it may be of another layer, in the same step"
    assert cause([24] * 6) is None, "all layers may be alike but one"


def test_a_tensor_that_grows_in_a_loop_of_a_graph() -> None:
    def cause(node: str) -> Cause | None:
        asked: dict[str, Any] = {"asked": 64 * MIB, "shape": [16384, 1024], "node": node}
        before = part("while/body/concat_2", 63 * MIB, shape=(16128, 1024))
        return request(look(), operation="__inference_decode_9", parts=(before,), **asked)

    grown = cause("while/body/concat_2")
    assert grown is not None and grown.key is Key.GROWN_BY_COPYING and "TensorArray" in grown.code[1]
    assert cause("while/body/concat_3") is None, "two layers of a network may join tensors of like sizes"


def test_a_loop_that_still_runs_is_no_loop_before() -> None:
    """A window may end while the operations of the next call already run, as they do on a GPU."""

    def told(freed: int) -> str:
        window = w.Window()
        rounds = [window.allocate(MIB, "scan/while/body/mul", shape=[MIB // 4], dtype="float32") for _ in range(100)]
        window.free(*rounds[:freed])
        earlier = replace(window.done(t=20.0), function="simulate")
        now = part("scan/while/body/mul", 600 * MIB, 150, shape=(MIB,))
        cause = request(look(), earlier, replace(w.step(2).done(t=29.0), function="fit_step"), parts=(now,))
        assert cause is not None and "150 rounds of a loop" in cause.text
        return cause.text

    assert "before, at most 100" in told(100)
    assert "before" not in told(0)


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
    assert known.code and actions(known)[0] is Action.CHECK_SHAPES
    sides = [events.Variable("", "tensors", shape, "float32", "GPU:0", 16384) for shape in ([1, 4096], [4096, 1])]
    meant = request(look(variables=sides), operation="Sub", asked=64 * MIB, shape=[4096, 4096], in_use=MIB)
    assert meant is not None and actions(meant)[0] is Action.BOUND_REQUEST and not meant.code, "each has its own axis"
    in_graph = request(
        look(variables=sides), operation="__inference_f_7", node="loss/sub_1", asked=64 * MIB, shape=[8, 8], in_use=MIB
    )
    assert in_graph is not None and "broadcasts" in in_graph.text
    assert cause("MatMul") is None, "its result may be larger than its operands"
    assert cause(in_use=65 * MIB) is None and cause(rows=4097) is None, "an operand may be as large as the result"


def test_a_result_that_need_not_be_so_large() -> None:
    remedies = {
        "SparseToDense": Action.STAY_SPARSE,
        "RaggedTensorToTensor": Action.PAD_ALIKE,
        "Svd": Action.REDUCED_FORM,
        "Qr": Action.REDUCED_FORM,
    }
    for operation, remedy in remedies.items():
        dense = request(look(), operation=operation, in_use=MIB)
        assert dense is not None and dense.key is Key.LIMIT_TOO_SMALL and actions(dense)[0] is remedy
        assert request(look(), operation=operation, in_use=65 * MIB) is None, "other memory matters more"
        mapped = request(look(), operation="IteratorGetNext", node=f"map/{operation}_1", in_use=MIB)
        assert mapped is not None and actions(mapped)[0] is remedy, "in a function of a data set"


def test_the_gradient_of_a_table_that_is_made_dense() -> None:
    def cause(rows: int = 8192, names: str = "embedding/Gather UnsortedSegmentSum", **asked: Any) -> Cause | None:
        table = events.Variable("embeddings", "variables", [rows, 1024], "float32", "GPU:0", rows * 4096)
        lines = [
            events.OperationLine(name, "/a/t.py", 9, "dense = tf.convert_to_tensor(g)") for name in names.split()[1:]
        ]
        known = events.OperationLines(t=20.0, pid=100, lines=lines)
        asked |= {"asked": rows * 4096, "shape": [rows, 1024]}
        return request(look(variables=[table]), known, names=names, **asked)

    dense = cause()
    assert dense is not None and (dense.key, dense.holder) == (Key.DENSE_GRADIENT, "embeddings")
    assert actions(dense) == [Action.KEEP_SPARSE]
    assert cause(rows=8191) is None, "no table"
    assert cause(names="embedding/Gather") is None and cause(names="UnsortedSegmentSum") is None
    assert cause(names="embedding/Gather adam/UnsortedSegmentSum") is None, "an optimizer does so in any case"
    eager: dict[str, Any] = {"names": "GatherV2", "operation": "UnsortedSegmentSum", "line": "/a/t.py:9"}
    assert cause(**eager, code="g = tf.convert_to_tensor(g)") is not None
    assert cause(**eager, code="optimizer.apply_gradients(pairs)") is None, "so may one that runs eagerly"
    assert cause(**eager, code="sums = tf.math.unsorted_segment_sum(x, users, 8192)") is None, "that is no gradient"


def test_a_step_that_asks_for_more_than_those_before() -> None:
    steps = w.step(rows=2048).done(t=20.0)  # 8 MiB for each activation

    def cause(rows: int, census: events.Census | None = None, shape: bool = True) -> Cause | None:
        wanted = [rows, 1024] if shape else None
        return request(census or look(), steps, operation="Relu", asked=rows * 4096, shape=wanted)

    larger = cause(3072)
    assert larger is not None and (larger.key, larger.bytes) == (Key.STEP_LARGER, 12 * MIB)
    assert "8.0 MiB" in larger.text and actions(larger) == [Action.FEWER_ROWS], "run eagerly, rows may be no batch"
    assert cause(3071) is None
    own = events.Variable("kernel", "variables", [3072, 1024], "float32", "GPU:0", 12 * MIB)
    assert cause(3072, look(variables=[own])) is None, "the request is for a variable or its gradient"
    before = events.Variable("table", "variables", [2048, 1024], "float32", "GPU:0", 8 * MIB)
    assert cause(3072, look(variables=[before])) is None, "the request before was for another variable"
    assert request(look(), steps, operation="Relu", asked=12 * MIB, shape=[2048, 1536]) is None, "a wider layer"
    assert request(look(), w.step(rows=4096).done(t=20.0), operation="Relu", asked=12 * MIB, shape=[3072, 1024]) is None
    assert request(look(), operation="Relu", asked=12 * MIB, shape=[3072, 1024]) is None, "nothing was recorded"
    function = "__inference_step_9"
    assert request(look(), steps, operation=function, asked=12 * MIB, shape=[3072, 1024]) is None, "of the first step"
    calls = events.Functions(t=2.0, pid=100, functions=[events.Traced("step", 9, 1, "t.py", 12)])
    assert request(look(), calls, steps, operation=function, asked=12 * MIB, shape=[3072, 1024]) is not None
    called = w.Window(number=1)
    called.allocate(8 * MIB, "StatefulPartitionedCall/net/conv_1/Relu", shape=[8, 512, 512])
    for layer, found in (("conv_1", True), ("conv_2", False)):
        crashed = request(look(), called.done(t=20.0), operation=f"net/{layer}/Relu", asked=12 * MIB)
        assert (crashed is not None) is found, "by the layer, in predict as in fit"
    pictures = w.Window(number=1)
    pictures.allocate(12 * MIB, "Transpose", shape=[256, 3, 64, 64], dtype="float32")
    pictures.allocate(8 * MIB, "Conv2D", shape=[16, 32, 64, 64], dtype="float32")
    shape = [256, 32, 64, 64]
    batch = request(look(), calls, pictures.done(t=20.0), operation=function, asked=128 * MIB, shape=shape)
    assert batch is not None and "[16,32,64,64], 8.0 MiB" in batch.text, "more channels are another layer's"
    assert actions(batch) == [Action.BOUND_BATCH]
    loop, node = w.Window(number=1), "TensorArrayV2Stack/TensorListStack"
    loop.allocate(MIB, node, shape=[32, 8192], dtype="float32")
    rounds = request(look(), calls, loop.done(t=20.0), operation=function, node=node, asked=16 * MIB, shape=[512, 8192])
    assert rounds is not None and actions(rounds) == [Action.FEWER_ROWS]
    assert "list of 512" in " ".join(rounds.evidence), "the rows of a TensorArray are no batch"
    longer = w.Window(number=1)
    longer.allocate(2 * MIB, "StatefulPartitionedCall/net/mul", shape=[8, 4, 128, 128], dtype="float32")
    text = request(look(), longer.done(t=20.0), operation="net/mul", asked=32 * MIB, shape=[8, 4, 512, 512])
    assert text is not None and actions(text) == [Action.BOUND_LENGTH], "the batch is the same"
    small = w.Window(number=1)
    small.allocate(256, "_EagerConst", shape=[0], dtype="float32")
    assert request(look(), small.done(t=20.0), operation="_EagerConst", asked=12 * MIB) is None, "another array"


def test_a_request_larger_than_before_is_the_cause_in_a_fragmented_pool_too() -> None:
    full = [*begin(), effective(True, GIB), reading(20.0, 900 * MIB, pool=GIB, limit=GIB), reading(29.9, 400 * MIB)]
    pieces = moment(400 * MIB, GIB, 128 * MIB)

    def key(rows: int, before: Sequence[int] = (128,)) -> str:
        asked = replace(error(operation="Relu", requested=rows * MIB), shape=[rows, 256, 1024])
        steps = w.Window(number=1)
        for each in before[:-1]:
            steps.free(steps.allocate(each * MIB, "Relu", shape=[each, 256, 1024], dtype="float32"))
        steps.allocate(before[-1] * MIB, "Relu", shape=[before[-1], 256, 1024], dtype="float32")
        return told([*full, steps.done(t=20.0)], pieces, asked).cause.key

    assert key(192) is Key.STEP_LARGER and key(191) is Key.FRAGMENTATION
    assert key(191, (*range(5, 40, 5), 260)) is Key.STEP_LARGER, "a batch that grows in each step"


def test_a_graphs_request_is_compared_with_those_of_the_same_operation() -> None:
    """Another layer of the same step may have asked for less."""
    calls = events.Functions(t=2.0, pid=100, functions=[events.Traced("step", 9, 1, "t.py", 12)])
    steps = w.Window()
    upper = steps.allocate(24 * MIB, "net_1/upper/Relu", shape=[8, 96, 128, 64])
    steps.allocate(MIB, "net_1/lower/Relu", shape=[8, 48, 64, 64])
    steps.allocate(MIB, "net_1/table/Relu", shape=[4096, 1])

    steps.free(upper)
    steps.allocate(MIB, "net_1/middle/Relu", shape=[8, 48, 64, 32])
    steps.allocate(24 * MIB, "net_1/middle/Relu", shape=[8, 96, 128, 32])

    def text(layer: str, shape: list[int]) -> str:
        graph: dict[str, Any] = {"operation": "__inference_step_9", "node": f"net_1/{layer}/Relu"}
        cause = request(look(), calls, steps.done(t=20.0), asked=96 * MIB, shape=shape, **graph)
        return cause.text if cause and cause.key is Key.STEP_LARGER else ""

    assert "[8,48,64,64]" in text("lower", [8, 192, 256, 64])
    assert "[8,96,128,64]" in text("new", [8, 192, 256, 64])
    assert not text("upper", [8, 96, 128, 64]), "as much as before"
    assert "[8,48,64,32]" in text("middle", [8, 96, 128, 32]), "as much, which is still there: it is of the same step"
    assert not text("lower", [8, 64, 64, 64]), "what has one of the new sizes is of the same batch"
    assert not text("table", [4096, 256]) and text("table", [8192, 256]), "so is a column of as many rows"


def test_a_layer_before_it_in_the_same_step_has_as_large_a_batch() -> None:
    def text(*, freed: bool) -> str:
        steps = w.Window()
        steps.allocate(2 * MIB, "net_1/pool/MaxPool", shape=[8, 32, 32, 64])
        wide = steps.allocate(48 * MIB, "net_1/wide/Relu", shape=[48, 64, 64, 64])
        if freed:
            steps.free(wide)
        graph: dict[str, Any] = {"operation": "__inference_step_9", "node": "net_1/pool/MaxPool"}
        calls = events.Functions(t=2.0, pid=100, functions=[events.Traced("step", 9, 1, "t.py", 12)])
        cause = request(look(), calls, steps.done(t=20.0), asked=12 * MIB, shape=[48, 32, 32, 64], **graph)
        return cause.text if cause and cause.key is Key.STEP_LARGER else ""

    assert "before, at most [8,32,32,64]" in text(freed=False)
    assert not text(freed=True), "there has been room for a whole step of that batch"


def test_layers_that_are_run_eagerly_have_one_name_and_those_of_a_step_are_no_smaller_batch() -> None:
    def text(batch: int, *, trained: bool = False, times: int = 0) -> str:
        steps = w.Window()
        for _ in range(times):
            steps.allocate(4 * MIB, "BiasAdd", shape=[batch, 32, 64, 16])
            steps.allocate(8 * MIB, "BiasAdd", shape=[batch, 64, 64, 16])
        steps.free(steps.allocate(8 * MIB, "BiasAdd", shape=[batch, 64, 64, 16]))
        if trained:
            steps.allocate(MIB, "BiasAddGrad", shape=[16])
        wanted: dict[str, Any] = {"operation": "BiasAdd", "asked": 64 * MIB, "shape": [8, 128, 64, 16]}
        cause = request(look(), steps.done(t=20.0), **wanted)
        return cause.text if cause and cause.key is Key.STEP_LARGER else ""

    assert text(4), "a larger batch"
    assert not text(8), "a layer before it, or a smaller picture"
    assert text(8, trained=True), "a step has come to its end"
    assert text(8, times=8) and not text(8, times=7), "steps of other lengths"


def test_what_fills_the_pool_has_a_larger_batch_than_before_though_the_request_is_of_no_known_operation() -> None:
    def cause(shape: list[int], size: int = 800 * MIB, name: str = "Relu", **also: Any) -> Cause | None:
        steps = w.Window()
        before = steps.allocate(8 * MIB, name, shape=[8, 128, 128, 16])
        if not also.get("kept"):
            steps.free(before)
        made = steps.allocate(size, name, shape=shape)
        if also.get("freed"):
            steps.free(made)
            steps.allocate(size, name, shape=shape)
        there = (part(name, size, shape=tuple(shape)),)
        wanted: dict[str, Any] = {"operation": "BiasAdd", "asked": 100 * MIB, "shape": shape}
        census = look(variables=[also["own"]] if "own" in also else [])
        return request(census, steps.done(t=20.0), parts=there, **wanted)

    def text(*what: Any, **more: Any) -> str:
        found = cause(*what, **more)
        return found.text if found and found.key is Key.STEP_LARGER else ""

    assert "Relu made [800,128,128,16]; before, at most [8,128,128,16]" in text([800, 128, 128, 16])
    assert not text([800, 128, 128, 16], freed=True), "there has been room for as much"
    assert not text([800, 128, 128, 16], kept=True), "both are there, such as two tables: the first is no batch before"
    assert not text([8, 1280, 1280, 16]), "these may be two layers"
    assert not text([800, 128, 128, 16], size=80 * MIB), "too little to fill the pool"
    own = events.Variable("kernel", "variables", [8, 128, 128, 16], "float32", "GPU:0", 8 * MIB)
    assert not text([800, 128, 128, 16], own=own), "a variable's first value"
    rows, batch = (cause([800, 128, 128, 16], name=name) for name in ("Relu", "StatefulPartitionedCall/net/Relu"))
    assert rows is not None and actions(rows) == [Action.FEWER_ROWS]
    assert batch is not None and actions(batch) == [Action.BOUND_BATCH], "it was made in a graph, whatever asked then"


def test_what_xla_asks_for_is_compared_with_other_tracings_of_the_function() -> None:
    def text(asked: int, operation: str = "__inference_f_7", **more: Any) -> str:
        calls = events.Functions(t=2.0, pid=100, functions=[events.Traced("f", 9, 3, "t.py", 12)])
        steps = w.Window()
        for size, name in ((30, "__inference_f_5"), (40, "__inference_f_6"), (20, "__inference_f_7")):
            steps.free(steps.allocate(size * MIB, name))
        steps.allocate(90 * MIB, "__inference_g_6")
        wanted = {"asked": asked * MIB, "message": "Out of memory while trying to allocate", "in_use": MIB, **more}
        cause = request(look(), calls, steps.done(t=20.0), operation=operation, **wanted)
        return cause.text if cause and cause.key is Key.STEP_LARGER else ""

    assert "before, at most 40.0 MiB" in text(43) and not text(41)
    assert not text(59, in_use=60 * MIB) and text(60, in_use=60 * MIB), "the pool may be full for another reason"
    assert not text(100, "__inference_g_6"), "the same tracing made it, perhaps in the same call"
    assert not text(100, "__inference_h_7") and not text(100, message="OOM when allocating")


def test_an_argument_of_another_size_is_told_and_not_one_of_any_size() -> None:
    def evidence(after: str, operation: str = "__inference_f_7") -> str:
        changed = [events.Changed("x", "float32[8,1024]", after, 2)]
        functions = events.Functions(t=3.0, pid=100, functions=[events.Traced("f", 2, 2, "t.py", 12, changed=changed)])
        steps = functions, w.step(rows=2048).done(t=20.0)
        cause = request(look(), *steps, operation=operation, asked=12 * MIB, shape=[3072, 1024])
        return " ".join(cause.evidence) if cause else ""

    assert "`x`" not in evidence("float32[12,1024]", operation="__inference_g_7"), "of another function"
    assert "`x`" in evidence("float32[12,1024]") and "`x`" not in evidence("float32[None,1024]")
    assert "`x`" not in evidence("float32[12,1024]", operation="Relu"), "run eagerly, it is not in the function"


def test_a_line_of_the_script_that_asks_for_more_than_before() -> None:
    steps = w.step(rows=2048).done(t=20.0)
    made = [events.OperationLine(name, "/a/t.py", 9, "") for window in [steps] for name in unpacked(window).names]
    lines = events.OperationLines(t=20.0, pid=100, lines=made)

    def cause(line: str, operation: str = "Relu") -> Cause | None:
        return request(look(), steps, lines, operation=operation, asked=GIB, shape=[9000, 9000], line=line)

    larger = cause("/a/t.py:9")
    assert larger is not None and larger.key is Key.STEP_LARGER and "[2048,1024], 8.0 MiB" in larger.text
    assert cause("/a/t.py:10") is None and cause("/a/t.py:9", "Exp") is None


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
