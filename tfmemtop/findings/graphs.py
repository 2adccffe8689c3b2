"""The causes that graphs keep memory: those of a function that is traced again, or one that grows. Pure."""

from pathlib import PurePath

from msgspec.structs import replace

from tfmemtop.events import OperationLine, Traced
from tfmemtop.findings.cause import Cause, Key, fitting
from tfmemtop.findings.names import argument_changed, quoted, spot
from tfmemtop.findings.remedy import Action
from tfmemtop.findings.scene import MANY, Scene
from tfmemtop.state.attribution import Kind
from tfmemtop.state.holder_choice import recorded
from tfmemtop.state.holders import Part
from tfmemtop.state.inventory import NUMBER, is_constant
from tfmemtop.units import format_bytes

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
    constants = [part for part in scene.stock.parts if _of_graphs(part, made, scene.stock.device)]
    size = min(scene.stock.rest, sum(part.bytes for part in constants))
    if not constants or not scene.matters(size):
        return None
    each = max(constants, key=lambda part: part.bytes)
    anew = made.anew >= _TRACED
    changed = made.changed[:1] if not anew else []
    what = f"was defined {made.anew} times" if anew else f"was traced {made.traces} times"
    why = f", as {argument_changed(changed[0])}" if changed else ""
    name, place = f"tf.function {quoted(made.name)}", f" ({spot(made.file, made.line)})"
    line = f" of line {each.line.line}" if each.line and each.line.file == made.file else ""
    known = (place, why, line), (place, why, ""), ("", why, line), (place, "", line), (place, "", ""), ("", "", "")
    texts = (f"{name}{at} {what}{why}; each graph keeps a constant{of}: {scene.sized(size)}." for at, why, of in known)
    return Cause(
        Key.CONSTANTS_CAPTURED,
        fitting(*texts, room=scene.room),
        made.name,
        size,
        sum(part.count for part in constants),
        (Action.DEFINE_ONCE if anew else Action.PASS_ARRAYS,),
        ("@tf.function  # once, before the loop", f"def {made.name}(table): ...") if anew else (),
        (
            f"The largest are {format_bytes(each.requested // max(1, each.count))} each.",
            *(f"Argument {argument_changed(one)} in {quoted(made.name)}." for one in changed),
        ),
    )


def is_keras(file: str) -> bool:
    """Return whether *file* is a module of Keras, which makes functions for each model."""
    return "keras" in PurePath(file).parts


def _of_graphs(part: Part, made: Traced, device: str) -> bool:
    """Return whether graphs of the function *made* keep *part*: their constants.

    On a GPU a constant may have the name of the operation that needs it. Where each call has traced the function, a
    result that is there several times has outlived its call, unless a loop of the function's collects such results.
    """
    if is_constant(part, device):
        return True
    several = part.count >= _TRACED and part.kind is Kind.ACTIVATIONS and "while" not in part.operation
    stack = part.line.stack if part.line else ()
    return made.calls == made.traces and several and any(call.startswith(f"{made.name} ") for call in stack)


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
    whole = f": {len(parts)} times, {scene.sized(size)}."
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
