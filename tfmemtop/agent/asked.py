"""The output that an eager operation allocates: its shape and type, where the arguments leave no doubt of them.

The operations listed here make one allocation only: their output. Of their arguments, only TensorFlow's own tensors
and Python's numbers and lists are read. No operation runs, and nothing is read from a GPU.
"""

from typing import TYPE_CHECKING, Any, NamedTuple, Optional

from .class_parts import name_and_module
from .frame_locals import Running, locals_of, stack
from .one_step import LIST, TUPLE, rows

if TYPE_CHECKING:
    from collections.abc import Sequence

_ELEMENTWISE = {
    *("Relu", "Relu6", "Elu", "Exp", "Tanh", "Sigmoid", "Sqrt", "Rsqrt", "Square", "Neg", "Abs", "Log", "Log1p"),
    *("Sin", "Cos", "Sign", "Floor", "ZerosLike", "OnesLike", "Softplus"),
}
_BROADCASTING = {"AddV2", "Add", "Sub", "Mul", "RealDiv", "Div", "Maximum", "Minimum", "SquaredDifference"}
_SHAPED = {"Empty": "shape", "RandomUniform": "shape", "RandomStandardNormal": "shape", "TruncatedNormal": "shape"}
_MOST_EXTENTS = 16
_FALLBACK = "_eager_fallback"

_GONE = (AttributeError, IndexError, KeyError, TypeError, ValueError, RuntimeError)


class Output(NamedTuple):
    """The output of an operation; ``size`` in bytes."""

    shape: "list[int]"
    dtype: str
    size: int


def output(thread: int, operation: str, is_operation: Any) -> Optional[Output]:
    """Return the output of the *operation* that *thread* is running; ``None`` if it is not certain.

    *is_operation* is called with the code object of a frame, and returns whether that is a function of an operation.
    """
    try:
        running = [each for each in stack(thread) if is_operation(each.code)]
        while len(running) > 1 and running[-1].code.co_name.endswith(_FALLBACK):
            running.pop()  # its caller has the arguments as they were given
        return _output(operation, _Arguments(running[-1])) if running else None
    except _GONE:  # the operation has ended meanwhile, or this TensorFlow is made in another way
        return None


class _Arguments:
    """The arguments with which a function was called. A value is held only while it is read."""

    def __init__(self, running: Running) -> None:
        self._running = running
        self._locals = {each.name: each for each in locals_of(running)}
        self.first = running.code.co_varnames[0]

    def tensor(self, name: str) -> "Optional[tuple[list[int], Any]]":
        """Return shape and type of the argument *name*; ``None`` if it is not an eager tensor."""
        if not self._is(name, "EagerTensor"):
            return None
        value = self._value(name)
        value.backing_device  # noqa: B018 (raises if another thread is still making it)
        return list(value._shape_tuple()), value.dtype

    def dtype(self, name: str) -> Any:
        """Return the argument *name*; ``None`` if it is not one of TensorFlow's types."""
        return self._value(name) if self._is(name, "DType") else None

    def flag(self, name: str) -> bool:
        """Return the flag *name*, which is off where the call did not give it.

        Raises:
            ValueError: the argument is not a ``bool``.
        """
        value = self._value(name) if self._locals[name].kind is bool else None
        if value is None:
            raise ValueError(name)
        return bool(value)

    def number(self, name: str) -> bool:
        """Return whether the argument *name* is one of Python's numbers."""
        return self._locals[name].kind in (int, float, bool)

    def extents(self, name: str) -> "Optional[list[int]]":
        """Return the shape in the argument *name*: a list, a tuple or a small tensor in the host's memory.

        ``None`` if the argument is anything else.
        """
        local = self._locals[name]
        if local.kind in (list, tuple):
            read = rows(lambda: local.way(self._running.found()), LIST if local.kind is list else TUPLE)
            if read is None or any(kind is not int for kind in read.kinds):
                return None
            return list(self._value(name))
        known = self.tensor(name)
        if known is None or known[1].name not in ("int32", "int64") or len(known[0]) != 1:
            return None
        value = self._value(name)
        if known[0][0] > _MOST_EXTENTS or "CPU" not in value.backing_device:
            return None
        return [int(extent) for extent in value._numpy_internal()]

    def synchronous(self) -> bool:
        """Return whether the operation runs during its call, and not later in another thread."""
        return not self._value("_ctx")._default_is_async

    def _is(self, name: str, kind: str) -> bool:
        name, module = name_and_module(self._locals[name].kind)
        return name == kind and module.startswith("tensorflow.")

    def _value(self, name: str) -> Any:
        (value,) = self._locals[name].way(self._running.found())
        return value


def _output(operation: str, given: _Arguments) -> Optional[Output]:
    if not given.synchronous():
        return None
    if operation in _ELEMENTWISE:
        return _of(given.tensor(given.first))
    if operation in _BROADCASTING:
        one, other = given.tensor("x"), given.tensor("y")
        if one is not None and other is not None:
            shape = _broadcast(one[0], other[0])
            return None if shape is None or one[1] is not other[1] else _sized(shape, one[1])
        known, rest = (one, "y") if one is not None else (other, "x")
        return _of(known) if given.number(rest) else None
    if operation == "Fill":
        value = given.tensor("value")
        return None if value is None else _sized(given.extents("dims"), value[1])
    if operation == "Cast":
        source = given.tensor("x")
        return None if source is None else _sized(source[0], given.dtype("DstT"))
    if operation == "MatMul":
        return _product(given)
    return _sized(given.extents(_SHAPED[operation]), given.dtype("dtype")) if operation in _SHAPED else None


def _product(given: _Arguments) -> Optional[Output]:
    one, other = given.tensor("a"), given.tensor("b")
    if one is None or other is None or len(one[0]) != 2 or len(other[0]) != 2:
        return None
    return _sized([one[0][given.flag("transpose_a")], other[0][not given.flag("transpose_b")]], one[1])


def _broadcast(one: "Sequence[int]", other: "Sequence[int]") -> "Optional[list[int]]":
    """Return the shape of a result of two tensors, by NumPy's rule; ``None`` if their shapes do not fit together."""
    rank = max(len(one), len(other))
    pairs = list(zip([1] * (rank - len(one)) + list(one), [1] * (rank - len(other)) + list(other)))
    if any(first != second and 1 not in (first, second) for first, second in pairs):
        return None
    return [second if first == 1 else first for first, second in pairs]


def _of(known: "Optional[tuple[list[int], Any]]") -> Optional[Output]:
    return None if known is None else _sized(*known)


def _sized(shape: "Optional[list[int]]", dtype: Any) -> Optional[Output]:
    if shape is None or dtype is None or not dtype.size:
        return None
    size = dtype.size
    for extent in shape:
        size *= extent
    return Output(shape, dtype.name, size)
