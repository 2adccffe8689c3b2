"""Why a single request was too large: the causes in which one step asks for more than those before. Pure."""

import re
from collections.abc import Callable
from itertools import combinations, zip_longest
from math import prod

from msgspec.structs import replace

from tfmemtop.findings.cause import PREFIX, Cause, Key, advised, fitting
from tfmemtop.findings.larger import CONSTANT, LEAST, MUCH, batch_larger, longer_loop, step_larger
from tfmemtop.findings.names import holder_name, named_spot, operation_name, quoted, spot, tensor_text
from tfmemtop.findings.remedy import Action, Remedy
from tfmemtop.findings.request import (
    Request,
    is_vectorized,
    repeats,
    vectorized_name,
)
from tfmemtop.findings.room import higher_limit
from tfmemtop.findings.scene import FIT
from tfmemtop.state.anatomy import Anatomy
from tfmemtop.state.attribution import made_at
from tfmemtop.state.operation_names import Phase, named
from tfmemtop.units import format_bytes

_JOINS = {"ConcatV2", "Concat", "concat", "Pack", "TensorListConcatV2", "TensorListStack", "TensorScatterUpdate"}
"""Operations that make a larger tensor of smaller ones."""

_DENSE = {"UnsortedSegmentSum", "IndexedSlicesToDense", "SparseToDense", "ScatterNd"}
_NO_GRADIENT = re.compile(r"apply|minimize|fit\(|_on_batch\(|segment_|scatter|dense\(")
"""The calls in which an optimizer, not the script, may make a gradient dense, or what is made dense is no gradient."""
_PADDED = {
    "SparseToDense": ("It makes a sparse tensor dense.", Action.STAY_SPARSE),
    "RaggedTensorToTensor": ("It pads all rows to the longest.", Action.PAD_ALIKE),
    **dict.fromkeys(("Svd", "Qr"), ("It makes a square matrix of all rows.", Action.REDUCED_FORM)),
}
"""Operations whose result may be far larger than what they are given."""

_ELEMENTWISE = {
    *("add", "addv2", "sub", "mul", "realdiv", "truediv", "divnonan", "squareddifference", "maximum", "minimum", "pow"),
    *("equal", "notequal", "greater", "greaterequal", "less", "lessequal", "logicaland", "logicalor", "selectv2"),
}
"""Operations whose result is no larger than their largest operand, unless they broadcast them: names without ``_`` and
capitals."""

_OF_ONE = {
    *("Abs", "Cast", "Cos", "Elu", "Erf", "Exp", "Floor", "Gelu", "Log", "Log1p", "Neg", "Reciprocal", "Relu", "Rsqrt"),
    *("Selu", "Sigmoid", "Sign", "Sin", "Softmax", "Softplus", "Sqrt", "Square", "Tanh", "Transpose"),
}
"""Operations on one tensor, whose result is as large."""

_IN_FIT = (
    "signature = tf.type_spec_from_value(ARRAY[0]), tf.type_spec_from_value(y[0])",
    "data = tf.data.Dataset.from_generator(lambda: zip(ARRAY, y), output_signature=signature)",
    "model.fit(data.batch(32))  # not model.fit(ARRAY, y)",
)
_ROWS = (
    "signature = tf.type_spec_from_value(ARRAY[0])  # of one row",
    "data = tf.data.Dataset.from_generator(lambda: ARRAY, output_signature=signature).batch(32)",
)

_EAGER = "parts.append(part.numpy())  # in place of tf.concat", "np.concatenate(parts)  # once, at the end"
_IN_GRAPH = ("parts = parts.write(i, part)  # a tf.TensorArray, in place of tf.concat; after the loop: parts.concat()",)

_BY_ROW = (
    "tape.jacobian(y, x, experimental_use_pfor=False)  # row by row, on a tape with persistent=True",
    "tape.batch_jacobian(y, x)  # if y[i] depends only on x[i]; x: the input batch, not variables",
)

