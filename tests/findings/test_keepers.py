"""Who keeps the memory that fills a pool: each rule where it just applies, and not.

The pool has a limit of 1 GiB, of which 1000 MiB are in use. 64 MiB more are asked for.
"""

from typing import Any

import pytest
from msgspec.structs import replace

from tests import streams as s
from tests.findings.situations import begin
from tests.streams import GIB, MIB
from tfmemtop import events
from tfmemtop.findings.cause import Cause, Key
from tfmemtop.findings.keepers import keeper, tensors_without_path
from tfmemtop.findings.remedy import Action, Remedy
from tfmemtop.findings.scene import MANY, Need, Scene
from tfmemtop.state.attribution import Kind
from tfmemtop.state.holders import Part
from tfmemtop.state.inventory import Inventory
from tfmemtop.state.lookup import hooked_of
from tfmemtop.state.model import Hooked
from tfmemtop.units import format_bytes

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
    traces: int = 9,
    code: str = "",
) -> Cause | None:
    """Return who keeps the memory; *made* is how often one function, which is defined in *file*, was made anew."""
    traced = events.Traced("step", 99, traces, file, 12, anew=made)
    process = hooked(events.Functions(t=3.0, pid=100, functions=[traced]))
    return keeper(Scene(stock(census, *parts, device=device), need, process, code))


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
    assert cause.text.startswith("The growing `losses` keeps 8 tensors of [256,1024]")
    at_once = kept(look(group("losses", MANY, 300 * MIB)), need=replace(FULL, rose=849 * MIB))
    assert at_once is not None and "growing" not in at_once.text, "all else may have risen"
    assert kept(look(group("losses", MANY - 1, 300 * MIB))) is None, "so few may be needed"
    assert kept(look(group("losses", MANY - 1, 500 * MIB))) is not None, "but not half of the memory"
    features = look(group("paint.<locals>.features", 4, 300 * MIB, items=4, shape=None))
    assert kept(features, need=replace(FULL, rose=300 * MIB)) is None, "what one step needs of several layers"
    few = look(group("epochs[*]", 4, 300 * MIB, items=4))
    assert kept(few, need=replace(FULL, rose=300 * MIB)) is not None, "but not as much as memory rose by"
    assert kept(few, need=replace(FULL, rose=299 * MIB)) is None
    hung = look(group("epochs[*]", 3, 300 * MIB, items=3), group("", 3, 300 * MIB))
    assert kept(hung) is not None, "nor if as many of that shape without a path, as logits, make it half"
    assert kept(look(*hung.alike, tapes=1)) is None, "but a tape may need those"
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


@pytest.mark.parametrize(
    ("holder", "said", "action"),
    [
        ("main.<locals>.errors[*].__traceback__", "The traceback of `errors[*]` in main()", Action.KEEP_MESSAGES),
        ("batches.<cycle>", "The itertools.cycle `batches`", Action.REPEAT_DATASET),
        ("waiting.queue", "The growing `waiting.queue`", Action.BOUND_QUEUE),
        ("rows.<generator>", "A local variable of the generator `rows`", Action.KEEP_ARRAYS),
    ],
)
def test_the_kind_of_holder_is_told_as_far_as_its_path_shows_it(holder: str, said: str, action: Remedy) -> None:
    cause = kept(look(group(holder, 900, 600 * MIB)))
    assert cause is not None and actions(cause) == [action] and cause.text.startswith(f"{said} keeps 900 tensors")


def test_what_functions_capture_in_several_cells_is_one_holder() -> None:
    cells = [group(f"penalties[*].__closure__[{cell}].cell_contents", 36, 200 * MIB, items=36) for cell in (0, 1)]
    cause = kept(look(*cells))
    assert cause is not None and (cause.count, cause.bytes) == (72, 400 * MIB)
    assert "`penalties[*]` keeps 36 functions, which captured 72 tensors" in cause.text
    inside = kept(look(group("monitor.__closure__[1].cell_contents['raw'][*]", 36, 600 * MIB, items=36)))
    assert inside is not None and "`…['raw'][*]` in what `monitor` captures keeps" in inside.text
    for path in ("error_handler.<locals>.args[*]", "raise_from_not_ok_status.<locals>.e.__traceback__"):
        passed = kept(look(group(path, 36, 600 * MIB, items=36)))
        assert passed is not None and "An argument of a call keeps 36 tensors" in passed.text
        assert actions(passed) == [Action.KEEP_ARRAYS]
        at_work = kept(look(group(path, 36, 600 * MIB, items=36)), code="whole = tf.stack(parts)")
        assert at_work is not None and "`tf.stack(parts)`" in at_work.text


