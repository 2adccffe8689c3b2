"""Gradient tapes and data sets that keep memory."""

from msgspec.structs import replace

from tests import windows as w
from tests.findings.test_keepers import FULL, IN_USE, actions, hooked, kept, look, part, stock
from tests.streams import MIB
from tfmemtop import events
from tfmemtop.findings.cause import Cause, Key
from tfmemtop.findings.keepers import keeper
from tfmemtop.findings.remedy import Action
from tfmemtop.findings.scene import MANY, Scene
from tfmemtop.state.attribution import Kind
from tfmemtop.state.holders import Part


def test_a_tape_whose_gradient_is_being_computed_has_recorded_a_forward_pass() -> None:
    line = events.Waiting(t=29.0, pid=100, operation="", file="/a/t.py", line=9, code="tape.gradient(loss, weights)")

    def cause(*parts: Part) -> Cause | None:
        return keeper(Scene(stock(look(tapes=0), *parts), FULL, hooked(line)))

    passed = cause(part("Mul", 300 * MIB, 40), part("Tanh", 300 * MIB, 40))
    assert passed is not None and passed.key is Key.TAPE_OPEN
    assert cause(part("Slice", 600 * MIB, 80)) is None, "another thread may have made them, for a queue"


def test_a_tape_that_is_open() -> None:
    results = part("while/MatMul", 600 * MIB, 300)
    cause = kept(look(tapes=1), results)
    assert cause is not None and (cause.key, cause.count, cause.bytes) == (Key.TAPE_OPEN, 300, 600 * MIB)
    assert "300 MatMul of [256,1024]" in cause.evidence[0] and actions(cause) == [Action.TAPE_EACH_STEP]
    several = kept(replace(look(tapes=58), tapes_in="kept[*]"), results)
    assert several is not None and actions(several) == [Action.DROP_TAPES]
    assert several.holder == "kept[*]" and "58 gradient tapes, most in `kept[*]`" in several.text
    assert kept(look(tapes=0), results) is None
    stands = events.Waiting(t=29.0, pid=100, operation="Mul", file="/a/t.py", line=9, code="model.fit(x, epochs=3)")
    assert keeper(Scene(stock(look(tapes=1), results), FULL, hooked(stands))) is None, "Keras's, of one step"
    assert kept(look(tapes=1), part("while/MatMul", 600 * MIB, MANY - 1)) is None
    called = [part(f"net_1/dense_1/{name}", 300 * MIB, 4) for name in ("MatMul", "Tanh")]
    assert kept(look(tapes=1), *called) is not None, "four calls of a function, each of which makes it once"
    assert kept(look(tapes=1), *(replace(one, count=3) for one in called)) is None
    mixed = kept(look(tapes=1), part("", 300 * MIB, 40), part("Tanh", 300 * MIB, 40))
    assert mixed is not None and mixed.count == 80, "of one shape, though no operation made so many"
    assert "40 other results" in mixed.evidence[0], "whose operation is not known"
    nameless = kept(look(tapes=1), part("Tanh", 600 * MIB, 300, shape=None))
    assert nameless is not None and "300 Tanh of 2.0 MiB each" in nameless.evidence[0], (
        "as on a GPU, without recorded shapes"
    )
    logits = part("logits/MatMul", 500 * MIB, shape=(4096, 20000))
    assert kept(look(tapes=1), logits, part("cell/AddV2", 9 * MIB, 300)) is None, "one output has nearly all"


def test_a_buffer_of_a_data_set_lies_in_the_hosts_memory() -> None:
    def cause(kind: str, elements: int, device: str = "CPU:0") -> Cause | None:
        return kept(look(buffers=[events.DatasetBuffer(kind, elements, MIB)]), device=device)

    shuffled = cause("shuffle", 600)
    assert shuffled is not None and (shuffled.key, shuffled.bytes) == (Key.DATASET_BUFFER, 600 * MIB)
    assert shuffled.holder == "tf.data shuffle" and "up to 600 elements" in shuffled.text
    assert cause("shuffle", 600, device="GPU:0") is None
    assert cause("shuffle", 200) is None, "less than a quarter does not matter"
    assert cause("prefetch", MANY - 1) is None and cause("generator", 600) is None


