"""Who keeps the memory that fills a pool: gradient tapes. Pure."""

from collections import Counter

from tfmemtop.findings.cause import Cause, Key, fitting
from tfmemtop.findings.names import capital, holder_name, operation_name, tensor_text
from tfmemtop.findings.remedy import Action
from tfmemtop.findings.scene import MANY, Scene
from tfmemtop.state.attribution import Kind
from tfmemtop.state.holders import Part
from tfmemtop.state.inventory import is_constant
from tfmemtop.units import format_bytes

_ON_TAPE = 64
"""The least number of tensors on one tape. Fewer may be those of one step, which it needs."""

_GRADIENT = ".gradient("

_ON_ONE_TAPE = (
    "with tf.GradientTape() as tape:  # a new tape for each step; within one:",
    "    y = tf.recompute_grad(f)(x)  # in place of y = f(x): keeps x, and computes f(x) again for the gradient",
)
_OF_TAPES = ("with tf.GradientTape() as tape:  # without persistent=True, its gradient() frees what the tape keeps",)

_OPEN_EACH, _DROP_EACH = "Use a tape for each round of a loop, or tf.recompute_grad.", "Drop each after its gradient()."

_OUTPUTS = (Kind.ACTIVATIONS, Kind.LOSS, Kind.TENSORS)
"""The kinds of memory that a tape may keep."""


def tape_open(scene: Scene) -> Cause | None:
    """A gradient tape that is open, or persistent, keeps the result of each operation that it has recorded."""
    outputs: tuple[Kind, ...] = _OUTPUTS
    tapes = (scene.stock.look.tapes or 0) if scene.stock.look else 0
    if not tapes and any(one is not None and _GRADIENT in one.code for one in scene.stopped):
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
    several = sum(part.bytes for part in most) * 2 >= size and count >= (MANY if tapes > 2 else _ON_TAPE)
    told = scene.stock.look is not None and scene.stock.look.tapes
    if (not several and tapes < MANY) or (not told and len({part.operation for part in most}) == 1):
        return None  # as a single step may need it; or no forward pass, of which a tape keeps several operations
    shape = shapes.pop() if len(shapes) == 1 else None
    what = tensor_text(list(shape), None) if shape else f"{format_bytes(each)} each"
    made = Counter[str]()
    for part in most:
        made[operation_name(part.operation)] += part.count
    by = ", ".join(f"{number:,} {name}" for name, number in made.most_common(3) if number * 4 >= count / len(made))
    where = scene.stock.look.tapes_in if scene.stock.look else ""
    holder, holds = ("A GradientTape", "holds") if tapes == 1 else (f"{tapes} gradient tapes", "hold")
    advice = _DROP_EACH if tapes > 2 else _OPEN_EACH
    text = f"{holder} {holds} {scene.sized(size)}."
    if where and tapes > 2:
        text = f"{capital(holder_name(where))} keeps {holder}, which hold {scene.sized(size)}."
    return Cause(
        Key.TAPE_OPEN,
        fitting(f"{text} {advice}", text, room=scene.room_at),
        where or holder,
        size,
        count,
        (Action.DROP_TAPES if tapes > 2 else Action.TAPE_EACH_STEP,),
        _OF_TAPES if tapes > 2 else _ON_ONE_TAPE,
        (f"The tape{'s' * (tapes > 1)} recorded {by} of {what}.",),
    )
