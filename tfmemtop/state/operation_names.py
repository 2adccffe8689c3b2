"""Parses TensorFlow's names of operations: an operation's layer, and the part of a step in which it runs.

A name is a path of scopes and ends with the operation itself. Keras adds another number to every scope of a layer when
it traces the layer: ``sequential_1/dense_1_2/MatMul`` is the product of layer ``dense_1``. The gradient of an operation
has the whole name of that operation as its scope.
"""

import re
from collections.abc import Iterable
from enum import Enum
from functools import lru_cache

import msgspec

_CONSTANT = re.compile(r"(?:.*/)?(?:Const(?:_.*)?|_\d+__cf__\d+)")


def names_constant(operation: str) -> bool:
    """Return whether *operation* makes a constant of a graph: the script's, or what TensorFlow computed beforehand."""
    return _CONSTANT.fullmatch(operation) is not None


class Phase(Enum):
    """The part of a step in which an operation runs."""

    FORWARD = "forward"
    BACKWARD = "backward"
    OPTIMIZER = "optimizer"
    LOSS = "loss"
    INPUT = "input"
    FUNCTION = "function"  # the operation is the call of a whole function


class Named(msgspec.Struct, frozen=True):
    """A parsed name. ``scopes`` has the outermost first, with TensorFlow's numbers.

    Scopes of calls and of gradients are left out.
    """

    phase: Phase
    scopes: tuple[str, ...]
    operation: str

    @property
    def base(self) -> str:
        """The operation without its number; for the call of a function, that function."""
        return _FUNCTION.sub("", unnumbered(self.operation) or self.operation)

    @property
    def forward(self) -> str:
        """The operation without its number; for a gradient, the forward operation without its number."""
        of_gradient = self.phase is Phase.BACKWARD and self.scopes
        return (unnumbered(self.scopes[-1]) or self.scopes[-1]) if of_gradient else self.base


_OPTIMIZERS = "adam|adam_w|adamw|adamax|nadam|sgd|rm_?sprop|adagrad|adadelta|ftrl|lion|lamb|muon|adafactor|momentum"
_CALL = re.compile(
    r"(Stateful)?PartitionedCall(_\d+)?|while(_\d+)?|cond(_\d+)?|body|_\d+|replica_\d+|ConstantFolding"
    r"|ArithmeticOptimizer|inject"
)
_BACKWARD = re.compile(r"gradient_tape|gradients(_\d+)?")
_OPTIMIZER = re.compile(
    rf"(loss_scale_)?(optimizer|({_OPTIMIZERS}|gradient_?descent)(optimizer)?)(_\d+)?", re.IGNORECASE
)
_APPLIED = re.compile(r"(Resource)?(Sparse)?Apply[A-Z]")
"""An optimizer's own operations. In TensorFlow 1 they may lie in the scope of a model."""
_LOSS = re.compile(
    r"(compile_)?loss(es)?(_\d+)?|(\w+_)?crossentropy(_\d+)?|mean_(absolute|squared)_(percentage_|logarithmic_)?error(_\d+)?"
)
_INPUT = re.compile(
    r"(Anonymous)?(MultiDevice)?Iterator|MakeIterator|Optional(From|Get)Value|\w*Dataset|prefetch_|_Arg|_Recv|"
    r"SameWorkerRecvDone|_EagerConst|(Eager)?PyFunc"
)
_SLOT = re.compile(r"(Adam|Momentum|RMSProp|Adagrad|Ftrl|Adadelta)\w*")
_REWRITTEN = re.compile(
    r"(?P<scope>(?:.+/)?)(?:ArithmeticOptimizer/[A-Za-z]+_|ConstantFolding/)(?P<own>[^/].*)"
    r"|(?P<made>.+?)(?:(?:-\d+)+-\w+-LayoutOptimizer|/tmp_var(?:_zeros)?)"
)
"""What TensorFlow makes of an operation as it optimizes a graph: ``ArithmeticOptimizer/ReplaceMulWithSquare_mul``."""
_FUNCTION = re.compile(r"^__(inference|forward|backward)_")
_NUMBER = re.compile(r"(.+)_\d+")
_ONEDNN = re.compile(r"^_Mkl(Native)?")
_REPLICA = re.compile(r"/replica_\d+$")
"""The end of a variable's name if it is a copy that MirroredStrategy made on another device."""
_OPERATIONS = re.compile(
    r"abs|add|add_n|argmax|assign|attention|batchnorm|bias_add|cast|clip_by_value|concat|convolution|cond|"
    r"cumsum|depthwise|div|div_no_nan|divide|dot|einsum|equal|exp|expand_dims|flatten|floordiv|floormod|gather|"
    r"gelu|greater|less|log|log_softmax|logical_and|logical_not|logical_or|matmul|max|maximum|mean|min|minimum|"
    r"mod|moments|mul|multiply|neg|negative|norm|normalize|not_equal|ones|ones_like|pad|pow|prod|random_normal|"
    r"random_uniform|range|relu|reshape|reverse|round|rsqrt|scatter|select|separable_conv2d|shape|sigmoid|silu|"
    r"slice|softmax|softplus|split|sqrt|square|squared_difference|squeeze|stack|stateless_dropout|"
    r"stateless_random_normal|stateless_random_uniform|stop_gradient|strided_slice|sub|subtract|sum|swish|tanh|"
    r"tensordot|tile|top_k|transpose|truediv|unstack|where|while|zeros|zeros_like"
)
"""Scopes that TensorFlow's own functions open, and operations that gradients have as their scope."""