def test_a_gpu_has_only_the_elements_that_are_prefetched_to_it() -> None:
    def cause(count: int, kind: Kind = Kind.INPUT, buffer: str = "prefetch") -> Cause | None:
        elements = part("SameWorkerRecvDone", count * 5 * MIB, count, kind, shape=(64, 32, 32, 20))
        return kept(look(buffers=[events.DatasetBuffer(buffer, 100, 5 * MIB)]), elements)

    ahead = cause(60)
    assert ahead is not None and actions(ahead) == [Action.PREFETCH_LESS] and ahead.bytes == 300 * MIB
    assert "keeps ~60 of at most 100 elements" in ahead.text
    assert cause(60, Kind.ACTIVATIONS) is None, "results of the model may be as large as a batch"
    assert cause(60, buffer="shuffle") is None and cause(120) is None, "more than it keeps are not its elements"


def test_elements_are_told_with_the_line_that_made_them() -> None:
    line = events.OperationLine("Fill", "/a/data.py", 6, "data = data.map(decode)")
    elements = replace(part("map/Fill", 600 * MIB, 600, shape=(512, 512)), line=line)
    cached = kept(look(buffers=[events.DatasetBuffer("cache", None, MIB)]), elements, device="CPU:0")
    assert cached is not None and "~600 elements of 1.0 MiB, made at data.py:6: ~600.0 MiB" in cached.text
    batches = part("", 600 * MIB, 600, shape=None, kind=Kind.UNKNOWN)
    for size, told in ((MIB + 256, "~600 elements of 1.0 MiB"), (2 * MIB, "")):
        joined = kept(look(buffers=[events.DatasetBuffer("cache", None, size)]), batches, device="CPU:0")
        assert told in joined.text if joined else not told
    for count, told in ((600, "~600 elements of 1.0 MiB"), (599, "")):
        labels = part("map/strided_slice", MIB, count, shape=())
        unsized = kept(look(buffers=[events.DatasetBuffer("shuffle", 9999, None)]), batches, labels, device="CPU:0")
        assert told in unsized.text if unsized else not told
    error = events.OutOfMemory(t=30.0, pid=100, message="… passed to InterleaveDataset:1 … [[{{node map/Fill}}]]")
    opened = keeper(Scene(stock(look(), elements, device="CPU:0"), FULL, hooked(error)))
    assert opened is not None and "600 inputs open, with [512,512] float32 of each, made at data.py:6" in opened.text
    waits = events.Waiting(t=29.0, pid=100, operation="IteratorGetNext", file="t.py", line=9, code="for x in data:")
    of_inputs = stock(look(), elements, device="CPU:0", names="ParallelInterleaveDatasetV4")
    read_ahead = keeper(Scene(of_inputs, FULL, hooked(waits)))
    assert read_ahead is not None and actions(read_ahead) == [Action.INTERLEAVE_LESS]
    assert keeper(Scene(of_inputs, FULL, hooked())) is None


def test_what_the_functions_of_a_data_set_make_is_no_reason_for_smaller_batches() -> None:
    def cause(*made: Part, graph: str = "") -> Cause | None:
        line = events.OperationLine("Fill", "/a/data.py", 6, "", (), graph) if graph else None
        buffers = [events.DatasetBuffer("batch", 4, 10 * MIB)]
        return kept(look(buffers=buffers), *(replace(part, line=line) for part in made), device="CPU:0")

    whole = cause(part("Fill", 600 * MIB, 1), graph="Dataset_flat_map_patches")
    assert whole is not None and actions(whole) == [Action.SMALLER_PIECES] and "data.py:6" in whole.text
    opened = cause(part("Fill", 600 * MIB, 6), graph="Dataset_interleave_lambda")
    assert opened is not None and actions(opened) == [Action.INTERLEAVE_LESS]
    ahead = cause(part("Fill", 600 * MIB, 6), graph="Dataset_map_load")
    assert ahead is not None and ahead.key is Key.DATASET_BUFFER and actions(ahead) == [Action.LESS_AHEAD]
    assert cause(part("Fill", 600 * MIB, 2), graph="Dataset_map_load") is None, "a step may need so many"
    assert cause(part("Fill", 600 * MIB, 6), graph="step") is None
    known = [events.DatasetBuffer("batch", 4, 10 * MIB), events.DatasetBuffer("cache", None, 40 * MIB)]
    cached = kept(look(buffers=known), part("", 600 * MIB, 15, shape=None), device="CPU:0")
    assert cached is not None and cached.holder == "tf.data cache", "the cache has as large elements"
    lengths = [part("Fill", 200 * MIB, shape=(length, 8)) for length in range(3)]
    several = cause(*lengths, graph="Dataset_map_load")
    assert several is not None and "3 tensors, such as" in several.text
    batches = cause(part("", 600 * MIB, 15, shape=None))
    assert batches is not None and "15 batches of 40.0 MiB" in batches.text
    few = cause(part("", 280 * MIB, MANY - 1, shape=None))
    assert actions(batches) == [Action.LESS_AHEAD] and actions(few) == [Action.SMALLER_BATCHES], "a script may set none"
    assert cause(part("", 600 * MIB, 6, shape=None)) is None, "no batch is so large"


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


