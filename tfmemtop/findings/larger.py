"""Why a single request was too large: it, its batch, or the rounds of a loop are more than before. Pure."""

import re
from collections import Counter
from collections.abc import Sequence
from statistics import median_low

from tfmemtop.events import Holders
from tfmemtop.findings.cause import PREFIX, Cause, Key, fitting
from tfmemtop.findings.names import argument_changed, operation_name, quoted, tensor_text
from tfmemtop.findings.remedy import Action, Remedy
from tfmemtop.findings.request import (
    Request,
    asked_by,
    at_line,
    compiled_name,
    largest_before,
    largest_of_tracings,
    smaller_batch,
)
from tfmemtop.findings.scene import MANY
from tfmemtop.state.anatomy import Anatomy
from tfmemtop.state.attribution import Kind
from tfmemtop.state.model import Hooked
from tfmemtop.state.operation_names import named
from tfmemtop.state.windows import recorded, unpacked
from tfmemtop.units import MIB, format_bytes

CONSTANT = "_EagerConst"
"""The operation that copies an array of the host."""

LEAST = 8 * MIB
LARGER, _LARGER_TRACING = 1.5, 1.05  # times the largest before
MUCH = 0.25  # share of what is in use

_MADE = Kind.ACTIVATIONS, Kind.GRADIENTS, Kind.LOSS, Kind.TENSORS
"""The kinds of memory that a step makes."""

_USUAL = "fit"
"""The phase that goes without saying."""

_IN_LOOP = re.compile(r"(^|/)while(_\d+)?/body/")
_PUSHED = "TensorListPushBack"
_ROUNDS, _MORE_ROUNDS = 8, 1.1  # at least so many, and so many times those before
_OF_LOOP = 0.1  # share of the bytes of a loop's largest operation from which on another counts


def step_larger(request: Request) -> Cause | None:
    """A batch, a length or an evaluation asks for more than those before."""
    a = request.anatomy
    if a.asked is None or a.asked < LEAST or (a.shape and tuple(a.shape) in request.stock.shapes):
        return None  # the size of a variable or of its gradient is not changed by a batch
    if a.operation == CONSTANT and a.shape is None:
        return None  # it copies arrays of all kinds, which are not alike
    if in_first_step(a, request.hooked, request.t):
        return None  # what was smaller was another layer's
    stock = request.stock
    like = a.operation, a.shape, request.began, stock.shapes, a.line, a.node
    larger, past = LARGER, largest_before(request.hooked, stock.device, *like)
    if a.operation and compiled_name(a) not in ("", "step") and not a.node:
        # What XLA needs for one tracing is always the same. Steps of Keras have one name in fit and in evaluate.
        past = largest_of_tracings(request.hooked, stock.device, a.operation, request.began)
        larger = _LARGER_TRACING if a.asked > (a.in_use or 0) else LARGER  # else what is in use may matter more
    if past is None or a.asked < larger * past.bytes:
        return None
    there = past.shape and any(one.shape == past.shape and not one.python_name for one in stock.parts)
    if there and not a.node and list(past.shape[:1]) == (a.shape or [])[:1]:
        return None  # run eagerly, all layers ask by one name: it may be another one's, of the same batch
    shape = f", {tensor_text(a.shape, None)}" if a.shape else ""
    most = f"{tensor_text(list(past.shape), None)}, " if past.shape else ""
    asked = f"asked for {format_bytes(a.asked)}{shape}; before, at most {most}{format_bytes(past.bytes)}"
    phase = f" in {request.phase}" if request.phase not in ("", _USUAL) else ""
    who, remedy = f"{request.who}{phase}", _bound(a.node or "", a.shape or (), past.shape or (), in_graph=a.in_graph)
    # What helps matters more than the line: that stands in the evidence.
    name = asked_by(a)[0] or "TensorFlow"
    return Cause(
        Key.STEP_LARGER,
        fitting(
            *(f"{each} {asked}." for each in (who, f"{name}{phase}", name, request.who)),
            room=PREFIX,
            brief=remedy.brief,
        ),
        who,
        a.asked,
        1,
        (remedy,),
        evidence=_differs(request),
    )


def batch_larger(request: Request) -> Cause | None:
    """Much of what the step has made has a larger batch than before, whatever it asked for at last."""
    stock = request.stock
    for part in stock.parts:
        if part.kind not in _MADE or part.bytes < max(LEAST, MUCH * stock.in_use):
            continue
        if not part.shape or part.python_name or part.count >= MANY:
            continue  # it may be kept
        past = smaller_batch(request.hooked, stock.device, part, request.began, stock.shapes)
        if past is None or part.requested < LARGER * past.bytes * part.count:
            continue
        name = operation_name(part.operation) + (f" of {quoted(part.layer)}" if part.layer else "")
        phase = f" in {request.phase}" if request.phase not in ("", _USUAL) else ""
        now, before = (tensor_text(list(shape), None) for shape in (part.shape, past.shape))
        return Cause(
            Key.STEP_LARGER,
            f"{name}{phase} made {now}; before, at most {before}, {format_bytes(past.bytes)}.",
            name,
            part.bytes,
            part.count,
            (_bound(part.operation, part.shape, past.shape, in_graph="/" in part.operation),),
            evidence=(
                f"What {name} made is {format_bytes(part.bytes)} of the {format_bytes(stock.in_use)} in use.",
                *((f"{request.who} then asked for {format_bytes(request.asked)}.",) if request.asked else ()),
            ),
        )
    return None


