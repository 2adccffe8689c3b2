"""The diagnosis: which cause explains an allocation that failed. Pure.

The order is: who keeps the memory, or why the request was so large; only if neither is shown, the limit, the card and
fragmentation.
"""

from msgspec.structs import replace

from tfmemtop.findings.cause import Cause, Key
from tfmemtop.findings.compiled import with_buffer
from tfmemtop.findings.contents import FULLER, listed, named_part, with_use
from tfmemtop.findings.keepers import keeper
from tfmemtop.findings.larger import in_first_step
from tfmemtop.findings.names import holder_name, tensor_text
from tfmemtop.findings.outliers import of_call, outlier
from tfmemtop.findings.remedy import Action, without_batches
from tfmemtop.findings.request import Request, makes_variable
from tfmemtop.findings.rise_causes import cause_of_rise
from tfmemtop.findings.rising import EPOCHS, in_pieces, larger_each_time, merged, rise_until, risen
from tfmemtop.findings.room import between, crowded_out, fragmented, higher_limit, no_room
from tfmemtop.findings.scene import GRADIENT, LONG_AGO_S, MANY, Need, Scene
from tfmemtop.state import State
from tfmemtop.state.anatomy import Anatomy, waited
from tfmemtop.state.attribution import Kind
from tfmemtop.state.history import Trend
from tfmemtop.state.inventory import Group, Inventory, inventory
from tfmemtop.state.lookup import hooked_of
from tfmemtop.state.model import Hooked
from tfmemtop.state.operation_names import named
from tfmemtop.units import MIB, counted, format_bytes, spoken

_OF_THE_REQUEST = (Key.INPUT_ON_DEVICE, Key.GROWN_BY_COPYING)
_WARM_UP = 0.25
"""A share of the time, in which a model is made."""

_NAMELESS = Kind.BEFORE, Kind.UNKNOWN

_OF_MODEL = Kind.VARIABLES, Kind.OPTIMIZER, Kind.GRADIENTS
"""The kinds of memory that do not depend on the batch, if the gradients are those of variables."""

_OF_BATCH = frozenset((Action.REDUCE_BATCH, Action.REDUCE_HALVED, Action.NEED_LESS, Action.BOUND_REQUEST))

_ONE_HOT = "one_hot", "onehot"
_HALF_PRECISION = "float16", "bfloat16"

_SHARE = 0.1
"""The least share of the memory in use of what the report names."""

_MOSTLY = 0.3
"""The least share of the memory in use of a kind that the verdict names."""

_NAMED = 3  # tensors

_FILLED_AT_LEAST, _FILLED_SHARE = 8 * MIB, 0.125
"""The least rise that counts as filling a pool, also as a share of what was in use when the pool was full."""

_LARGER = 1.25  # times what earlier steps needed
_NO_LOOK = (
    "Who holds it is not known: the script's objects were not searched in time. A higher limit gives time for it."
)
_WAITED_S, _NEXT_S = 10.0, 3.0
"""Seconds that TensorFlow looks for room before an allocation fails, and at most from that to the next one. Meanwhile
the memory in use does not change."""