def test_constants_of_a_function_that_is_made_again_and_again() -> None:
    constants = part("step/Const_3", 400 * MIB, 4, Kind.UNKNOWN)
    others = part("", 550 * MIB, 9, Kind.BEFORE)
    cause = kept(look(), constants, others, made=3)
    assert cause is not None and (cause.key, cause.holder, cause.count) == (Key.CONSTANTS_CAPTURED, "step", 4)
    assert "train.py:12" in cause.text and actions(cause) == [Action.DEFINE_ONCE]
    earlier = kept(look(), constants, made=3)
    assert earlier is not None and "at least 400.0 MiB" in earlier.text and "at least" not in cause.text
    traced = kept(look(), constants, made=2)
    assert traced is not None and actions(traced) == [Action.PASS_ARRAYS], "it was traced nine times"
    assert kept(look(), part("step/MatMul", 400 * MIB, 4, Kind.UNKNOWN), made=3) is None
    folded = kept(look(), part("step/truediv/_0__cf__0", 400 * MIB, 4, Kind.UNKNOWN), made=3)
    assert folded is not None and folded.key is Key.CONSTANTS_CAPTURED, "what TensorFlow computed beforehand"
    assert kept(look(), constants, made=3, file="/a/keras/src/trainer.py") is None, "Keras makes one for each model"
    without_shape = replace(part("step/mul/y", 400 * MIB, 4, Kind.UNKNOWN, None), region="")
    assert kept(look(), without_shape, made=3, device="CPU:0") is not None
    assert kept(look(), without_shape, made=3) is None, "on a GPU many results have no recorded shape"
    of_xla = replace(without_shape, operation="__inference_step_9")
    assert kept(look(), of_xla, made=3, device="CPU:0") is None, "a result of XLA has its function's name"


def test_what_outlives_its_call_is_a_constant_where_each_call_traces() -> None:
    line = events.OperationLine(
        "MatVec/a", "/a/train.py", 14, "w @ table", ("<module> /a/train.py:18", "step /a/train.py:14")
    )
    table = replace(part("MatVec/a", 400 * MIB, 9), line=line)

    def cause(calls: int, *parts: Part, looked: bool = True) -> Cause | None:
        traced = events.Traced("step", calls, 9, "/a/train.py", 12, anew=1)
        process = hooked(events.Functions(t=3.0, pid=100, functions=[traced]))
        return keeper(Scene(stock(look() if looked else None, *parts), FULL, process))

    found = cause(9, table)
    assert found is not None and found.key is Key.CONSTANTS_CAPTURED and actions(found) == [Action.PASS_ARRAYS]
    assert cause(99, table) is None, "of most calls it may be the result"
    assert cause(9, replace(table, operation="while/MatVec/a")) is None, "a loop may collect it"
    assert cause(9, replace(table, line=None)) is None
    assert cause(9, table, looked=False) is None, "Python may hold it"


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
    assert cause(rose=110 * MIB) is not None, "it waited for room for long"
    assert cause(rose=99 * MIB) is None, "all in one step, as of the layers of a model"
