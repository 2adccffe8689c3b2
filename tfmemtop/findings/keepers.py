"""Who keeps the memory that fills a pool: the causes in which more and more of it is held. Pure.

Each rule answers for one cause. It needs a holder that is there, and without whose memory there would have been room.
"""

import re
from collections.abc import Callable, Iterator

from tfmemtop.events.census import Alike, Unseen
from tfmemtop.findings.cause import LONGEST, Cause, Key, fitting
from tfmemtop.findings.names import PASSED, capital, holder_name, operation_name, own_path, quoted, spot, tensor_text
from tfmemtop.findings.remedy import Action, Remedy
from tfmemtop.findings.scene import MANY, MOST, Scene
from tfmemtop.findings.tensorflow_keepers import (
    SESSION,
    constants_captured,
    copies_of_host_tensors,
    dataset_buffer,
    dataset_results,
    graph_grows,
    is_keras,
    tape_open,
)
from tfmemtop.state.holdings import Kept
from tfmemtop.state.inventory import Group
from tfmemtop.state.windows import recorded
from tfmemtop.units import counted, format_bytes

_LOOSE, _SEVERAL = 32, 4
"""The least number of tensors without a path, or alike in a list as memory rose. Fewer may be those of one step, which
it needs."""

_NEARLY_ALL = 0.9  # share of the bytes of variables that have gone

_CAPTURED = re.compile(r"(.+)\.__closure__\[[\d*]+\]\.cell_contents(?:\[\*\])?")

_PREDICT = ".predict("

_OF_GRADIENTS = re.compile(r"gradient_tape/|Grad|Backprop")
"""What computes gradients, such as that of a bias. Copies of the weights, or their next values, are made otherwise."""

_OPEN = ("A Session of TensorFlow 1 keeps the variables of its graph until it is closed.",)

_HISTORY = ("Out", "_oh", "_dh", "_", "__", "___")
"""The variables in which IPython keeps the results of a notebook's cells."""


_BY_HOLDER = (
    ("__traceback__", Action.KEEP_MESSAGES, "errors.append(str(error))"),
    ("<cycle>", Action.REPEAT_DATASET, "batches = iter(data.repeat())  # not itertools.cycle(data)"),
    (".queue ", Action.BOUND_QUEUE, "queue.Queue(maxsize=8)"),
)
"""What helps where the holder's path shows what it is, with a line of code."""


Rule = Callable[[Scene], Cause | None]


def keeper(scene: Scene) -> Cause | None:
    """Return who keeps the memory; ``None`` if what is known shows nobody."""
    found = [cause for rule in RULES if (cause := rule(scene)) is not None]
    return max(found, key=lambda cause: cause.bytes or 0, default=None) or tensors_without_path(scene)


def notebook_history(scene: Scene) -> Cause | None:
    """IPython keeps the results of a notebook's cells."""
    kept = [one for one in scene.stock.kept if one.root in _HISTORY]
    size = sum(one.bytes for one in kept)
    if not kept or not scene.matters(min(size, scene.stock.in_use)):
        return None
    count = sum(one.count for one in kept)
    held = [one.holder for one in kept[:4]]
    return Cause(
        Key.NOTEBOOK_HISTORY,
        f"The notebook keeps the results of its cells: {', '.join(map(quoted, held))} hold {scene.sized(size)}.",
        ", ".join(held),
        size,
        count,
        (Action.CLEAR_RESULTS,),
        ("result = compute();  # no result is kept of a line that ends with ;", "%reset -f out"),
    )