_WRAPPER = re.compile(r"error_handler\.<locals>|raise_from_not_ok_status\.<locals>")
"""Functions around each call of TensorFlow's and Keras's: what their variables hold has another name in the script."""

Rule = Callable[[Request], Cause | None]


def outlier(request: Request) -> Cause | None:
    """Return why the request was so large; ``None`` if nothing shows that it was larger than others."""
    return next((cause for rule in RULES if (cause := rule(request)) is not None), None)


def input_on_device(request: Request) -> Cause | None:
    """A whole NumPy array is copied to the device."""
    if request.asked is None or request.anatomy.operation not in (None, CONSTANT):
        return None  # an operation of the script's asked for it
    array = request.stock.array_of(request.asked)
    if array is None or array.bytes < LEAST or repeats(request):
        return None  # what is copied again and again is a batch
    return _input(holder_name(array.name), array.shape, array.dtype, array.bytes, request)


def copied_whole(request: Request) -> Cause | None:
    """A request for a constant is a copy from the host. So is one without an operation, if XLA cannot have made it."""
    a = request.anatomy
    if a.limit is None or a.operation not in (None, CONSTANT) or (a.message and "Dst tensor" not in a.message):
        return None
    if a.operation is None and not a.message and not a.on_cpu:
        return None  # what XLA asks for has no operation either
    if a.asked is None:
        # A GPU's error names no size. What finds no room in a pool that is hardly used is more than half of it.
        hardly = a.in_use is not None and a.in_use * 2 < a.limit
        return _input("An array", [], "", 0, request) if hardly and CONSTANT in a.message else None
    return _input("An array", [], "", a.asked, request) if a.asked >= max(LEAST, a.limit / 2) else None


def _input(name: str, shape: list[int], dtype: str, size: int, request: Request) -> Cause:
    a, error = request.anatomy, request.hooked.error
    sized = f" of {format_bytes(size)}" if size else ""
    what = f" ({tensor_text(shape, dtype)}, {format_bytes(size)})" if shape else sized
    whole = f"; the limit is {format_bytes(a.limit)}" if a.limit is not None else ""
    place = a.line or (f"{error.file}:{error.line}" if error and error.file else "")
    line = f" at {named_spot(place)}" if place else ""
    own = name.strip("`")
    in_python = own if all(part.isidentifier() for part in own.split(".")) else "x"
    code = _IN_FIT if error and FIT in error.code else _ROWS
    return Cause(
        Key.INPUT_ON_DEVICE,
        f"{name}{what} is copied from the host to the device as a whole{line}{whole}.",
        name.strip("`"),
        size or None,
        1,
        (Action.FEED_BATCHES,),
        tuple(line.replace("ARRAY", in_python) for line in code),
    )


def grown_by_copying(request: Request) -> Cause | None:
    """A tensor is made anew by a join, larger each time; the old one is still there."""
    a = request.anatomy
    if a.asked is None or a.shape is None or _base(a) not in _JOINS:
        return None
    stock = request.stock
    held = [(one.name, tuple(one.shape), one.bytes) for one in stock.singles if not of_call(one.name)]
    held += [
        ("", part.shape, part.requested)
        for part in stock.parts
        if part.count == 1 and part.shape and _is_by_same(part.operation, a)
    ]
    for name, old, size in held:
        if len(old) != len(a.shape):
            continue
        differ = [at for at, sides in enumerate(zip(old, a.shape, strict=True)) if sides[0] != sides[1]]
        if len(differ) == 1 and size * 2 >= a.asked > size:
            larger = f"{request.who} makes {holder_name(name) if name else 'a tensor'} anew, larger each time"
            both = f"{larger}: {format_bytes(a.asked)} beside the old {format_bytes(size)}"
            return Cause(
                Key.GROWN_BY_COPYING,
                advised(
                    *(
                        f"{both}{_free(a)}.",
                        f"{larger}, now {format_bytes(a.asked)}{_free(a)}.",
                        f"{both}.",
                        f"{larger}.",
                    ),
                    room=PREFIX,
                    brief=Action.CONCAT_ON_HOST.brief,
                ),
                name,
                size + a.asked,
                2,
                (Action.CONCAT_ON_HOST,),
                (
                    "x = tf.concat([x, part], 0)[-1000:]  # no more than is needed; or",
                    *(_IN_GRAPH if a.node else _EAGER),
                ),
                ("Each time needs a little more than the one before, so that no limit is enough for long.",),
            )
    return None