def _bound(operation: str, now: Sequence[int], before: Sequence[int], *, in_graph: bool) -> Remedy:
    """Return what to bound, by the shapes of an operation's result *now* and *before*: rows, or what each of them has.

    Rows of several dimensions are a batch where they were made in a graph. Others may be the whole data set, or what
    the rounds of a loop made.
    """
    if len(now) != len(before) or not now:
        return Action.BOUND_REQUEST
    if now[0] == before[0]:
        return Action.BOUND_LENGTH
    if list(now[1:]) != list(before[1:]):
        return Action.BOUND_REQUEST
    batch = in_graph and len(now) > 2 and not _joins_list(operation)
    return Action.BOUND_BATCH if batch else Action.FEWER_ROWS


def _joins_list(operation: str) -> bool:
    """Return whether an *operation* joins the tensors of a list, such as a TensorArray that a loop has filled."""
    return named(operation).base == "TensorListStack"


def in_first_step(a: Anatomy, hooked: Hooked, t: float) -> bool:
    """Return whether a compiled function asked for it, before any step was whole at *t* seconds."""
    first = hooked.steps.first_step
    return (a.operation or "").startswith("__") and (first is None or first > t)


def _differs(request: Request) -> tuple[str, ...]:
    """Return which argument of the function that asked had another shape in the newest whole call that traced it.

    Or that the request joins a list.
    """
    if request.anatomy.shape and _joins_list(request.anatomy.node or ""):
        return (
            f"The request joins a list of {request.anatomy.shape[0]:,} tensors, such as one for each round of a loop.",
        )
    name = operation_name(request.anatomy.operation)
    for course in request.hooked.steps.courses.values():
        for one in course.function.changed if name == f"tf.function {quoted(course.function.name)}" else ():
            if one.before != one.after and "[" in one.after and "None" not in one.after:
                return (f"In calls before, argument {argument_changed(one)}.",)
    return ()


def longer_loop(request: Request) -> Cause | None:
    """A loop of a graph runs for more rounds than before, or at all, and what each has computed is still there."""
    parts = [part for part in request.stock.parts if _IN_LOOP.search(part.operation)]
    size = sum(part.bytes for part in parts)
    if not parts or size * 2 < request.stock.in_use:
        return None
    counts, sizes = Counter[str](), Counter[str]()
    for part in parts:
        counts[part.operation] += part.count
        sizes[part.operation] += part.bytes
    # An operation may have several results a round, such as a split, or none in some.
    rounds, operation = median_low(
        (counts[name], name) for name in sizes if sizes[name] >= _OF_LOOP * max(sizes.values())
    )
    windows = recorded(request.hooked.windows.get(request.stock.device))
    newest = max((window.began for window in windows if window.began <= request.t), default=0.0)
    # What ended later, or without a function, may be of the step that found no room.
    before = [window for window in windows if window.function and window.ended <= min(newest, request.began)]
    past = [found for window in before if (found := _ended_rounds(window, operation))]
    most = max(past, default=0)
    if rounds < _ROUNDS or rounds < _MORE_ROUNDS * most:
        return None
    # The loop of a gradient reads what the loop has pushed on lists. A TensorArray of the script's is no such list.
    why = " for the gradient" if any(_PUSHED in part.operation for part in parts) else ""
    name = request.anatomy.operation or ""
    who = at_line(operation_name(name) if name.startswith("__") else "TensorFlow", request.anatomy.line)
    results, sized = f"{who} keeps the results of {rounds:,} rounds of a loop", format_bytes(size)
    told = f" (before, at most {most:,}): {sized}." if most else f": {sized}."
    texts = f"{results}{why}{told}", f"{results}{told}"
    remedy = Action.SHORTER_LOOP
    return Cause(
        Key.STEP_LARGER if most else Key.LIMIT_TOO_SMALL,
        fitting(*texts, room=PREFIX, brief=remedy.brief),
        who,
        size,
        rounds,
        (remedy,),
        evidence=(f"They are kept{why}." if why else "", "Each round needs as much again."),
    )


def _ended_rounds(window: Holders, operation: str) -> int:
    """Return the rounds of a loop with *operation* at the peak of *window*; zero if the loop had not ended with it."""
    course = unpacked(window)
    made = {number for number, kind in enumerate(course.kinds) if course.name(kind) == operation}
    peak, end = (
        sum(course.holdings[place] in made for place in course.alive(at)) for at in (window.peak_at, course.events - 1)
    )
    return peak if end < peak else 0