def tensors_kept(scene: Scene) -> Cause | None:
    """A list, a dict or another object of the script's keeps tensors."""
    kept = [one for one in scene.stock.kept if not one.variables and one.count > 1]
    for one in kept:
        grew = one.items >= _SEVERAL and one.shape is not None and scene.need.rose >= one.bytes
        # Those without a path may hang on these: with the result of a softmax, Keras keeps its logits.
        alike = sum(loose.bytes for loose in scene.stock.loose if one.shape == tuple(loose.shape or ()))
        most = one.bytes + (0 if scene.tapes else alike) >= MOST * scene.stock.in_use
        several = one.count >= MANY or most or grew
        of_variables = _shaped_as(one, scene)
        if of_variables and one.bytes <= scene.stock.groups.get(Group.VARIABLES, 0):
            continue  # one for each variable, as every step needs them
        if one.root not in _HISTORY and several and scene.matters(one.bytes):
            remedy, code = _way_out(one, gradients=of_variables == "gradients")
            holder = own_path(one.holder)
            return Cause(
                Key.TENSORS_KEPT,
                _tensors_text(holder, one, scene, remedy.brief, of_variables),
                holder,
                one.bytes,
                one.count,
                (remedy,),
                (code,),
                tuple(filter(None, (_cut(one), _more(one, scene)))),
            )
    return _kept_by_several([one for one in kept if one.count >= MANY and one.root not in _HISTORY], scene)


def _kept_by_several(kept: list[Kept], scene: Scene) -> Cause | None:
    """Return that several collections of tensors, none of which matters alone, have grown together."""
    size, count = sum(one.bytes for one in kept), sum(one.count for one in kept)
    if len(kept) < 2 or not scene.matters(size) or scene.need.rose < size / 2:
        return None
    names = [holder_name(one.holder) for one in kept]
    texts = (
        f"{capital(', '.join(names[:number]))}{f' and {rest} more' if rest else ''} keep {count:,} tensors: "
        f"{scene.sized(size)}."
        for number in range(len(names), 0, -1)
        for rest in [len(names) - number]
    )
    return Cause(
        Key.TENSORS_KEPT,
        fitting(*texts, room=scene.room_at),
        kept[0].holder,
        size,
        count,
        (Action.KEEP_ARRAYS,),
        ("tensor.numpy()  # in the host's memory",),
    )


def _way_out(one: Kept, *, gradients: bool) -> tuple[Remedy, str]:
    """Return what helps against a collection of tensors that grows, with a line of code."""
    for part, remedy, code in _BY_HOLDER:
        if part in f"{one.holder} " and not PASSED.fullmatch(one.holder):
            return remedy, code
    if one.shape == ():
        return Action.KEEP_NUMBERS, "losses.append(float(loss))"
    if gradients:
        return Action.SUM_UP, "total = [t + g for t, g in zip(total, gradients)]"
    return Action.KEEP_ARRAYS, "tensor.numpy()  # in the host's memory"


def _cut(one: Kept) -> str:
    """Return what pieces of larger tensors are, and how large these are on average; empty if they are no pieces."""
    each = f"Each is {tensor_text(list(one.shape or ()), one.dtype)}"
    return f"{each}, and keeps all of the {format_bytes(one.bytes // one.count)} it was cut from." if one.pieces else ""


def _more(one: Kept, scene: Scene) -> str:
    """Return who else keeps many tensors, or how many of the same shape have no path; empty if these are few."""
    for other in scene.stock.kept:
        if other.holder != one.holder and not other.variables and other.count >= MANY and scene.matters(other.bytes):
            return f"{capital(holder_name(other.holder))} keeps {other.count:,} more, {format_bytes(other.bytes)}."
    for loose in scene.stock.loose:
        if one.shape == tuple(loose.shape or ()) and scene.matters(loose.bytes):
            more = f"Python holds {loose.count:,} more of that shape, {format_bytes(loose.bytes)}"
            return f"{more}, and no path to them was found."
    return ""


def _shaped_as(one: Kept, scene: Scene) -> str:
    """Return what tensors of several shapes are that are all as large as variables; empty if they are not."""
    look = scene.stock.look
    shapes = {tuple(each.shape) for each in (look.largest if look else ()) if each.name.startswith(one.root)}
    if one.shape is not None or not shapes or not shapes <= scene.stock.shapes:
        return ""
    made = [part for part in scene.stock.parts if part.python_name == one.holder]
    of_gradients = sum(part.count for part in made if _OF_GRADIENTS.search(part.operation))
    return "gradients" if of_gradients > sum(part.count for part in made) / 4 else "variables"