def explained(state: State, a: Anatomy, t: float) -> Cause:
    """Return the cause of allocation *a*, which failed, or found no room, at *t* seconds of the session."""
    hooked = hooked_of(state, a.pid)
    if hooked is None or a.device is None or a.in_use is None or a.scratch:
        return no_room(a)
    began = _stood_still(state, hooked, t)
    stock = inventory(hooked, a.device, a.in_use, t, began)
    failure = hooked.failure if hooked.failure and hooked.failure.error.t == t else None
    trend = (failure.trends if failure else hooked.trends).get(a.device)
    whole = a.limit if a.limit is not None else a.card_total
    asked = a.asked if a.asked is not None else a.more_than or 0
    before = [window for window in trend.whole.windows if window.start < began] if trend else []
    rose = risen(before or trend.whole.windows, _WARM_UP) if trend else 0
    large = outlier(Request(a, stock, hooked, t, _phase(state, a.pid, t)))
    crowd = crowded_out(a)
    if large is not None and large.key in _OF_THE_REQUEST and crowd is None:
        return large
    steady = trend is not None and rise_until([trend.whole.windows], began) is not None
    scene = Scene(stock, Need(asked, whole, True, rose, steady), hooked, a.code)
    kept = keeper(scene)
    if crowd is not None and (kept is None or 2 * rose < (kept.bytes or 0)):
        return crowd
    if large is not None and (kept is None or (large.bytes or 0) > (kept.bytes or 0)):
        return large
    filled = rose >= _FILLED_SHARE * a.in_use and whole is not None and a.in_use - rose + asked <= whole
    if kept is None and (growing := larger_each_time(scene, rose if filled else None)) is not None:
        return growing
    # If the pool held much more before, what it keeps now is not why there is no room.
    was_fuller = trend is not None and a.in_use <= FULLER * trend.peak
    if was_fuller and (cut := fragmented(a)) is not None:
        return _at_once(between(cut, stock, a.code), a)
    if kept is not None:
        return _of_search(kept, t - stock.look.t if stock.look else 0)
    # If not one step has found enough, what one needs is not known.
    peak = 0 if in_first_step(a, hooked, t) else trend.peak if trend else None
    full = _grown(stock, hooked, trend, a, began) or _full(stock, no_room(a, peak), a)
    full = with_buffer(full, stock, hooked, a)
    if _fills_queue(stock):
        queue = "Most of what is in use are elements of a tf.queue, or like them."
        return replace(full, remedies=(Action.SMALLER_QUEUE,), evidence=(queue, *full.evidence))
    return _at_once(_beyond_all(between(full, stock, a.code), hooked, trend, a, began - LONG_AGO_S), a)


def _phase(state: State, pid: int, t: float) -> str:
    """Return the name of the script's innermost phase at *t*, such as ``evaluate``; empty if it is not known."""
    told = state.run.phases.values() if state.run else ()
    at = [one for one in told if one.pid == pid and one.began <= t and (one.ended is None or one.ended >= t)]
    return max(at, key=lambda one: one.began).name if at else ""


def _beyond_all(cause: Cause, hooked: Hooked, trend: Trend | None, a: Anatomy, until: float) -> Cause:
    """Return *cause* with how much steps *until* then needed in all, where that was less than what was needed now."""
    busiest = hooked.steps.busiest
    until = min(until, busiest.last.t) if busiest else until  # what came after the last step was none
    before = [window.high for window in trend.whole.windows if window.start < until] if trend else []
    steps, unit = hooked.steps.made(0.0, until)
    asked, peak = a.asked or 0, max(before, default=0)
    if cause.key is not Key.LIMIT_TOO_SMALL or steps < MANY or (a.in_use or 0) + asked < _LARGER * peak:
        return cause
    text = f"The {steps:,.0f} {unit} before used at most {format_bytes(peak)}."
    mostly = (*(f"{one} {text}" for one in (*cause.mostly, cause.text)), text, *cause.mostly)
    cause = replace(cause, evidence=(text, *cause.evidence), mostly=mostly)
    if asked <= peak:
        return cause
    others = (one for one in cause.remedies if one is not Action.IN_PARTS)  # the first remedy says that too
    return replace(cause, remedies=(Action.BOUND_REQUEST, *others))


def _at_once(cause: Cause, a: Anatomy) -> Cause:
    """Return *cause* with how many threads ran the line that asked, where each needs memory for its own batch."""
    if a.at_once < 2 or not (cause.key is Key.FRAGMENTATION or _OF_BATCH.intersection(cause.remedies)):
        return cause
    text = f"{a.at_once} threads ran this line at once."
    mostly = tuple(f"{text} {one}" for one in (*cause.mostly, cause.text))
    # There may be no room for what the figures show.
    evidence, remedies = (text, cause.text, *cause.evidence), (Action.FEWER_CALLS, *cause.remedies)
    return replace(cause, evidence=evidence, mostly=(*mostly, text), remedies=remedies)


