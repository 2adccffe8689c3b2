"""What is told of a full pool where nobody keeps what fills it, and no request was larger than those before."""

from msgspec.structs import replace

from tests import windows as w
from tests.findings.situations import begin, effective, reading
from tests.findings.test_exhausted import error, told
from tests.findings.test_keepers import IN_USE, actions, group, look, part
from tests.streams import GIB, MIB
from tfmemtop import events
from tfmemtop.findings.cause import Cause, Key
from tfmemtop.findings.contents import listed, named_part
from tfmemtop.findings.remedy import Action, Remedy, raise_limit
from tfmemtop.findings.room import no_room
from tfmemtop.state.attribution import COPIED


def test_where_nobody_keeps_it_the_room_decides_and_no_figure_is_made_up() -> None:
    anatomy = told([*begin(), effective(True), reading(29.9, GIB, pool=GIB, limit=GIB)], error()).anatomy
    assert no_room(anatomy).key is Key.LIMIT_TOO_SMALL
    unknown = no_room(replace(anatomy, limit=None, card_total=None, card_free=None))
    assert unknown.key is Key.UNKNOWN and "limit" in unknown.text
    on_cpu = no_room(replace(anatomy, device="CPU:0", asked=None))
    assert actions(on_cpu) == [raise_limit(GIB, on_cpu=True)]


def test_what_is_too_large_before_there_is_a_model_is_not_the_batch() -> None:
    def advice(census: events.Census, operation: str = "__inference_f_7") -> list[Remedy]:
        empty = [*begin(), effective(True, GIB), reading(29.9, MIB, pool=2 * MIB, limit=GIB)]
        return actions(told(empty, census, error(requested=2 * GIB, operation=operation)).cause)

    assert advice(look()) == [Action.IN_PARTS]
    kernel = events.Variable("dense/kernel", "variables", [256, 1024], "float32", "GPU:0", MIB)
    assert advice(look(variables=[kernel])) == [Action.NEED_LESS]
    assert advice(look(variables=[kernel]), "MatMul") == [Action.IN_PARTS], "run eagerly, it is not a step's"


def test_labels_in_one_hot_form_may_be_integers() -> None:
    def advice(operation: str, node: str = "dense/Relu") -> list[Remedy]:
        full = [*begin(), effective(True, GIB), reading(29.9, GIB - MIB, pool=GIB, limit=GIB)]
        labels = w.Window(number=1)
        labels.allocate(GIB - 2 * MIB, operation, shape=[1 << 13, 1 << 15], dtype="float32")
        asked = error(operation="__inference_f_7")
        asked = replace(asked, message=f"{asked.message} [[{{{{node {node}}}}}]]")
        return actions(told(full, labels.done(t=20.0), asked).cause)

    assert advice("one_hot")[0] is Action.KEEP_INTEGERS and Action.REDUCE_BATCH in advice("model/one_hot_1")
    assert Action.KEEP_INTEGERS not in advice("dense/Relu")
    assert advice("dense/Relu", node="f/crossed/one_hot")[0] is Action.KEEP_INTEGERS, "it was being made"


def test_results_of_one_operation_that_differ_in_shape_are_summed_up_where_shapes_have_no_room() -> None:
    full = [*begin(), effective(True, GIB), reading(29.9, IN_USE, pool=GIB, limit=GIB)]
    window = w.Window(number=1)
    for shape in ([2, 64, 614400], [2, 614400, 64]):
        window.allocate(300 * MIB, "model/conv2d_3/Relu", shape=shape, dtype="float32")
    texts = told(full, window.done(t=20.0), error()).cause.mostly
    short = [text for text in texts if "Relu" in text and "614400" not in text]
    assert short and all(text.count("Relu") == 1 for text in short) and any("Relu 600.0" in text for text in short)