def test_tensors_that_share_the_memory_of_numpy_arrays_are_not_of_the_pool() -> None:
    here = replace(part("", 600 * MIB, 60, Kind.TENSORS), python_name="shards")
    cause = kept(look(group("shards", 110, 1100 * MIB)), here)
    assert cause is not None and (cause.count, cause.bytes) == (60, 600 * MIB)


def test_tensors_in_the_items_of_a_dict_are_told_with_their_number() -> None:
    cause = kept(look(group("store[*].past[*]", 360, 600 * MIB, items=45)))
    assert cause is not None and "360 tensors of [256,1024] in 45 items: 600.0 MiB" in cause.text


def test_pieces_of_larger_tensors_keep_all_of_these() -> None:
    """``batch[0]`` has no memory of its own."""
    batches = replace(part("", 600 * MIB, 100, Kind.TENSORS, shape=None), python_name="images")
    cause = kept(look(group("images", 100, 20 * MIB)), batches)
    assert cause is not None and (cause.holder, cause.bytes, cause.count) == ("images", 600 * MIB, 100)
    assert "cut from larger ones" in cause.text and "6.0 MiB" in cause.evidence[0]
    whole = kept(look(group("images", 100, 600 * MIB)), batches)
    assert whole is not None and "larger" not in whole.text


def test_more_tensors_of_the_shape_without_a_path_are_told() -> None:
    def evidence(size: int) -> str:
        cause = kept(look(group("maps", 42, 400 * MIB), group("", 43, size)))
        assert cause is not None
        return " ".join(cause.evidence)

    assert "Python holds 43 more of that shape, 390.0 MiB" in evidence(390 * MIB)
    assert "more of that shape" not in evidence(MIB)
    two = kept(look(group("maps", 42, 400 * MIB), group("logs", 41, 390 * MIB)))
    assert two is not None and "`logs` keeps 41 more, 390.0 MiB." in two.evidence


def test_collections_that_matter_only_together_are_told_together() -> None:
    logs = look(*(group(f"log.{name}", 40, 200 * MIB) for name in ("mean", "z", "made")))
    cause = kept(logs)
    assert cause is not None and cause.text.startswith("`log.mean`, `log.z`, `log.made` keep 120 tensors: 600.0 MiB")
    assert kept(logs, need=replace(FULL, rose=299 * MIB)) is None, "all but these rose"