def _is_by_same(operation: str, a: Anatomy) -> bool:
    """Return whether an *operation* is the one that asked: the same node of a graph, which a loop runs again."""
    return operation == a.node if a.node else named(operation).base == operation_name(a.operation)


def _free(a: Anatomy) -> str:
    """Return why that was too much: the limit, or that what is free lies in smaller chunks."""
    if a.asked and a.cached and a.largest_free and a.cached >= a.asked > a.largest_free:
        return f"; {format_bytes(a.cached)} are free, in chunks up to {format_bytes(a.largest_free)}"
    return f"; the limit is {format_bytes(a.limit)}" if a.limit else ""


def dense_gradient(request: Request) -> Cause | None:
    """A line of the script makes the gradient of an embedding dense: as large as the whole table."""
    a = request.anatomy
    shape = tuple(a.shape or ())
    tables = [one for one in request.stock.tables if one[1] == shape]
    dense = [part for part in request.stock.parts if part.shape == shape and not part.python_name]
    looked_up = any("embedding" in name or "Gather" in name for name in request.stock.operations)
    names = ((name, named(name)) for name in sorted(request.stock.operations))
    # An optimizer of Keras's computes with whole tables in any case.
    own = (name for name, parsed in names if parsed.base in _DENSE and parsed.phase is not Phase.OPTIMIZER)
    by = next(filter(None, (made_at(request.hooked, name) for name in own)), None)
    at, code = (spot(by.file, by.line), by.code) if by else ("", "")
    if a.line and not a.in_graph and _base(a) in _DENSE and not _NO_GRADIENT.search(a.code):  # run eagerly
        at, code = named_spot(a.line), a.code
    if len(shape) != 2 or shape[0] < 8 * shape[1] or not tables or not looked_up or not at:
        return None
    size = a.asked or 4 * prod(shape)
    limit = f"; the limit is {format_bytes(a.limit)}" if a.limit else ""
    gradient = f"The gradient of {quoted(tables[0][0])} is made dense"
    place = f"{gradient}, {format_bytes(size)} for all rows, at {at}"
    texts = (f"{place}{how}{whole}." for how in (f": {code}", "") for whole in (limit, ""))
    return Cause(
        Key.DENSE_GRADIENT,
        fitting(*texts, room=PREFIX, brief=Action.KEEP_SPARSE.brief),
        tables[0][0],
        size,
        1 + len(dense),
        (Action.KEEP_SPARSE,),
        (
            "g = tf.IndexedSlices(g.values * 0.5, g.indices, g.dense_shape)  # any change, in place of * 0.5",
            "# not g = tf.convert_to_tensor(g) * 0.5",
        ),
        _use(a),
    )