def _full(stock: Inventory, cause: Cause, a: Anatomy) -> Cause:
    """Return *cause*, where nobody keeps the memory, with what was in use when the request *a* found no room."""
    limited = cause.key is Key.LIMIT_TOO_SMALL
    made = makes_variable(stock, a) if limited else None
    if made is not None:
        kept_in = (one for one in stock.kept if one.variables and one.items > 1)
        most = [((holder_name(one.holder), "", ""), one.bytes) for one in kept_in]
        use = [text for one in most if one[1] >= _MOSTLY * stock.in_use for text in with_use(cause, stock, a, [one])]
        first = (f"It computes a variable's first value. {one}" for one in cause.mostly or (cause.text,))
        return replace(
            cause,
            evidence=("The first value of a variable was being computed.", *cause.evidence),
            mostly=(*use[:-2], *first),
            remedies=without_batches(cause.remedies, made),
        )
    tape = "A GradientTape was open." if stock.look and stock.look.tapes else ""
    many = (part for part in stock.parts if part.count >= MANY and part.bytes >= _MOSTLY * stock.in_use)
    named_ones = [part for part in many if part.operation and "/" not in part.operation]
    temporary = (part.bytes for part in named_ones if (part.region, part.operation) == ("temp", a.operation))
    scratch = 2 * sum(temporary) > dict(stock.by_kind).get(Kind.ACTIVATIONS, 0)
    kept = any(part.kind not in (Kind.XLA, Kind.RESULTS, *_OF_MODEL) for part in named_ones)
    if limited and kept:  # what was run eagerly leaves so many results only if they are kept, as by a tape
        instead = Action.LESS_ON_TAPE if tape or GRADIENT in a.code else Action.KEEP_ARRAYS
        instead = Action.FEWER_ROWS if scratch else instead
        cause = replace(cause, remedies=without_batches(cause.remedies, instead))
    beside = not tape and (_beside_training(stock, a.asked or 0) or _is_alone(a))
    if limited and beside:
        cause = replace(cause, remedies=without_batches(cause.remedies, Action.IN_PARTS))
    if limited and a.dtype == "double":
        cause = replace(cause, remedies=(Action.USE_FLOAT32, *cause.remedies[-2:]))
    known = [(kind, size) for kind, size in stock.by_kind if kind not in _NAMELESS and size >= _SHARE * stock.in_use]
    loose = stock.loose[0] if stock.loose else None
    if not known and loose is not None and loose.bytes >= _MOSTLY * stock.in_use:
        of_one = f"{counted(loose.count, 'tensor')} of {tensor_text(list(loose.shape or []), None)}"
        mostly = with_use(cause, stock, a, [((of_one, "", ""), loose.bytes)])
        return replace(cause, mostly=mostly, evidence=(f"Python holds {of_one}.", *cause.evidence))
    if not known:
        return replace(cause, remedies=without_batches(cause.remedies, Action.NEED_LESS))
    words = {
        Kind.XLA: "XLA's buffers",
        Kind.RESULTS: "results of compiled calls",
        Kind.TENSORS: _tensors_word(stock, a.code),
        Kind.ACTIVATIONS: "scratch memory" if scratch else "results of operations" if beside else "activations",
    }
    purposes = [(words.get(kind, kind.value), size) for kind, size in known if kind is not Kind.OPTIMIZER]
    if Kind.OPTIMIZER in dict(known):
        rest_of_it = dict(known)[Kind.OPTIMIZER] - stock.slots  # temporaries, or slots that were not found
        purposes += [("optimizer slots", stock.slots), ("other optimizer memory", rest_of_it)]
    rest = stock.in_use - sum(size for kind, size in stock.by_kind if kind not in _NAMELESS)
    if rest >= _MOSTLY * stock.in_use:  # else two figures would be taken for all that is in use
        purposes.append(("unknown", rest))
    purposes.sort(key=lambda one: -one[1])
    kinds = [((word, "", ""), size) for word, size in purposes if size >= _SHARE * stock.in_use][:_NAMED]
    large = [part for part in stock.parts if part.operation and part.bytes >= _SHARE * stock.in_use]
    parts = [(named_part(part), part.bytes) for part in large[:_NAMED]]
    own = [one for one in stock.singles if one.bytes >= _SHARE * stock.in_use and not of_call(one.name)][:_NAMED]
    much = sum(one.bytes for one in own) >= _MOSTLY * stock.in_use
    held = [((holder_name(one.name), "", ""), one.bytes) for one in own if much]
    largest = f"{'Python holds' if held else 'The largest results:'} {listed(held or parts)}." if held or parts else ""
    evidence = (f"In use: {listed(kinds)}.", largest, _unused(stock), tape)
    if not limited:
        return replace(cause, evidence=(*cause.evidence, *evidence))
    cause = replace(cause, evidence=(*evidence, *cause.evidence))
    if stock.in_use >= (a.asked or 0):
        stays = {kind for kind, size in known[:2] if size >= _MOSTLY * stock.in_use} & {*_OF_MODEL[:2]}
        what = held or ([] if stays else parts)
        alone = len(kinds) == 1 and what and known[0][0] is Kind.TENSORS  # that all are tensors says little
        cause = replace(cause, mostly=with_use(cause, stock, a, what, *([] if alone else [kinds])))
    if any(named(name).base.lower() in _ONE_HOT for name in (a.node or "", *(part.operation for part in large))):
        cause = replace(cause, remedies=(Action.KEEP_INTEGERS, *cause.remedies[-2:]))
    gradients = (part for part in stock.parts if part.kind is Kind.GRADIENTS and part.shape)
    of_batch = sum(part.bytes for part in gradients if part.shape not in stock.shapes)
    of_model = max(stock.model, sum(size for kind, size in known if kind in _OF_MODEL) - of_batch)
    trained = [one for one in stock.kept if one.model and one.optimizer and one.bytes >= _MOSTLY * stock.in_use]
    if len(trained) > 1:
        each = [((holder_name(one.holder), "", ""), one.bytes) for one in trained]
        if sum(one.bytes for one in trained) > stock.in_use:  # the values of one that is being made have no memory yet
            names, recorded = ", ".join(name for (name, *_), _ in each), dict(known)
            size = sum(recorded.get(kind, 0) for kind in _OF_MODEL[:2])
            each = [((names, "", ""), size)] if size else []
        mostly = with_use(cause, stock, a, each, kinds)
        return replace(cause, mostly=mostly, remedies=without_batches(cause.remedies, Action.DROP_MODELS))
    if of_model >= (stock.in_use + (a.asked or 0)) / 2:
        trains = stock.slots or Kind.OPTIMIZER in dict(known) or any(one.optimizer for one in stock.kept)
        instead = Action.SMALLER_MODEL if trains else Action.FEWER_WEIGHTS
        return replace(cause, remedies=without_batches(cause.remedies, instead))
    if large and all(part.shape and len(part.shape) > 2 and part.shape[0] == 1 for part in large):
        return replace(cause, remedies=without_batches(cause.remedies, Action.BOUND_LENGTH))  # it is a batch of one
    if any(part.dtype in _HALF_PRECISION and part.bytes >= MIB for part in stock.parts):
        return replace(cause, remedies=without_batches(cause.remedies, Action.REDUCE_HALVED))
    return cause