def test_gradients_are_kept_if_there_are_more_than_one_for_each_variable() -> None:
    weights = [events.Variable(f"w{i}", "variables", [1024, 1024 * i], "float32", "GPU:0", 40 * MIB) for i in range(10)]
    largest = [replace(one, name=f"grads[{i}]", kind="tensors") for i, one in enumerate(weights)]

    def cause(size: int, made_by: str = "BiasAddGrad") -> Cause | None:
        made = replace(part(made_by, size, shape=(1024, 1024)), python_name="grads")
        census = look(group("grads", 10, size, shape=None), variables=[*weights, *largest])
        return kept(replace(census, kinds={"GPU:0": {"variables": 400 * MIB}}), made)

    assert cause(400 * MIB) is None, "as in each step"
    several = cause(401 * MIB)
    assert several is not None and actions(several) == [Action.SUM_UP]
    weights_of_clients = cause(401 * MIB, made_by="Mul")
    assert weights_of_clients is not None and actions(weights_of_clients) == [Action.KEEP_ARRAYS]


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
    assert cause(31) is None and cause(64, tapes=1) is cause(64, tapes=1, code="model.fit(x)") is None
    census = look(group("", 900, 300 * MIB), group("memory.steps[*].image", 100, 40 * MIB, items=100))
    found = tensors_without_path(Scene(stock(census), FULL, hooked()))
    assert found is not None and (found.holder, found.count) == ("memory.steps[*].image", 1000)
    assert "at least 100 of Python's 1,000 tensors" in found.text, "the search ends in a large container"
    passed = group("error_handler.<locals>.args[*]", 16, 4 * MIB)
    unnamed = tensors_without_path(Scene(stock(look(passed, group("", 900, 300 * MIB))), FULL, hooked()))
    assert unnamed is not None and not unnamed.holder, "what a call is given is no holder of the rest"
    few = group("seen[*]", 20, 240 * MIB), group("", 20, 200 * MIB)
    fitting = hooked(events.Waiting(t=29.0, pid=100, operation=None, file="/a/train.py", line=9, code="model.fit(x)"))
    together = keeper(Scene(stock(look(*few, tapes=1)), FULL, fitting))
    assert together is not None and (together.holder, together.bytes) == ("seen[*]", 440 * MIB)
    assert keeper(Scene(stock(look(*few, tapes=2)), FULL, fitting)) is None, "a tape of the script's may hold them"


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
    assert cause.bytes and cause.count
    average = cause.bytes // cause.count
    assert any(f"~{format_bytes(average)}" in line for line in cause.evidence), "an average is no exact figure"
    assert (cause.count, cause.bytes) == (14, 600 * MIB) and "14 models with their optimizers" in cause.text
    assert actions(cause) == [Action.DROP_MODELS, Action.ONE_MODEL]
    in_keras = "/lib/keras/src/trainer.py"
    assert actions(kept(whole, file=in_keras)) == [Action.SEPARATE_PROCESS, Action.ONE_MODEL]
    called = kept(whole, file=in_keras, traces=2)
    assert actions(called) == [Action.DROP_MODELS, Action.ONE_MODEL], "Keras has compiled functions of one model only"
    plain = kept(look(variables, variables=copies))
    assert plain is not None and actions(plain)[0] is Action.BOUND_CACHE
    kinds = "variables", "optimizer"
    searched = [group("trials[*]", 56, 300 * MIB, kind, items=14, shape=None) for kind in kinds]
    found = kept(look(*searched))
    assert found is not None and found.holder == "trials[*]", "models of a search have different shapes"
    assert actions(kept(look(*searched), file=in_keras)) == [Action.SEPARATE_PROCESS]
    assert kept(look(*searched), need=replace(FULL, rose=299 * MIB)) is None, "made at once"
    going = replace(FULL, failed=False, rose=299 * MIB)
    assert kept(look(*searched), need=going) is not None, "the earlier half came before the later half of the time"
    assert kept(look(searched[0])) is None, "layers of one model"
    little = kept(look(searched[0], variables=named(*["Variable"] * 9)), need=replace(FULL, steady=True))
    assert little is not None and little.holder == "trials[*]", "no model is made little by little"
    assert kept(look(searched[0]), need=replace(FULL, steady=True)) is None, "other memory may have risen"
    part_found = [group("trials[*]", 20, 50 * MIB, kind, items=14, shape=None) for kind in kinds]
    sizes = [*named(*(f"net_{model}/a/kernel" for model in range(8))), *wide("net_8/a_1/kernel")]
    found = kept(look(*part_found, variables=sizes), file=in_keras)
    assert found is not None and found.holder == "trials[*]" and (found.bytes or 0) > 800 * MIB, "theirs by name"
    assert "~" in found.text and actions(found) == [Action.SEPARATE_PROCESS], "not one model, as their sizes differ"
    assert kept(look(group("model", 56, 300 * MIB, "variables", items=1))) is None, "one model is needed"
    assert kept(look(group("layers[*]", 12, 300 * MIB, "variables", items=4))) is None, "layers of one model"


def named(*names: str, kind: str = "variables") -> list[events.Variable]:
    return [events.Variable(name, kind, [1024, 25600], "float32", "GPU:0", 100 * MIB) for name in names]


def wide(*names: str) -> list[events.Variable]:
    return [replace(one, shape=[2048, 12800]) for one in named(*names)]


