"""The causes that TensorFlow keeps memory for the script: functions traced again, data sets, gradient tapes. Pure."""

import re
from collections import Counter
from pathlib import PurePath

from msgspec.structs import replace

from tfmemtop.events import OperationLine, Traced
from tfmemtop.events.census import DatasetBuffer
from tfmemtop.events.machine import is_cpu
from tfmemtop.findings.cause import Cause, Key, fitting
from tfmemtop.findings.names import argument_changed, capital, holder_name, operation_name, quoted, spot, tensor_text
from tfmemtop.findings.remedy import Action
from tfmemtop.findings.scene import GRADIENT, MANY, Scene
from tfmemtop.state.attribution import COPIED, Kind
from tfmemtop.state.holders import Part
from tfmemtop.state.holdings import TENSORS
from tfmemtop.state.inventory import NUMBER, is_constant
from tfmemtop.state.windows import recorded
from tfmemtop.tensorflow_text import failed_node
from tfmemtop.units import counted, format_bytes

SESSION = "SessionRun"
"""The function of the steps of a TensorFlow 1 session, whose variables the graph keeps."""

_TRACED = 3  # graphs of one function, from which on their constants may be many


def constants_captured(scene: Scene) -> Cause | None:
    """A ``tf.function`` that is made, or traced, again and again keeps a copy of its constants each time.

    Keras makes its own anew for each model. There the models are the cause.
    """
    functions = (one.function for one in scene.hooked.steps.courses.values())
    functions = (one for one in functions if not is_keras(one.file))
    made = max(functions, key=lambda one: max(one.anew, one.traces), default=None)
    if made is None or max(made.anew, made.traces) < _TRACED:
        return None
    constants = [part for part in scene.stock.parts if _of_graphs(part, made, scene)]
    size = min(scene.stock.rest, sum(part.bytes for part in constants))
    if not constants or not scene.matters(size):
        return None
    each = max(constants, key=lambda part: part.bytes)
    anew = made.anew >= _TRACED
    changed = made.changed[:1] if not anew else []
    what = f"was defined {made.anew} times" if anew else f"was traced {made.traces} times"
    why = f", as {quoted(changed[0].argument)} changed" if changed else ""
    name, place = f"tf.function {quoted(made.name)}", f" ({spot(made.file, made.line)})"
    line = f" from line {each.line.line}" if each.line and each.line.file == made.file else ""
    known = (place, why, line), ("", why, line), ("", why, ""), (place, "", line), (place, "", ""), ("", "", "")
    texts = (f"{name}{at} {what}{why}; each graph keeps an array{of}: {scene.recorded(size)}." for at, why, of in known)
    remedy = Action.DEFINE_ONCE if anew else Action.PASS_ARRAYS
    return Cause(
        Key.CONSTANTS_CAPTURED,
        fitting(*texts, room=scene.room, brief=remedy.brief),
        made.name,
        size,
        sum(part.count for part in constants),
        (remedy,),
        ("@tf.function  # once, before the loop", f"def {made.name}(table): ...") if anew else (),
        (
            f"The largest are {format_bytes(each.requested // max(1, each.count))} each.",
            *(f"Argument {argument_changed(one)} in {quoted(made.name)}." for one in changed),
        ),
    )


def is_keras(file: str) -> bool:
    """Return whether *file* is a module of Keras, which makes functions for each model."""
    return "keras" in PurePath(file).parts


def _of_graphs(part: Part, made: Traced, scene: Scene) -> bool:
    """Return whether graphs of the function *made* keep *part*: their constants.

    On a GPU a constant may have the name of the operation that needs it. Where each call has traced the function, a
    result that is there several times has outlived its call, unless a loop of the function's collects such results, or
    Python holds them, which only a look shows.
    """
    if is_constant(part, scene.stock.device):
        return True
    if scene.stock.look is None or part.python_name:
        return False
    several = part.count >= _TRACED and part.kind is Kind.ACTIVATIONS and "while" not in part.operation
    stack, code = part.line.stack if part.line else (), made.name.rpartition(".")[2]
    return made.calls == made.traces and several and any(call.startswith(f"{code} ") for call in stack)