@lru_cache(maxsize=16384)
def as_written(operation: str) -> str:
    """Return the name that *operation* had before TensorFlow optimized its graph, as far as that is known."""
    match = _REWRITTEN.fullmatch(operation)
    return as_written(match["made"] or match["scope"] + match["own"]) if match else operation


@lru_cache(maxsize=16384)
def named(operation: str) -> Named:
    """Parse *operation*, TensorFlow's name of an operation. One that oneDNN computes has its usual name."""
    *around, own = as_written(operation).split("/")
    own = _ONEDNN.sub("", own)
    phase = Phase.FORWARD
    kept: list[str] = []
    for scope in around:
        if not scope or (not kept and _CALL.fullmatch(scope)) or scope.startswith("replica_"):
            continue
        if _BACKWARD.fullmatch(scope):
            phase = Phase.BACKWARD
        elif phase is Phase.FORWARD and not kept and _OPTIMIZER.fullmatch(scope):
            phase = Phase.OPTIMIZER
            kept.append(scope)
        elif phase is Phase.FORWARD and not kept and _LOSS.fullmatch(scope):
            phase = Phase.LOSS
            kept.append(scope)
        else:
            kept.append(scope)
    if phase is Phase.FORWARD:
        if _INPUT.match(own) or (kept and _INPUT.match(kept[0])):
            phase = Phase.INPUT
        elif _APPLIED.match(own):
            phase = Phase.OPTIMIZER
        elif own.startswith(("__inference_", "__forward_")):
            phase = Phase.FUNCTION
        elif own.startswith("__backward_") or (not kept and own.endswith("Grad")):
            phase = Phase.BACKWARD
    return Named(phase, tuple(kept), own)


@lru_cache(maxsize=16384)
def unnumbered(scope: str) -> str | None:
    """Return *scope* without the number at its end; ``None`` if it has no number."""
    match = _NUMBER.fullmatch(scope)
    return match[1] if match else None


@lru_cache(maxsize=4096)
def _of_tensorflow(scope: str) -> bool:
    """Return whether TensorFlow itself, and not a layer, opens *scope*, which is given without its number."""
    return _OPERATIONS.fullmatch(scope) is not None or scope.endswith("_grad")


def _of_all_replicas(variable: str) -> str:
    """Return the name that all copies of a *variable* or slot have in common."""
    return _REPLICA.sub("", variable)