def _unused(stock: Inventory) -> str:
    """Return how much of what is in use no tensor uses, so that a size larger than its shape's is understood."""
    size = sum(part.bytes - part.requested for part in stock.parts)
    if size < _SHARE * stock.in_use:
        return ""
    return f"The chunks are {format_bytes(size)} larger in all than their tensors."


def _tensors_word(stock: Inventory, code: str) -> str:
    """Return what the tensors are that Python holds.

    They are gradients if *code* takes or applies some, and they have no more and no other shapes than variables.
    """
    sizes = dict(stock.by_kind)
    large = (part for part in stock.parts if part.kind is Kind.TENSORS and part.bytes >= MIB)
    fit = sizes.get(Kind.TENSORS, 0) <= sizes.get(Kind.VARIABLES, 0) and all(
        part.shape in stock.shapes for part in large
    )
    if fit and "gradient" in code:
        return "gradients"
    return "tensors" if stock.by_kind[0][0] is Kind.TENSORS else "other tensors"


def _fills_queue(stock: Inventory) -> bool:
    """Return whether most of what is in use was made as it was put in a queue, or is like what a queue gave back.

    No look at Python found them: TensorFlow itself keeps the elements of a ``tf.queue``.
    """
    if sum(part.bytes for part in stock.parts if "Enqueue" in part.operation) * 2 >= stock.in_use:
        return True
    given = [part for part in stock.parts if part.shape and "Dequeue" in part.operation]
    shapes = {shape for part in given for shape in (part.shape, (part.shape or ())[1:]) if shape}
    others = (part for part in stock.parts if part not in given and part.kind is not Kind.TENSORS)
    return stock.look is not None and (
        sum(part.bytes for part in others if part.shape in shapes and part.count >= MANY) * 2 >= stock.in_use
    )


