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

_SOUGHT: "dict[str, tuple[tuple[str, str], ...]]" = {
    "variables": (
        ("tensorflow.python.ops.resource_variable_ops", "BaseResourceVariable"),
        ("tensorflow.python.ops.ref_variable", "RefVariable"),
    ),
    "graphs": (("tensorflow.python.framework.func_graph", "FuncGraph"),),
    "sessions": (("tensorflow.python.client.session", "BaseSession"),),
    "keras": (("keras.src.backend.tensorflow.core", "Variable"),),
    OPTIMIZER: (
        ("keras.src.optimizers.base_optimizer", "BaseOptimizer"),
        ("tf_keras.src.optimizers.optimizer", "Optimizer"),
    ),
    METRICS: (("keras.src.metrics.metric", "Metric"), ("tf_keras.src.metrics.base_metric", "Metric")),
    "trainers": (("keras.src.trainers.trainer", "BaseTrainer"), ("keras.src.trainers.trainer", "Trainer")),
}
"""Modules and classes, by what the objects are taken for."""
_THEIRS = ("_variables", "_trainable_weights", "_non_trainable_weights")
"""Attributes in which optimizers and metrics keep their variables."""


class Earlier(NamedTuple):
    """The objects made before; the oldest first, as far as Python keeps an order.

    Of each variable there is also the kind, by the object that keeps it, and Keras's path of it.
    """

    variables: "list[tuple[Any, str, Optional[str]]]"
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
    classes = {name: _classes(places) for name, places in _SOUGHT.items()}
    kinds_sought: set[int] = set().union(*classes.values())
    step = Step(collector)
    everything = step.box()
    sought = map(kinds_sought.__contains__, map(identity, map(type, everything)))
    found = step.read(without_result(map(everything.extend, called(gc.get_objects))), compress(everything, sought))
    of = {name: [each for each in found if identity(type(each)) in chosen] for name, chosen in classes.items()}
    paths: dict[int, str] = {}
    for each in map(_attributes, of["keras"]):
        if type(each.get("_path")) is str:
            paths[identity(each.get("_value"))] = each["_path"]
    kinds: dict[int, str] = {}
    for kind in (OPTIMIZER, METRICS):
        kinds.update((identity(variable), kind) for owner in of[kind] for variable in _theirs(owner))
    variables = [(each, kinds.get(identity(each), VARIABLES), paths.get(identity(each))) for each in of["variables"]]
    return Earlier(variables, of["graphs"], of["sessions"], [_attributes(each) for each in of["trainers"]])


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


def _classes(places: "tuple[tuple[str, str], ...]") -> "set[int]":
    """Return the identities of the classes at *places* and of all their subclasses, as far as they are imported."""
    waiting = [getattr(sys.modules.get(module), name, None) for module, name in places]
    found: set[int] = set()
    while waiting:
        kind = waiting.pop()
        if isinstance(kind, type) and identity(kind) not in found:
            found.add(identity(kind))
            waiting += type.__subclasses__(kind)
    return found