class Layers:
    """The layers of one program: finds them by TensorFlow's scopes and by the names of variables and slots.

    A layer has the name that its model gives it, ``block3/conv2``; the model's name is left out if there is only one.
    """

    def __init__(self, operations: Iterable[str], variables: Iterable[str]) -> None:
        found = [named(operation) for operation in operations]
        self._opened = {one.scopes[:2] for one in found if one.phase is Phase.FORWARD and len(one.scopes) > 1}
        variables = [_of_all_replicas(name) for name in variables]
        self._variables = {tuple(name.split("/")[:-1]): name for name in variables}
        roots = {
            root
            for one in found
            if one.phase in (Phase.FORWARD, Phase.BACKWARD) and len(one.scopes) > 1
            # A scope is a model's only if Keras has numbered a layer in it, too.
            if (root := unnumbered(one.scopes[0])) and unnumbered(one.scopes[1]) and not _LOSS.fullmatch(one.scopes[0])
        }
        self._root = next(iter(roots)) if len(roots) == 1 else None
        self._layers: dict[tuple[str, ...], str] = {}
        paths = {self.of(one) for one in found if one.phase in (Phase.FORWARD, Phase.BACKWARD)}
        paths |= {self.of_variable(name) for name in variables}
        self._flat = sorted(((path.replace("/", "_") + "_", path) for path in paths if path), key=lambda p: -len(p[0]))

    def of(self, one: Named) -> str:
        """Return the layer of an operation; empty if its name has none."""
        if one.phase not in (Phase.FORWARD, Phase.BACKWARD, Phase.LOSS):
            return ""
        scopes = one.scopes
        if one.phase is Phase.BACKWARD and len(scopes) > 1 and scopes[-1][0].isupper():
            scopes = scopes[:-1]  # the last one is the forward operation of this gradient
        layer = self._layers.get(scopes)
        if layer is None:
            layer = self._layers[scopes] = self._shown(self._path(scopes))
        return layer

    def of_variable(self, name: str) -> str:
        """Return the layer of a variable of this *name*: its scope, or its own name if it has no scope."""
        *scopes, own = _of_all_replicas(name).split("/")
        return self._shown(scopes) if scopes else own

    def of_slot(self, name: str) -> str:
        """Return the layer of an optimizer's slot; empty if no layer is found.

        Keras names a slot ``adam/sequential_c1_kernel_momentum``, TF 1 names it ``encoder/w/Adam_1``. With mixed
        precision, ``loss_scale_optimizer/`` is before Keras's name.
        """
        name = _of_all_replicas(name)
        variable, _, slot = name.rpartition("/")
        if variable and _SLOT.fullmatch(slot):
            return self.of_variable(variable)
        own = name.partition("/")[2] or name
        while _OPTIMIZER.fullmatch(own.partition("/")[0]) and "/" in own:
            own = own.partition("/")[2]  # in the optimizer that scales the loss is another
        flat = own.replace("/", "_") + "_"
        rooted = flat.removeprefix(f"{self._root}_") if self._root else flat
        return next((path for start, path in self._flat if rooted.startswith(start) or flat.startswith(start)), "")

    def _path(self, scopes: tuple[str, ...]) -> list[str]:
        path: list[str] = []
        if scopes and _LOSS.fullmatch(scopes[0]):
            return [unnumbered(scope) or scope for scope in scopes[: 2 if "loss" in scopes[0] else 1]]
        numbered = bool(scopes) and unnumbered(scopes[0]) is not None
        for depth, scope in enumerate(scopes):
            base = unnumbered(scope)
            if numbered:
                if depth and not self._is_layer(scopes, depth, scope, base, path):
                    break
                path.append(base or scope)
            elif _of_tensorflow(base or scope) or scope.endswith("_grad"):
                break
            else:
                path.append(scope)
        return path

    def _is_layer(self, scopes: tuple[str, ...], depth: int, scope: str, base: str | None, path: list[str]) -> bool:
        """Return whether *scope*, in a model that Keras has numbered, is the scope of a layer."""
        if base is None:
            return False
        if (*path, base) in self._variables or (*path[1:], base) in self._variables:
            return True
        if _of_tensorflow(base):
            return depth == 1 and scopes[:2] in self._opened  # a layer Add has the same name as the function add
        return not base[0].isupper()  # TensorFlow's names of operations begin with a capital

    def _shown(self, path: list[str]) -> str:
        return "/".join(path[1:] if len(path) > 1 and path[0] == self._root else path)
