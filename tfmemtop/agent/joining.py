"""Finds an earlier agent in a process that runs already, and TensorFlow's objects made before this agent was loaded.

The objects are found in one look through those that Python's garbage collector lists, as live tensors are. The look
runs no code of the script's.
"""

import gc
import sys
from itertools import compress
from typing import Any, NamedTuple, Optional

from .collector import Collector
from .objects import Step, called, identity, without_result
from .variables import METRICS, OPTIMIZER, VARIABLES

_MARK = "_tfmemtop"
_WATCH = __name__.rpartition(".")[0] + ".import_watch"
_CONTEXT = "tensorflow.python.eager.context"

_Place = tuple[str, str]  # a module and a class
_MADE: "tuple[_Place, ...]" = (
    ("tensorflow.python.ops.resource_variable_ops", "BaseResourceVariable"),
    ("tensorflow.python.ops.ref_variable", "RefVariable"),
)
_GRAPHS: "tuple[_Place, ...]" = (("tensorflow.python.framework.func_graph", "FuncGraph"),)
_SESSIONS: "tuple[_Place, ...]" = (("tensorflow.python.client.session", "BaseSession"),)
_KERAS: "tuple[_Place, ...]" = (("keras.src.backend.tensorflow.core", "Variable"),)
_OPTIMIZERS: "tuple[_Place, ...]" = (
    ("keras.src.optimizers.base_optimizer", "BaseOptimizer"),
    ("tf_keras.src.optimizers.optimizer", "Optimizer"),
)
_METRICS: "tuple[_Place, ...]" = (
    ("keras.src.metrics.metric", "Metric"),
    ("tf_keras.src.metrics.base_metric", "Metric"),
)
_TRAINERS: "tuple[_Place, ...]" = (
    ("keras.src.trainers.trainer", "BaseTrainer"),
    ("keras.src.trainers.trainer", "Trainer"),
)
_THEIRS = ("_variables", "_trainable_weights", "_non_trainable_weights")
"""Attributes in which optimizers and metrics keep their variables."""


class Variable(NamedTuple):
    """A variable made before, its kind (by the object that keeps it), and Keras's path of it."""

    variable: Any
    kind: str
    path: Optional[str]


class Earlier(NamedTuple):
    """The objects made before; the oldest first, as far as Python keeps an order."""

    variables: "list[Variable]"
    graphs: "list[Any]"
    sessions: "list[Any]"
    trainers: "list[dict[str, Any]]"  # the attributes of Keras's models


def remember(context: Any, agent: Any) -> None:
    """Store the *agent* where a later one finds it: on a method of TensorFlow's that the agent has wrapped."""
    context.Context._initialize_logical_devices.__dict__[_MARK] = agent


def agent_before() -> Any:
    """Return the agent that an earlier tfmemtop has brought into this process; ``None`` if there is none."""
    for finder in list(sys.meta_path):
        kind: Any = type(finder)
        if kind.__module__ == _WATCH:
            return finder.agent  # type: ignore[attr-defined]
        if (kind.__module__, kind.__name__) == ("sitecustomize", "_Arrival"):
            # Its engine has gone: else ``attach`` would have shown that session.
            finder.find_spec = lambda *_, **__: None  # type: ignore[method-assign]
    method = getattr(getattr(sys.modules.get(_CONTEXT), "Context", None), "_initialize_logical_devices", None)
    return getattr(method, "__dict__", {}).get(_MARK)


def earlier(collector: Collector) -> Earlier:
    """Find TensorFlow's and Keras's objects that were made before."""
    made, graphs, sessions = _classes(_MADE), _classes(_GRAPHS), _classes(_SESSIONS)
    keras, optimizers, metrics = _classes(_KERAS), _classes(_OPTIMIZERS), _classes(_METRICS)
    trainers = _classes(_TRAINERS)
    kinds_sought = made | graphs | sessions | keras | optimizers | metrics | trainers
    step = Step(collector)
    everything = step.box()
    sought = map(kinds_sought.__contains__, map(identity, map(type, everything)))
    found = step.read(without_result(map(everything.extend, called(gc.get_objects))), compress(everything, sought))
    paths: dict[int, str] = {}
    kinds: dict[int, str] = {}
    for each in found:
        kind = identity(type(each))
        if kind in keras:
            path = _attributes(each).get("_path")
            if type(path) is str:
                paths[identity(_attributes(each).get("_value"))] = path
        elif kind in optimizers or kind in metrics:
            for variable in _theirs(each):
                kinds[identity(variable)] = OPTIMIZER if kind in optimizers else METRICS
    return Earlier(
        [
            Variable(each, kinds.get(identity(each), VARIABLES), paths.get(identity(each)))
            for each in found
            if _of(each, made)
        ],
        [each for each in found if _of(each, graphs)],
        [each for each in found if _of(each, sessions)],
        [_attributes(each) for each in found if _of(each, trainers)],
    )


def _of(each: Any, classes: "set[int]") -> bool:
    return identity(type(each)) in classes


def _theirs(owner: Any) -> "list[Any]":
    """Return TensorFlow's variables that an optimizer or a metric keeps."""
    kept = [each for name in _THEIRS for each in _elements(_attributes(owner).get(name))]
    return [_attributes(each).get("_value", each) for each in kept]


def _elements(value: Any) -> "list[Any]":
    value = _attributes(value).get("_storage", value)  # of TensorFlow's own lists
    return list(list.__iter__(value)) if isinstance(value, list) else []


def _attributes(each: Any) -> "dict[str, Any]":
    """Return the ``__dict__`` of an object, without the properties and methods that would run the script's code."""
    try:
        found = object.__getattribute__(each, "__dict__")
    except AttributeError:
        return {}
    return found if type(found) is dict else {}


def _classes(places: "tuple[_Place, ...]") -> "set[int]":
    """Return the identities of the classes at *places* and of all their subclasses, as far as they are imported."""
    waiting = [getattr(sys.modules.get(module), name, None) for module, name in places]
    found: set[int] = set()
    while waiting:
        kind = waiting.pop()
        if isinstance(kind, type) and identity(kind) not in found:
            found.add(identity(kind))
            waiting += type.__subclasses__(kind)
    return found