def tensors_without_path(scene: Scene) -> Cause | None:
    """Python keeps tensors in a way that shows no path: in a local variable, a thread's own data, or a library."""
    look = scene.stock.look
    if look is None or scene.tapes or not scene.stock.loose:
        return None
    most = scene.stock.loose[0]
    alike = (one for one in scene.stock.kept if one.shape == tuple(most.shape or ()) and not one.variables)
    part = next((one for one in alike if one.count >= MANY and not PASSED.fullmatch(one.holder)), None)
    size, count = min(most.bytes, scene.stock.rest), most.count
    if part is not None:  # of many objects in one container, not all are looked into
        size, count = size + part.bytes, count + part.count
    if count < _LOOSE or not scene.matters(size) or (look.tapes and part is None):
        return None  # or a step needs them
    predicts = any(stop is not None and _PREDICT in stop.code for stop in scene.stopped)
    kinds = [tensor_text(list(most.shape or []), dtype) for dtype in (most.dtype, None)]
    held = [f"Python holds {count:,} tensors of {what}: {scene.sized(size)}." for what in kinds]
    texts = [*(f"{one} What keeps them was not found." for one in held), *held]
    if part is not None:
        whose = f"{capital(holder_name(part.holder))} keeps at least {part.count:,} of Python's {count:,} tensors of"
        texts = [f"{whose} {what}; all {count:,} take {scene.sized(size)}." for what in kinds]
    return Cause(
        Key.TENSORS_KEPT,
        fitting(*texts, room=scene.room_at),
        part.holder if part else "",
        size,
        count,
        (Action.PREDICT_PARTS if predicts else Action.KEEP_ARRAYS,),
        evidence=(*_made_by(most, scene), *(() if part else _unseen(scene))),
    )


def _unseen(scene: Scene) -> tuple[str, ...]:
    """Return what the search for paths does not see, with an audit hook of the script's, if it has limited it."""
    look = scene.stock.look
    if look is None or look.hidden is Unseen.LATE:
        why = "the search for it was cut short" if look else "the script's objects were not searched"
        return (f"What keeps them is not known: {why}.",)
    hidden = (
        "They may be kept by a ContextVar, a thread's own data, a NumPy array of objects or (Python 3.12 and older) a "
        "local variable of a function that runs; or only by a reference cycle, which gc.collect() frees."
    )
    return (hidden, Unseen.AUDITED.text) if look.hidden is Unseen.AUDITED else (hidden,)


def _made_by(group: Alike, scene: Scene) -> Iterator[str]:
    """Yield which operation made most of a *group* of tensors, and at which line, as far as it was recorded."""
    parts = [part for part in scene.stock.parts if part.shape == tuple(group.shape or ()) and part.operation]
    recorded = sum(part.count for part in parts)
    if parts and parts[0].count >= MANY and parts[0].count * 2 >= recorded:
        made = parts[0]
        line = f" at {spot(made.line.file, made.line.line)}, {made.line.code}" if made.line else ""
        most = "Most of them" if recorded * 2 >= group.count else f"Of {recorded:,} that were recorded, most"
        yield f"{most} were made by {operation_name(made.operation)}{line}."