def graph_grows(scene: Scene) -> Cause | None:
    """A script of TensorFlow 1 adds operations to its graph again and again; the session keeps what each one holds."""
    added: dict[OperationLine, list[Part]] = {}
    for part in scene.stock.parts:
        if part.line is not None and not part.python_name:
            added.setdefault(replace(part.line, operation=NUMBER.sub("", part.operation)), []).append(part)
    line, parts = max(added.items(), key=lambda each: len(each[1]), default=(None, []))
    size = sum(part.bytes for part in parts)
    # Each is there once, under a number of its own, and they have come one after another.
    if line is None or len(parts) < MANY or size > 4 * scene.need.rose or not scene.matters(size):
        return None
    if not any(window.function == SESSION for window in recorded(scene.hooked.windows.get(scene.stock.device))):
        return None
    place, code = f"The graph grows at {spot(line.file, line.line)}", f", by {line.code}"
    whole = f": {len(parts)} results, {scene.recorded(size)}."
    return Cause(
        Key.CONSTANTS_CAPTURED,
        fitting(f"{place}{code}{whole}", f"{place}{whole}", room=scene.room),
        line.code,
        size,
        len(parts),
        (Action.BUILD_ONCE,),
        (
            "value = tf.placeholder(tf.float32, shape)  # once, before the loop",
            "assign = tf.assign(variable, value)",
            "sess.run(assign, {value: array})  # in the loop",
        ),
        ("Each time the graph gets more operations, and the session keeps their memory until it is closed.",),
    )


_NEARLY = 0.9  # share of an element's bytes that its largest tensor has
_CACHE, _PREFETCH, _INTERLEAVE = "cache", "prefetch", "interleave"
_BUFFERS = {
    "shuffle": Action.SMALLER_BUFFER,
    _CACHE: Action.CACHE_IN_FILE,
    _PREFETCH: Action.PREFETCH_LESS,
    _INTERLEAVE: Action.INTERLEAVE_LESS,
}
"""The kinds of data sets that keep elements, with what helps."""

_MAKERS = {"shuffle": "ShuffleDataset", "cache": "CacheDataset"}
"""The names of TensorFlow's operations that make them. Keras itself prefetches some, so that says little."""


def dataset_buffer(scene: Scene) -> Cause | None:
    """A data set keeps elements: to shuffle them, or to have them again.

    Its elements are known by their allocations, which are many and alike. A GPU has only those that are prefetched to
    it: copies of the size of one element.
    """
    kind, on_gpu = _buffering(scene), not is_cpu(scene.stock.device)
    if kind is None or (on_gpu and kind != _PREFETCH):
        return None
    told = [one for one in _buffers(scene) if one.kind == kind and one.elements and one.each]
    largest = max(told, key=lambda one: (one.elements or 0) * (one.each or 0), default=None)
    room = (largest.elements or 0) * (largest.each or 0) if largest else 0
    each, count, size, most = _elements(scene)
    number = count
    if kind == _PREFETCH and largest is None:
        return None  # they may as well be what the data set's functions have made
    fits = largest is not None and _alike(largest, each)
    if on_gpu and (not fits or size > room or most is None or most.kind is not Kind.INPUT):
        return None
    if not on_gpu and largest is not None and (size < room or not fits):
        each, size = largest.each or 1, min(room, scene.stock.rest - _of_step(scene))
        number = size // each
    if not each or not scene.matters(size):
        return None
    made = f", made at {spot(most.line.file, most.line.line)}" if most and most.line and most.line.file else ""
    of = f"up to {largest.elements:,} elements of {format_bytes(each)}" if largest else ""
    if largest is not None and number < (largest.elements or 0):
        of = f"~{number:,} of at most {largest.elements:,} elements"
    what = f"The {'cache' if kind == _CACHE else f'{kind} buffer'} of a data set keeps "
    what += of or f"~{number:,} elements of {format_bytes(each)}"
    if kind == _INTERLEAVE and most is not None:
        of = tensor_text(list(most.shape or ()), most.dtype)
        what = f"The interleave of a data set keeps {count:,} tensors, such as {of}, of its open inputs"
        failure = scene.hooked.failure
        once = most.count == count and "while" not in most.operation
        if failure and once and failed_node(failure.error.message) == most.operation:
            what = f"An interleave has {count:,} inputs open, with {of} of each"  # its function makes one of each
    whole = f": {scene.sized(size, '~')}."
    return Cause(
        Key.DATASET_BUFFER,
        fitting(f"{what}{made}{whole}", f"{what}{whole}", room=scene.room),
        f"tf.data {kind}",
        size,
        count or number,
        (_BUFFERS[kind],),
    )