def broadcast(request: Request) -> Cause | None:
    """An operation makes a large tensor of small ones: each element of one is combined with each of another."""
    a, look = request.anatomy, request.stock.look
    if look is None or not look.largest or a.asked is None or a.in_use is None:
        return None
    largest = max(one.bytes for one in look.largest)
    if not _is_elementwise(a) or a.asked < max(a.in_use, 4 * largest, LEAST):
        return None
    made = f" to {tensor_text(a.shape, None)}" if a.shape else ""
    shapes = sorted({tuple(one.shape) for one in look.largest})
    pairs = [pair for pair in combinations(shapes, 2) if list(_broadcast(*pair)) == a.shape]
    operands = " and ".join(tensor_text(list(shape), None) for shape in pairs[0]) if len(pairs) == 1 else "its operands"
    text = f"It broadcasts {operands}{made}."
    if len(pairs) == 1 and len(pairs[0][0]) == len(pairs[0][1]):
        # The script itself gave each an axis of 1, so it means to combine all.
        return step_larger(request) or batch_larger(request) or _too_large(a, text, Action.BOUND_REQUEST)
    held = f"The largest tensor that Python held then had {format_bytes(largest)}."
    code = "difference = y - tf.squeeze(predicted, -1)  # (N,), where (N,) - (N, 1) makes (N, N)"
    cause = _too_large(a, text, Action.CHECK_SHAPES, *([code] if len(pairs) == 1 else []))
    return replace(cause, evidence=(*cause.evidence, held))


def _is_elementwise(a: Anatomy) -> bool:
    return _base(a).replace("_", "").lower() in _ELEMENTWISE


def _base(a: Anatomy) -> str:
    return named(a.node or a.operation or "").base


def _broadcast(one: tuple[int, ...], other: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape to which two shapes are broadcast; empty if they cannot be, or if that changes neither."""
    pairs = [*zip_longest(reversed(one), reversed(other), fillvalue=1)]
    if any(first != second and 1 not in (first, second) for first, second in pairs):
        return ()
    return tuple(max(pair) for pair in reversed(pairs))


def vectorized(request: Request) -> Cause | None:
    """A Jacobian, or a map that TensorFlow vectorizes, computes all of its rows at once."""
    a = request.anatomy
    if a.asked is None or not is_vectorized(a):
        return None
    code = _BY_ROW if vectorized_name(a).endswith(".jacobian") else ()
    return _too_large(a, f"It computes all of its rows at once, here in {_base(a)}.", Action.FEWER_ROWS, *code)


def padded(request: Request) -> Cause | None:
    """A result is larger than all else: a sparse or ragged tensor made dense, or a matrix that need not be square."""
    a = request.anatomy
    text, remedy = _PADDED.get(_base(a), ("", None))
    if a.asked is None or remedy is None or a.asked < max(LEAST, a.in_use or 0):
        return None
    return _too_large(a, text, remedy)


def whole_again(request: Request) -> Cause | None:
    """An operation on a large tensor of the script's makes another one that is as large."""
    a = request.anatomy
    own = [one for one in request.stock.singles if not of_call(one.name)]
    alike = [one for one in own if one.shape == a.shape and one.bytes >= LEAST]
    if a.asked is None or not alike or alike[0].bytes < MUCH * request.stock.in_use:
        return None
    if not _is_elementwise(a) and _base(a) not in _OF_ONE:
        return None
    text = f"That is another tensor as large as {holder_name(alike[0].name)}, as each operation on it makes one."
    return _too_large(a, text, Action.IN_PARTS)


def of_call(name: str) -> bool:
    """Return whether a tensor of that *name* is held by a function around a call of TensorFlow's or Keras's."""
    return _WRAPPER.search(name) is not None


def _too_large(a: Anatomy, text: str, remedy: Remedy, *code: str) -> Cause:
    remedies = remedy, higher_limit(a)
    return Cause(Key.LIMIT_TOO_SMALL, text, bytes=a.asked, remedies=remedies, code=code, evidence=_use(a))


def _use(a: Anatomy) -> tuple[str, ...]:
    """Return the sentence on what was in use when there was no room; empty if that is not known."""
    limit = "" if a.limit is None else f"; the limit is {format_bytes(a.limit)}"
    return () if a.in_use is None else (f"{format_bytes(a.in_use)} were in use{limit}.",)


RULES: tuple[Rule, ...] = (
    input_on_device,
    grown_by_copying,
    dense_gradient,
    vectorized,
    broadcast,
    step_larger,
    longer_loop,
    padded,
    whole_again,
    copied_whole,
    batch_larger,
)