def variables_kept(scene: Scene) -> Cause | None:
    """Python keeps the variables of several models."""
    alike = scene.stock.copies
    whole = min(alike.bytes, scene.stock.in_use)  # a variable that is being made has no memory yet
    part = 2 if scene.need.failed else 4  # of models that come evenly, half are older than the later half of the time
    others = scene.stock.in_use - sum(scene.stock.groups.get(one, 0) for one in (Group.VARIABLES, Group.OPTIMIZER))
    for one in scene.stock.kept:
        # The layers of one model may lie in a list, too. Models are copies, or are made one after another. Those of a
        # search differ in their shapes.
        models = one.model and one.optimizer
        size, about = one.bytes, ""
        if models and one.items >= alike.number - 1 > 1 and not scene.matters(size):
            # All alike are theirs, though not all were found by this path. The last may not be in the list yet.
            size, about = whole * min(one.items, alike.number) // alike.number, "~"
        one_by_one = (one.shape is not None or models) and scene.need.rose >= size / part
        # Little by little, only variables can have risen.
        one_by_one |= scene.need.steady and scene.need.rose - others >= size / part
        copies = alike.number * 2 >= one.items
        if one.variables and one.items > 2 and (copies or (one_by_one and one.items >= MANY)) and scene.matters(size):
            each = one.count / one.items
            what = f"objects with {one.count} variables" if each > 1 else "variables"
            if one.optimizer:
                own = "objects with optimizers" if one.holder.endswith("[*]") else "optimizers"
                what = "models with their optimizers" if one.model else own
            remedies = _apart(scene, one.items, models, one.optimizer, copies and alike.same)
            text = f"{capital(holder_name(one.holder))} keeps {one.items} {what}: {about}"
            return _variables_kept(scene, text, one.holder, size, one.items, remedies)
    # A model may have many layers of one kind. They are all made at once; copies are made one after another. A script's
    # own variables may have one name in all layers.
    if "/" in alike.name and alike.number > 2 and scene.need.rose >= whole / part and scene.matters(whole):
        model, _, of_layer = alike.name.partition("/")
        what = f"{alike.number} models like {quoted(model)} are alive"
        if "/" not in of_layer:
            what = f"{alike.number} copies of variables such as {quoted(alike.name)} are alive"
        # The last look may be so old that it found but one or two in a list.
        listed = [one for one in scene.stock.kept if one.model and one.optimizer and "[" in one.holder]
        held = listed[0] if listed and "/" in of_layer else None
        running = scene.running if " for " in scene.code else ""  # a comprehension's list has no name
        where = f", some in {holder_name(held.holder.partition('[')[0])}" if held else running
        text = fitting(*(f"{what}{at}: " for at in (where, "")), room=scene.room_at + len(scene.sized(whole)))
        remedies = _apart(scene, alike.number, not alike.slots, alike.slots, alike.same)
        return _variables_kept(scene, text, held.holder if held else "", whole, alike.number, remedies)
    return None


def _variables_kept(
    scene: Scene, text: str, holder: str, size: int, number: int, remedies: tuple[Remedy, ...]
) -> Cause:
    whole, root = f"{text}{scene.sized(size)}", holder.partition("[*]")[0]
    beside = (one for one in scene.stock.kept if one.variables and holder != one.holder and one.items > 1)
    more = next((one for one in beside if one.holder.partition("[*]")[0] == root), None)
    kind = "" if more is None else "models " if more.model else "optimizers " if more.optimizer else ""
    if more is not None and more.model and Action.FEWER_OPTIMIZERS in remedies:
        remedies = (Action.DROP_MODELS, *remedies)
    elif holder and Action.DROP_MODELS in remedies:
        remedies = remedies[::-1]  # the script can drop what it holds
    also = f"; {holder_name(more.holder)} keeps {kind}{format_bytes(more.bytes)}" if more else ""
    unseen = () if holder else _OPEN if _in_sessions(scene) else _unseen(scene)
    return Cause(
        Key.VARIABLES_KEPT,
        fitting(f"{whole}{also}.", f"{whole}.", room=scene.room_at),
        holder,
        size,
        number,
        remedies,
        evidence=(f"On average, each takes ~{format_bytes(size // number)}.", *unseen),
    )


def _in_sessions(scene: Scene) -> bool:
    return any(window.function == SESSION for window in recorded(scene.hooked.windows.get(scene.stock.device)))


def _apart(scene: Scene, number: int, models: bool, optimizers: bool, same: bool) -> tuple[Remedy, ...]:
    """Return what frees the variables of a *number* of *models*, *same* if they are alike, or of *optimizers* alone."""
    if _in_sessions(scene):
        return (Action.SEPARATE_GRAPH,)
    functions = (course.function for course in scene.hooked.steps.courses.values())
    compiled = sum(function.traces for function in functions if is_keras(function.file))
    if compiled >= number / 2 and (models or optimizers):
        # TensorFlow keeps the variables of a function that Keras compiled. One that is only called has none.
        return (Action.SEPARATE_PROCESS, Action.ONE_MODEL) if same else (Action.SEPARATE_PROCESS,)
    if not models:
        return (Action.FEWER_OPTIMIZERS if optimizers else Action.BOUND_CACHE,)
    return Action.ONE_MODEL if same else Action.SEPARATE_PROCESS, Action.DROP_MODELS