def test_what_chunks_have_beyond_their_tensors_is_told() -> None:
    def evidence(requested: int) -> str:
        full = [*begin(), effective(True, GIB), reading(29.9, GIB - MIB, pool=GIB, limit=GIB)]
        made = w.Window(number=1)
        made.allocate(GIB - 2 * MIB, "model/dense/Relu", shape=[requested // 4], dtype="float32")
        made.holdings[0] = replace(made.holdings[0], requested=requested)
        return " ".join(told(full, made.done(t=20.0), error(operation="__inference_f_7")).cause.evidence)

    assert "256.0 MiB larger" in evidence(766 * MIB) and "larger" not in evidence(1000 * MIB)


def test_the_empty_shape_that_is_recorded_of_a_copy_from_the_host_is_not_told() -> None:
    copies = part("_EagerConst", 600 * MIB, 25, shape=COPIED)
    assert listed([(named_part(copies), copies.bytes)]) == "25× _EagerConst 600.0 MiB"


def test_numbers_of_double_precision_may_be_single() -> None:
    def advice(dtype: str) -> list[Remedy]:
        full = [*begin(), effective(True, GIB), reading(29.9, GIB - MIB, pool=GIB, limit=GIB)]
        return actions(told(full, replace(error(operation="__inference_f_7"), dtype=dtype)).cause)

    assert advice("double")[:2] == [Action.USE_FLOAT32, Action.NEED_LESS] and Action.USE_FLOAT32 not in advice("float")


def test_what_the_line_of_a_variable_asks_for_is_no_batch() -> None:
    def advice(code: str, census: events.Census, by: str = "AddV2") -> list[Remedy]:
        full = [*begin(), effective(True, GIB), reading(29.9, GIB - MIB, pool=GIB, limit=GIB), window.done(t=19.0)]
        line = events.Waiting(t=20.0, pid=100, operation=by, file="/a/train.py", line=9, code=code)
        return actions(told(full, line, census, error(operation=by)).cause)

    window = w.Window(number=1)

    assert Action.SMALLER_VARIABLE in advice("self.user = tf.Variable(init([users, dim]))", look(tapes=0))
    assert Action.NEED_LESS in advice("self.user = tf.Variable(init([users, dim]))", look(tapes=1))
    assert Action.SMALLER_VARIABLE not in advice("x = init([users, dim])", look(tapes=0))
    served = group("served[*]", 6, 600 * MIB, "variables", items=3, shape=None)
    full = [*begin(), effective(True, GIB), reading(29.9, GIB - MIB, pool=GIB, limit=GIB)]
    line = events.Waiting(t=20.0, pid=100, operation="AddV2", file="/a/t.py", line=9, code="self.w = tf.Variable(w)")
    cause = told(full, line, look(served), error(operation="AddV2")).whole_cause
    assert "`served[*]` 600.0" in cause.text, "what holds the variables that are there"
    random = "StatelessRandomUniformV2"
    assert Action.SMALLER_VARIABLE in advice("keras.Sequential([", look(tapes=0), random), "no value is there yet"
    assert Action.SMALLER_VARIABLE not in advice("x = keras.random.uniform(shape)", look(tapes=0), random)
    window.allocate(64 * MIB, random, shape=[16, 1048576], dtype="float32")
    assert Action.SMALLER_VARIABLE in advice("y = model(x)", look(tapes=1)), "its first call makes its variables"
    window.allocate(64 * MIB, "Relu", shape=[16, 1048576], dtype="float32")
    assert Action.REDUCE_BATCH in advice("y = model(x)", look(tapes=1)), "random numbers of a Dropout"
    assert Action.SMALLER_VARIABLE not in advice("y = model(x)", look(tapes=0), random)
    for _ in range(8):
        window.allocate(100 * MIB, "Tanh", shape=[25, 1048576], dtype="float32")
    assert Action.LESS_ON_TAPE in advice("y = model(x)", look(tapes=1)), "a tape keeps so many"


def test_what_is_already_so_is_not_advised_half_precision_or_a_batch_of_one() -> None:
    def advice(dtype: str, batch: int = 8) -> list[Remedy]:
        full = [*begin(), effective(True, GIB), reading(29.9, IN_USE, pool=GIB, limit=GIB)]
        window = w.Window(number=1)
        window.allocate(600 * MIB, "block/Softmax", shape=[batch, 8, 4096, 4096], dtype=dtype)
        return actions(told(full, window.done(t=20.0), error(requested=500 * MIB)).cause)

    assert Action.REDUCE_BATCH in advice("float32")
    assert Action.REDUCE_HALVED in advice("bfloat16") and Action.REDUCE_BATCH not in advice("bfloat16")
    assert Action.BOUND_LENGTH in advice("float32", 1), "there is no smaller batch than one"


def test_where_the_model_needs_most_a_smaller_batch_is_not_advised() -> None:
    """Slots that begin with zeros share these until the first step has ended: less is in use than they will need."""

    def advice(size: int) -> list[Remedy]:
        full = [*begin(), effective(True, GIB), reading(29.9, IN_USE, pool=GIB, limit=GIB)]
        window = w.Window(number=1)
        window.allocate(400 * MIB, "AddV2", shape=[400, 262144], dtype="float32")
        table = events.Variable("table", "variables", [size, 262144], "float32", "GPU:0", size * MIB)
        return actions(told(full, window.done(t=20.0), look(variables=[table]), error()).cause)

    assert Action.FEWER_WEIGHTS in advice(600) and Action.REDUCE_BATCH not in advice(600)
    assert Action.REDUCE_BATCH in advice(300)


def test_a_smaller_batch_is_advised_where_gradients_are_not_those_of_the_variables() -> None:
    """``vectorized_map`` makes the gradients of all examples at once: [512,784,2048] for a kernel of [784,2048]."""

    def advice(shape: list[int]) -> list[Remedy]:
        full = [*begin(), effective(True, GIB), reading(29.9, IN_USE, pool=GIB, limit=GIB)]
        window = w.Window(number=1)
        window.allocate(700 * MIB, "gradient_tape/MatMul/MatMul_1", shape=shape, dtype="float32")
        kernel = events.Variable("kernel", "variables", [784, 2048], "float32", "GPU:0", 6 * MIB)
        return actions(told(full, window.done(t=20.0), look(variables=[kernel]), error(requested=200 * MIB)).cause)

    assert Action.REDUCE_BATCH in advice([512, 784, 2048])
    assert Action.FEWER_WEIGHTS in advice([784, 2048])


def test_what_fills_a_queue_of_tensorflows_is_told_to_wait() -> None:
    full = [*begin(), effective(True, GIB), reading(29.9, IN_USE, pool=GIB, limit=GIB)]

    def advice(given: str, shape: list[int], put: str = "Slice") -> list[Remedy]:
        window = w.Window(number=1)
        for _ in range(60):
            window.allocate(10 * MIB, put, shape=[10, 262144], dtype="float32")
        window.allocate(20 * MIB, given, shape=shape, dtype="float32")
        return actions(told(full, window.done(t=20.0), look(), error()).cause)

    assert advice("QueueDequeueManyV2", [2, 10, 262144]) == [Action.SMALLER_QUEUE]
    assert advice("QueueDequeueV2", [10, 262144]) == [Action.SMALLER_QUEUE]
    assert advice("", [1], "QueueEnqueueManyV2") == [Action.SMALLER_QUEUE], "it has taken them apart"
    others = advice("QueueDequeueManyV2", [20, 262144]), advice("Slice", [2, 10, 262144])
    assert not any(Action.SMALLER_QUEUE in each for each in others), "the queue gives other elements, or there is none"
    assert Action.KEEP_ARRAYS not in advice("", [20, 262144], ""), "what has no name was perhaps not run eagerly"
    assert Action.KEEP_ARRAYS in others[1], "so many results are there only if something keeps them"


def test_gradients_that_a_tape_adds_up_are_not_kept_by_the_script() -> None:
    def advice(code: str, region: str = "output") -> list[Remedy]:
        full = [*begin(), effective(True, GIB), reading(29.9, IN_USE, pool=GIB, limit=GIB)]
        window = w.Window(number=1)
        for _ in range(60):
            window.allocate(10 * MIB, "MatMul", region, shape=[10, 262144], dtype="float32")
        line = events.Waiting(t=20.0, pid=100, operation="MatMul", file="/a/train.py", line=9, code=code)
        return actions(told(full, window.done(t=20.0), look(tapes=0), line, error(operation="MatMul")).cause)

    assert Action.LESS_ON_TAPE in advice("gradients = tape.gradient(loss, weights)")
    assert Action.KEEP_ARRAYS in advice("results.append(x @ y)")
    assert Action.FEWER_ROWS in advice("results.append(x @ y)", "temp"), "scratch memory of the call that asked"


def test_a_full_pool_names_the_few_large_tensors_that_the_script_holds() -> None:
    full = [*begin(), effective(True, GIB), reading(29.9, IN_USE, pool=GIB, limit=GIB)]
    window = w.Window(number=1)
    for _ in range(2):
        window.allocate(300 * MIB, "AddV2", shape=[300, 262144], dtype="float32")
    own = [events.Variable(n, "tensors", [300, 262144], "float32", "GPU:0", 300 * MIB) for n in ("x_train", "flipped")]
    cause = told(full, window.done(t=20.0), look(variables=own), error()).cause
    assert cause.key is Key.LIMIT_TOO_SMALL and "in use: `x_train` 300.0, `flipped` 300.0" in cause.mostly[0]
    other = [replace(one, name=f"error_handler.<locals>.args[{at}]") for at, one in enumerate(own)]
    assert "args" not in " ".join(told(full, window.done(t=20.0), look(variables=other), error()).cause.mostly)


def test_two_models_with_their_optimizers_are_named() -> None:
    """As after a training, when the best model is loaded beside the one that was trained."""

    def cause(second: str, slots: int = 320) -> Cause:
        full = [*begin(), effective(True, GIB), reading(29.9, IN_USE, pool=GIB, limit=GIB)]
        parts = [("model", "variables", 160), ("model", "optimizer", 320), (second, "variables", 160)]
        parts += [(second, "optimizer", slots)] if second else []
        held = [group(holder, 2, size * MIB, kind, shape=None) for holder, kind, size in parts if holder]
        window = w.Window(number=1)
        window.allocate(350 * MIB, "dense/MatMul", shape=[350, 262144], dtype="float32")
        window.allocate(550 * MIB, "adam/m/Initializer/zeros", shape=[550, 262144], dtype="float32")
        return told(full, window.done(t=20.0), look(*held), error(operation="dense/MatMul")).cause

    two = cause("best")
    assert Action.DROP_MODELS in actions(two) and "`model` 480.0, `best` 480.0" in two.mostly[0]
    made = cause("best", slots=500)
    assert Action.DROP_MODELS in actions(made) and "`best`, `model` 550.0" in made.mostly[0], "one is being made"
    assert Action.DROP_MODELS not in actions(cause(""))


def test_a_keeper_that_is_found_in_a_run_is_its_cause() -> None:
    """The look belongs to the failure only if it was made near it."""
    full = [*begin(), effective(True, GIB), reading(29.9, IN_USE, pool=GIB, limit=GIB)]
    assert told(full, look(group("losses", 900, 300 * MIB)), error()).cause.holder == "losses"
    old = replace(look(group("losses", 900, 300 * MIB)), t=9.0)
    assert not told(full, old, error(t=45.0)).cause.holder


def test_what_came_after_the_last_step_is_no_step_before() -> None:
    counts = [
        events.Functions(t=t, pid=100, functions=[events.Traced("step", calls, 1, "/a/t.py", 4)])
        for t, calls in ((3.0, 1), (9.0, 40), (15.0, 40))
    ]
    use = [reading(float(t), (100 if t < 10 else 600) * MIB, pool=GIB, limit=GIB) for t in range(3, 30)]
    stream = sorted([*counts, *use], key=lambda event: event.t)
    evidence = " ".join(told([*begin(), effective(True, GIB)], stream, error(requested=500 * MIB)).cause.evidence)
    assert "steps before used at most 100.0 MiB" in evidence