def _beside_training(stock: Inventory, asked: int) -> bool:
    """Return whether no model is there yet, and most of what is needed was made by no layer and for no gradient.

    That is what is in use and the *asked* bytes.
    """
    if (
        stock.census is None
        or stock.groups.get(Group.VARIABLES)
        or any(part.kind is Kind.GRADIENTS for part in stock.parts)
    ):
        return False
    bare = (part.bytes for part in stock.parts if part.kind in (Kind.ACTIVATIONS, Kind.TENSORS) and not part.layer)
    return sum(bare) + asked >= (stock.in_use + asked) / 2


def _is_alone(a: Anatomy) -> bool:
    """Return whether the request was one operation's, run eagerly, and larger than all that was in use."""
    return a.operation is not None and not a.in_graph and (a.asked or 0) > (a.in_use or 0)


def _grown(stock: Inventory, hooked: Hooked, trend: Trend | None, a: Anatomy, full: float) -> Cause | None:
    """Return that memory rose until the pool was *full* (seconds), where without that there would have been room."""
    if trend is None or a.in_use is None:
        return None
    histories = [series.windows for series in (trend.whole, trend.long, trend.short)]
    histories += [merged(trend.whole.windows, times) for times in EPOCHS]
    rise = rise_until(histories, full)
    # Who holds variables and slots is known. More than the rest has not risen but as a model was made.
    rest = a.in_use - sum(size for kind, size in stock.by_kind if kind in _OF_MODEL[:2])
    if rise is None or not max(_FILLED_AT_LEAST, a.in_use * _FILLED_SHARE) <= rise.size <= rest:
        return None
    whole = a.limit if a.limit is not None else a.card_total
    if a.asked is not None and whole is not None and a.in_use - rise.size + a.asked > whole:
        return None
    steps, unit = hooked.steps.made(rise.start, rise.end)
    many = (part for part in stock.parts if part.count >= MANY and part.kind not in _OF_MODEL)
    nameless = sum(part.bytes for part in many if not (part.operation or part.python_name))
    if (steps < MANY and nameless * 2 < rise.size) or not in_pieces(hooked, a.device, rise.size):
        return None  # as if a model were being made, or a few tensors replaced by ever larger ones
    each = f", by {format_bytes(int(rise.size / steps))} a {unit.rstrip('s')}" if steps >= MANY else ""
    held = stock.loose[0] if stock.loose else None
    if (
        held is not None
        and not (stock.look and stock.look.tapes)
        and held.count >= MANY
        and (rise.size <= 2 * held.bytes <= 2 * a.in_use)
    ):
        what = f"{counted(held.count, 'tensor')} of {tensor_text(list(held.shape or []), None)}, "
        return Cause(
            Key.TENSORS_KEPT,
            f"Memory that was not freed rose{each}: Python holds {what}{format_bytes(held.bytes)} of the "
            f"{format_bytes(stock.in_use)} in use.",
            bytes=held.bytes,
            count=held.count,
            remedies=(Action.KEEP_ARRAYS,),
            evidence=("No path to them was found in Python.",),
        )
    text = f"Memory that was not freed rose from {format_bytes(rise.first)} to {format_bytes(rise.last)}{each}, and "
    text += "filled the pool."
    if stock.look is None and (seen := cause_of_rise(hooked, stock.device, trend)) is not None:
        return replace(seen, evidence=(*seen.evidence, text))
    return Cause(
        Key.GROWTH,
        text,
        bytes=rise.size,
        remedies=(Action.SHOW_PROCESS,) if stock.look else (higher_limit(a),),
        evidence=("Who holds it is not known.",) if stock.look else (_NO_LOOK,),
    )


def _stood_still(state: State, hooked: Hooked, failed: float) -> float:
    """Return when the allocation that failed at the time *failed* began to wait for room, or others just before it."""
    waiting = waited(hooked, failed)
    began = waiting.t if waiting and waiting.t <= failed else failed - _WAITED_S
    for one in reversed(state.run.complaints if state.run else ()):
        others = not one.harmless and one.pid in (hooked.hello.pid, None) and one.at <= failed + _NEXT_S
        if others and one.at - _WAITED_S < began - _NEXT_S < one.at:
            began = one.at - _WAITED_S
    return began


def _of_search(kept: Cause, ago_s: float) -> Cause:
    """Return the cause with how long ago what is *kept* was looked for, if that was not just now."""
    if ago_s < LONG_AGO_S:
        return kept
    seen = f"The script's objects were last searched {spoken(ago_s)} earlier."
    return replace(kept, evidence=(*kept.evidence, seen))