@pytest.mark.parametrize(
    ("variables", "number"),
    [
        (named("sequential/dense/kernel", "sequential_1/dense_1/kernel", "sequential_2/dense_2/kernel"), 3),
        (named("net/dense/kernel", "net_1/dense/kernel") + wide("net_2/dense/kernel"), 3),  # as of a search
        (named("dense/kernel", "dense/kernel") + wide("dense/kernel"), 0),
        (named("w", "w", "w"), 0),  # the layers of a script without Keras
        (named(*["net/dense/kernel"] * 3, *["net_1/dense/kernel"] * 2), 5),  # of several threads
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
    of_model = "/" in variables[0].name and variables[0].kind == "variables"
    assert (Action.DROP_MODELS in actions(cause)) == bool(number and of_model)
    assert (Action.FEWER_OPTIMIZERS in actions(cause)) == bool(number and variables[0].kind == "optimizer")
    of_keras = kept(look(variables=variables), file="/lib/keras/src/trainer.py")
    assert Action.FEWER_OPTIMIZERS not in actions(of_keras), "TensorFlow keeps them"
    assert kept(look(variables=variables), need=replace(FULL, rose=149 * MIB)) is None, "made at once"
    one = group("runs[0].model", 9, 100 * MIB, "variables", items=1), group("runs[0].model", 9, MIB, "optimizer", 1)
    among = kept(look(*one, variables=variables))
    of_models = number and variables[0].name.count("/") > 1
    assert ("some in `runs`" in among.text if among else False) == bool(of_models), "one was found in a list"


def test_copies_of_models_count_with_their_slots_though_the_last_has_none_yet() -> None:
    models = named(*(f"net_{model}/dense_{model}/kernel" for model in range(4)))
    slots = named(*(f"adam_{model}/net_{model}_dense_{model}_kernel_momentum" for model in range(3)), kind="optimizer")
    bias = replace(wide("net_0/dense_0/bias")[0], bytes=MIB)  # there was no room to list those of the others
    cause = kept(look(variables=[*models, *slots, bias]))
    assert cause is not None and (cause.count, cause.bytes) == (4, 700 * MIB)
    assert Action.ONE_MODEL in actions(cause)


def test_variables_that_python_has_dropped() -> None:
    older = part("", 400 * MIB, 90, Kind.BEFORE)
    assert kept(look(gone=[events.Gone("GPU:0", 40, 300 * MIB)])) is None, "nothing in the pool is as old"
    cause = kept(look(gone=[events.Gone("GPU:0", 40, 300 * MIB)]), older)
    assert cause is not None and (cause.key, cause.count, cause.bytes) == (Key.RUNTIME_KEEPS, 40, 300 * MIB)
    assert actions(cause) == [Action.PROCESS_EACH]
    of_optimizers = kept(look(gone=[events.Gone("GPU:0", 40, 300 * MIB, 280 * MIB)]), older)
    result = part("one_step_on_data", 400 * MIB, 90, Kind.XLA, shape=None)
    assert kept(look(gone=[events.Gone("GPU:0", 40, 300 * MIB)]), result) is None, "what a call needs while it runs"
    assert kept(look(gone=[events.Gone("GPU:0", 40, 300 * MIB)]), replace(result, kind=Kind.RESULTS)) == cause
    assert of_optimizers is not None and actions(of_optimizers)[0] is Action.ONE_OPTIMIZER
    assert kept(look(gone=[events.Gone("GPU:1", 40, 300 * MIB)])) is None
    line = events.OperationLine("Fill", "/a/train.py", 9, "model.fit(x)")
    value = replace(part("adam/Assign", 200 * MIB, 5, Kind.OPTIMIZER), layer="up", python_name="adam/m", line=line)
    like = kept(look(gone=[events.Gone("GPU:0", 40, 300 * MIB)]), older, value)
    assert like is not None and "of deleted models, made at train.py:9" in like.text
    assert any("made by model.fit(x)" in each for each in like.evidence)
    part_of_it = kept(look(gone=[events.Gone("GPU:0", 40, 500 * MIB)]), older)
    assert part_of_it is not None and "at least 400.0 MiB" in part_of_it.text, "the window is older than the census"
    # What a window has of the time before it bounds what TensorFlow can still hold.
    assert kept(look(gone=[events.Gone("GPU:0", 40, 300 * MIB)]), part("", 100 * MIB, kind=Kind.BEFORE)) is None


def test_what_was_made_as_the_value_of_a_variable_that_is_there_was_one_of_those_dropped() -> None:
    def size(operation: str) -> int | None:
        own = replace(part("AddV2", 100 * MIB, kind=Kind.VARIABLES), python_name="model/kernel")
        kernel = events.Variable("model/kernel", "variables", [256, 1024], "float32", "GPU:0", 100 * MIB)
        census = look(variables=[kernel], gone=[events.Gone("GPU:0", 3, 300 * MIB)])
        cause = kept(census, own, part(operation, 300 * MIB, 3))
        return cause.bytes if cause else None

    assert (size("AddV2"), size("Relu")) == (300 * MIB, None)


def test_what_was_recorded_of_tensors_without_a_path_shows_who_made_them() -> None:
    def evidence(recorded: int) -> str:
        line = events.OperationLine("concat", "/a/train.py", 29, "maps.append(gathered)")
        made = replace(part("all/concat", recorded * MIB, recorded), line=line)
        cause = kept(look(group("", 200, 600 * MIB)), made)
        return " ".join(cause.evidence) if cause else ""

    assert "Most of them were made by concat at train.py:29, maps.append(gathered)." in evidence(100)
    assert "Of 62 that were recorded, most were made by concat" in evidence(62)
    assert "made by" not in evidence(MANY - 1)


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