_OF_FUNCTION = re.compile(r"Dataset_(map|flat_map|interleave)_")
"""The name of the graph of a data set's function."""

_MAP, _BATCH, _AHEAD = "map", "batch", 3  # batches, or results of one operation: a step needs fewer
_OF_FUNCTIONS = {"flat_map": Action.SMALLER_PIECES, _INTERLEAVE: Action.INTERLEAVE_LESS}


def dataset_results(scene: Scene) -> Cause | None:
    """A data set makes batches ahead, or its functions keep what they have made.

    Batches are known by their size: tf.data itself allocates them, so that they have no operation.
    """
    if not is_cpu(scene.stock.device) or scene.stock.look is None:
        return None  # Python may hold what they have made
    sizes = [(one.elements or 0) * (one.each or 0) for one in _buffers(scene) if one.kind == "batch"]
    sizes = [size for size in sizes if not any(_alike(one, size) for one in _large(scene))]
    made: dict[tuple[str, str], list[Part]] = {}
    for part in scene.stock.parts:
        alike = part.count and any(size / 2 <= part.requested // part.count <= size for size in sizes)
        if function := _OF_FUNCTION.match(part.line.graph) if part.line else None:
            made.setdefault((function[1], part.operation), []).append(part)
        elif alike and not part.operation and not part.python_name:
            made.setdefault((_BATCH, ""), []).append(part)
    kinds: dict[str, list[Part]] = {}
    for (kind, _), parts in made.items():
        if kind not in (_MAP, _BATCH) or sum(part.count for part in parts) >= _AHEAD:
            kinds.setdefault(kind, []).extend(parts)
    kind, parts = max(kinds.items(), key=lambda one: sum(part.bytes for part in one[1]), default=("", []))
    held = sum(one.bytes for one in scene.stock.loose)  # by Python
    size = min(scene.stock.rest - held, sum(part.bytes for part in parts))
    if not parts or not scene.matters(size):
        return None
    most = max(parts, key=lambda part: part.bytes)
    same = [part for part in parts if part.operation == most.operation]
    count, each = sum(part.count for part in same), format_bytes(most.requested // most.count)
    what, made_at = f"tf.data keeps {count:,} batches of {each}, some made ahead", ""
    if most.line is not None:
        of = ", such as" if len({part.shape for part in same}) > 1 else " of"
        of_one = tensor_text(list(most.shape), None) if most.shape else each
        what = f"The {kind} of a data set keeps {counted(count, 'tensor')}{of} {of_one}"
        made_at = f", made at {spot(most.line.file, most.line.line)}"
    remedy = Action.SMALLER_BATCHES if kind == _BATCH and count < MANY else _OF_FUNCTIONS.get(kind, Action.LESS_AHEAD)
    whole = f": {scene.sized(size)}."
    return Cause(
        Key.DATASET_BUFFER,
        fitting(f"{what}{made_at}{whole}", f"{what}{whole}", room=scene.room_at, brief=remedy.brief),
        f"tf.data {kind}",
        size,
        count,
        (remedy,),
    )


def _elements(scene: Scene) -> tuple[int, int, int, Part | None]:
    """Return what may be a data set's elements, by their allocations: bytes of one, their number, bytes of all.

    The last is the largest part of them. What tf.data itself joins has no shape: it is known by its size, or as there
    are as many as of another tensor of the elements.
    """
    kinds = (Kind.ACTIVATIONS, Kind.UNKNOWN, Kind.TENSORS, Kind.INPUT)
    sizes = [one.each for one in _buffers(scene) if one.each]
    many = [part for part in scene.stock.parts if part.count >= MANY and part.kind in kinds and not part.python_name]
    counts = {part.count for part in many if part.shape is not None}
    parts = [
        part
        for part in many
        if part.shape
        or (part.shape is None and part.count in counts)
        or any(_NEARLY * size <= part.requested // part.count <= size for size in sizes)
    ]
    if not parts:
        return 0, 0, 0, None
    most = max(parts, key=lambda part: part.bytes)
    each = most.requested // most.count
    same = [part for part in parts if part.requested // part.count == each]
    return each, sum(part.count for part in same), min(sum(part.bytes for part in same), scene.stock.rest), most


def _of_step(scene: Scene) -> int:
    """Return the bytes of recorded results of the model's layers, which are no elements of a data set."""
    layers = {part.layer for part in scene.stock.parts if part.kind is Kind.VARIABLES and part.layer}
    results = (part for part in scene.stock.parts if part.kind in (Kind.ACTIVATIONS, Kind.GRADIENTS))
    return sum(part.bytes for part in results if part.layer in layers)


def _buffering(scene: Scene) -> str | None:
    """Return which kind of buffer a data set of the script's has: the first that can be large; ``None`` without one."""
    failure, waiting = scene.hooked.failure, scene.hooked.waiting
    next_waits = waiting is not None and waiting.operation == "IteratorGetNext"
    messages = ([failure.error.message] if failure else []) + [*scene.stock.operations] * next_waits
    if any("InterleaveDataset" in each for each in messages):
        return _INTERLEAVE  # an operation of its function failed, or waits
    told = _buffers(scene)
    known = {one.kind for one in _large(scene)}
    known |= {kind for kind, name in _MAKERS.items() if any(name in each for each in scene.stock.operations)}
    each, _, size, _ = _elements(scene)
    kinds = _BUFFERS if is_cpu(scene.stock.device) else (_PREFETCH,)
    return next((kind for kind in kinds if kind in known and size <= 2 * _room(kind, told, each)), None)


def _buffers(scene: Scene) -> list[DatasetBuffer]:
    """Return the data sets of the script's that keep elements."""
    look = scene.stock.look or scene.stock.census
    return list(look.buffers) if look else []


def _large(scene: Scene) -> list[DatasetBuffer]:
    """Return those that may keep many elements."""
    return [
        one
        for one in _buffers(scene)
        if one.kind in _BUFFERS and (one.kind != _PREFETCH or (one.elements or 0) >= MANY)
    ]


def _room(kind: str, told: list[DatasetBuffer], each: int) -> float:
    """Return how many bytes of elements of *each* bytes the buffers of a *kind* can keep: infinite if not known."""
    alike = [one for one in told if one.kind == kind and _alike(one, each)]
    return sum((one.elements or 0) * (one.each or 0) for one in alike) or float("inf")


def _alike(buffer: DatasetBuffer, each: int) -> bool:
    """Return whether allocations of *each* bytes may be elements of *buffer*, or the largest of their tensors."""
    return (buffer.each or 0) / 2 <= each <= (buffer.each or 0)


def copies_of_host_tensors(scene: Scene) -> Cause | None:
    """A list of the script's keeps tensors of the host, and so the copies that operations on the GPU made of them.

    TensorFlow keeps such a copy as long as the tensor itself: a ``TensorHandle`` has a mirror for each device.
    """
    look = scene.stock.look
    copied = [part for part in scene.stock.parts if part.shape == COPIED and part.count >= MANY]
    for group in look.alike if look and not is_cpu(scene.stock.device) else ():
        each = group.bytes // group.count
        parts = [part for part in copied if part.requested == each * part.count and part.count <= group.count]
        if group.kind != TENSORS or not is_cpu(group.device) or not parts or not scene.matters(parts[0].requested):
            continue
        who, most = f"{capital(holder_name(group.holder))} keeps" if group.holder else "Python keeps", parts[0]
        copies = "GPU copies of " + ("them" if most.count == group.count else f"the {most.count:,} that were used")
        return Cause(
            Key.TENSORS_KEPT,
            f"{who} {counted(group.count, 'tensor')} on the host, and TensorFlow keeps {copies}: "
            f"{scene.sized(most.requested)}.",
            group.holder,
            most.requested,
            most.count,
            (Action.KEEP_ARRAYS,),
            ("tensor.numpy()  # the GPU copy of an array is freed after the operation",),
            (f"Each is {tensor_text(list(group.shape or []), group.dtype)}.",),
        )
    return None


_ON_TAPE, _CALLS_ON_TAPE = 64, 4
"""The least number of tensors on one tape, or of calls of a function. A step needs fewer."""

_ON_ONE_TAPE = (
    "with tf.GradientTape() as tape:  # a new tape for each step; within one:",
    "    y = tf.recompute_grad(f)(x)  # in place of y = f(x): keeps x, and computes f(x) again for the gradient",
)
_OF_TAPES = ("with tf.GradientTape() as tape:  # without persistent=True, its gradient() frees what the tape keeps",)

_OUTPUTS = (Kind.ACTIVATIONS, Kind.LOSS, Kind.TENSORS)
"""The kinds of memory that a tape may keep."""


def tape_open(scene: Scene) -> Cause | None:
    """A gradient tape that is open, or persistent, keeps the result of each operation that it has recorded."""
    outputs: tuple[Kind, ...] = _OUTPUTS
    tapes = told = scene.tapes
    if not tapes and any(one is not None and GRADIENT in one.code for one in scene.stopped):
        # The tape records no longer, and keeps what it has recorded. Tensors that Python holds may be gradients.
        tapes, outputs = 1, _OUTPUTS[:2]
    known = [part for part in scene.stock.parts if part.count and part.kind in outputs]
    parts = [part for part in known if not is_constant(part, scene.stock.device)]
    size = min(scene.stock.rest, sum(part.bytes for part in parts))
    if not tapes or not scene.matters(size):
        return None
    alike: dict[int, list[Part]] = {}  # by the bytes of each: on a GPU the shapes of many outputs are not recorded
    for part in parts:
        alike.setdefault(part.requested // part.count, []).append(part)
    each, most = max(alike.items(), key=lambda one: one[0] * sum(part.count for part in one[1]))
    count, shapes = sum(part.count for part in most), {part.shape for part in most}
    # One call of a function makes each result once, unless it has a loop.
    calls = min(part.count if "/" in part.operation and "while" not in part.operation else 0 for part in most)
    several = count >= (MANY if tapes > 2 else _ON_TAPE) or calls >= _CALLS_ON_TAPE
    several = several and sum(part.bytes for part in most) * 2 >= size
    if (not several and tapes < MANY) or (not told and len({part.operation for part in most}) == 1):
        return None  # as a single step may need it; or no forward pass, of which a tape keeps several operations
    shape = shapes.pop() if len(shapes) == 1 else None
    what = tensor_text(list(shape), None) if shape else f"{format_bytes(each)} each"
    made = Counter[str]()
    for part in most:
        made[operation_name(part.operation) or "other results"] += part.count
    by = ", ".join(f"{number:,} {name}" for name, number in made.most_common(3) if number * 4 >= count / len(made))
    where = scene.stock.look.tapes_in if scene.stock.look else ""
    holder, holds = ("A GradientTape", "holds") if tapes == 1 else (f"{tapes} gradient tapes", "hold")
    text = f"{holder} {holds} {scene.recorded(size)}."
    if where and tapes > 2:
        text = f"{holder}, most in {holder_name(where)}, hold {scene.recorded(size)}."
    return Cause(
        Key.TAPE_OPEN,
        text,
        where or holder,
        size,
        count,
        (Action.DROP_TAPES if tapes > 2 else Action.TAPE_EACH_STEP,),
        _OF_TAPES if tapes > 2 else _ON_ONE_TAPE,
        (f"The tape{'s' * (tapes > 1)} recorded {by} of {what}.",),
    )