def runtime_keeps(scene: Scene) -> Cause | None:
    """TensorFlow itself holds memory of variables that no Python object holds any more."""
    size = min(scene.stock.dropped, scene.stock.rest)
    held = scene.stock.in_use - scene.stock.rest
    if not scene.matters(size) or (size < held and not scene.need.failed):
        return None  # the model that is at work needs more than is kept of those before
    made, most = "", scene.stock.left_over
    count, whole_size, slots = scene.stock.gone
    of = "of deleted models" if most and most.layer else "that Python has deleted"
    remedies: tuple[Remedy, ...] = (Action.PROCESS_EACH,)
    if slots >= _NEARLY_ALL * whole_size:
        of, remedies = "of deleted optimizers", (Action.ONE_OPTIMIZER, *remedies)
    told = scene.sized(size, "~") if size >= _NEARLY_ALL * whole_size else scene.recorded(size)
    keeps, whole = f"TensorFlow keeps {counted(count, 'variable')} {of}", f": {told}."
    if most is not None:
        by = f", made by {most.line.code}" if most.line and most.line.code else ""
        made = f"There are {most.count} values of {quoted(most.python_name)}{by}."
    placed = f"{keeps}, made at {spot(most.line.file, most.line.line)}{whole}" if most and most.line else ""
    if placed and len(f"{placed} {Action.SEPARATE_PROCESS.brief}") <= LONGEST - scene.room:
        remedies = (*remedies[:-1], Action.SEPARATE_PROCESS)
    return Cause(
        Key.RUNTIME_KEEPS,
        fitting(*filter(None, (placed, keeps + whole)), room=scene.room, brief=remedies[0].brief),
        "TensorFlow",
        size,
        count,
        remedies,
        evidence=tuple(filter(None, ("del, clear_session and gc.collect do not free it.", made))),
    )


RULES: tuple[Rule, ...] = (
    notebook_history,
    tensors_kept,
    copies_of_host_tensors,
    variables_kept,
    runtime_keeps,
    tape_open,
    constants_captured,
    graph_grows,
    dataset_buffer,
    dataset_results,
)


def _tensors_text(path: str, one: Kept, scene: Scene, how: str, alike: str) -> str:
    """Return the sentence on what the holder with that *path* keeps: how many tensors, shaped *alike* what, in what.

    It ends with *how* that is avoided if there is room for it. What functions capture has a name that nobody knows.
    """
    captured = _CAPTURED.fullmatch(path)
    holder = holder_name(captured[1] if captured else path)
    if scene.need.failed and scene.grew(one.bytes) and holder.startswith("`"):
        holder = f"the growing {holder}"
    keeps = f"{capital(holder)} keeps "
    if captured:
        keeps += f"{counted(one.items, 'function')}, which captured " if one.items else "a function, which captured "
    call = scene.running if PASSED.fullmatch(path) else ""
    tensors, whole = f"{keeps}{counted(one.count, 'tensor')}", f"{call}: {scene.sized(one.bytes)}."
    if one.shape is None:
        kinds = [f" shaped as {alike}"] if alike else [""]
    elif one.pieces:
        kinds = [" cut from larger ones, which stay whole"]
    else:
        own = f" with {quoted(one.own)}" if one.own else ""
        kinds = [f" of {tensor_text(list(one.shape), dtype)}{own}" for dtype in (one.dtype, None)] + [own] * bool(own)
    items, root = "", ""
    if not captured and 1 < one.items < one.count:
        whose, _, inner = path.rpartition(".<locals>.")[2].partition("[*]")
        items, root = f" in {one.items} items", f" of {quoted(whose)}" if inner else ""
    texts = [f"{tensors}{kind}{more}{whole}" for more in (f"{items}{root}", items, "") for kind in kinds]
    return fitting(*texts, room=scene.room_at, brief=how)
