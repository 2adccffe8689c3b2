"""Counts how often the script's ``tf.function``s are called and traced, from TensorFlow's own counts.

TensorFlow counts every call that the script makes, so that it can warn of retracing. Its counts are read
here once a second. No code of the agent runs in a call, except after one that has traced its function anew: that finds
the arguments in which the new signature differs from the one before.
"""

from _weakref import ref
from typing import Any, NamedTuple, Optional

from .callsite import name_in_events
from .messenger import Messenger

CodeType: Any = type((lambda: None).__code__)

PACE_S = 1.0
SENT = 20
"""The most functions that are sent, the busiest first."""

_NAME, _PATH = 200, 1000  # characters: all of them must fit a packet
_ARGUMENTS = 64

_KERAS_STEPS = ("multi_step_on_iterator", "one_step_on_iterator", "multi_step_on_data", "one_step_on_data")
_STEPS = {"steps_per_execution", "_steps_per_execution"}
"""The attributes in which a Keras model keeps how many steps one call of its function takes."""


class Tally:
    """The counts of one function: calls that TensorFlow no longer counts, tracings, and the steps that a call takes.

    ``anew`` counts the tracings that were the first of another ``tf.function`` of the same Python function. ``changed``
    has the arguments in which the newest tracing differed from the one before. ``changes`` has, for each argument, the
    number of tracings in which it differed. ``compiled`` is whether XLA compiles the function, or the steps that Keras
    makes in it.
    """

    __slots__ = ("anew", "changed", "changes", "compiled", "lost", "steps", "traces")

    def __init__(self) -> None:
        self.compiled = False
        self.lost = self.traces = self.anew = 0
        self.steps: Optional[int] = 0  # 0 before the first tracing, None if unknown or not always the same
        self.changed: list[Change] = []
        self.changes: dict[str, int] = {}

    def compare(self, made: Any) -> None:
        """Note what differs in another tracing of *made*, TensorFlow's object for the function."""
        changed = changes(made)
        if changed is None:
            self.anew += 1
        for each in changed or ():
            if each.argument in self.changes or len(self.changes) < _ARGUMENTS:
                self.changes[each.argument] = self.changes.get(each.argument, 0) + 1
        self.changed = changed or self.changed

    def told(self) -> "list[list[Any]]":
        """Return what changed, as it is sent: rows of argument, type before, type after, and number of changes."""
        return [[*each, self.changes.get(each.argument, 1)] for each in self.changed]


class Functions:
    """Reads the counts, and adds the calls that TensorFlow drops from them at a tracing. Keeps no function alive."""

    def __init__(self, messenger: Messenger) -> None:
        self._messenger = messenger
        self._detectors: Any = {}  # by weak reference to the code of a function, or to what stands for it
        self._tallies: dict[Any, Tally] = {}  # by weak reference too
        self._next = 0.0
        self._known = 0
        self._sent: list[list[Any]] = []

    def found(self, manager: Any) -> None:
        """Take the counts from *manager*, TensorFlow's own counting, which has been imported."""
        self._detectors = manager._detectors.data

    def calls(self, key: Any) -> int:
        """Return the calls of the function *key* that TensorFlow counts now, without those that it no longer counts."""
        if not plainly_hashed(key):
            return 0
        detector = self._detectors.get(ref(key))
        return 0 if detector is None else detector._call_count

    def traced(self, key: Any, function: Any, calls_before: int, made: Any = None) -> None:
        """Note that a call has traced the function *key* anew; TensorFlow counted *calls_before* calls before that.

        *made* is TensorFlow's object for the function, if that is known.
        """
        if not plainly_hashed(key):
            return
        tally = self._tallies.get(ref(key))
        if tally is None:
            tally = self._tallies[ref(key, self._tallies.pop)] = Tally()
        tally.traces += 1
        tally.lost += calls_before + 1 - self.calls(key)
        function = _innermost(function)
        model = _keras_model(function)
        steps = _steps_of_a_call(getattr(function, "__code__", None), model)
        tally.compiled = getattr(made, "_jit_compile", None) is True or model.get("_jit_compile") is True
        tally.steps = steps if tally.steps in (0, steps) else None
        if made is not None:
            tally.compare(made)

    def tell(self, now: float, last: bool = False) -> None:
        """Send the counts if some have changed: at most once a second, but at once for a new function or if *last*."""
        detectors = self._detectors
        if now < self._next and len(detectors) == self._known and not last:
            return
        self._next, self._known = now + PACE_S, len(detectors)
        counts = []
        for reference, detector in detectors.copy().items():  # in one go: the script's threads add to it
            key = reference()
            place = None if key is None or not plainly_hashed(key) else place_of(key)
            if place is not None:
                name, file, line = place
                tally = self._tallies.get(reference) or Tally()
                # A function that was traced by other means than a call may never be traced in a call.
                steps = _steps_of_a_call(key, {}) if tally.steps == 0 else tally.steps
                calls = tally.lost + detector._call_count
                counts.append([name, calls, tally.traces, file, line, steps, tally.anew, tally.told(), tally.compiled])
        counts.sort(key=lambda count: -count[1])
        del counts[SENT:]
        if counts != self._sent:
            self._sent = counts
            self._messenger.offer("functions", functions=counts)

    @property
    def busiest(self) -> str:
        """The name of the function that was called most often."""
        return str(self._sent[0][0]) if self._sent else ""


def plainly_hashed(key: Any) -> bool:
    """Return whether looking *key* up in a dict runs no code of the script's."""
    kind: Any = type(key)
    return kind is CodeType or kind.__hash__ is object.__hash__


def place_of(key: Any) -> "Optional[tuple[str, str, int]]":
    """Return name, file and line of the Python function behind *key*; ``None`` if there is none."""
    while any(each.__name__ == "partial" and each.__module__ == "functools" for each in type(key).__mro__):
        key = key.func
    if not isinstance(key, CodeType):
        call = key if hasattr(type(key), "__code__") else type(key).__dict__.get("__call__")
        key = getattr(call, "__code__", None)
    if not isinstance(key, CodeType):
        return None
    name = getattr(key, "co_qualname", key.co_name)  # from Python 3.11 on
    return name.rpartition("<locals>.")[2][:_NAME], name_in_events(key.co_filename)[-_PATH:], key.co_firstlineno


def _innermost(function: Any) -> Any:
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    return function


def _keras_model(function: Any) -> "dict[str, Any]":
    """Return the attributes of the Keras model whose steps *function* makes; empty if it makes none, or it is unknown.

    They are read from ``__dict__``: a property would run code of the script.
    """
    code = getattr(function, "__code__", None)
    if not isinstance(code, CodeType) or "self" not in code.co_freevars or code.co_name not in _KERAS_STEPS:
        return {}
    try:
        model = function.__closure__[code.co_freevars.index("self")].cell_contents
    except ValueError:  # the cell is empty
        return {}
    return getattr(model, "__dict__", {})


def _steps_of_a_call(code: Any, model: "dict[str, Any]") -> Optional[int]:
    """Return the steps that a call of the function with this *code* takes: one, unless Keras was configured otherwise.

    ``None`` if the Keras *model* does not have the number, or keeps it where only an operation could read it.
    """
    name = getattr(code, "co_name", "")
    if name not in _KERAS_STEPS:
        return None if name == "train_function" and "keras" in code.co_filename else 1
    if name.startswith("one") or "self" not in code.co_freevars:
        return 1
    said = [model[name] for name in _STEPS if name in model]
    return said[0] if said and type(said[0]) is int and said[0] > 0 else None


_CHANGES_SENT = 4
_LEAVES, _DEEPEST = 200, 6
_TEXT = 80  # characters
_PLAIN = (bool, int, float, str, bytes, type(None))


class Change(NamedTuple):
    """An argument, or a part of one, and its type in the tracing before and in the newest; ``""`` if it was not there.

    The two texts are equal if the argument was another object of the same class.
    """

    argument: str
    before: str
    after: str


def changes(function: Any) -> "Optional[list[Change]]":
    """Return what differs between the newest two tracings of *function*, TensorFlow's object.

    ``None`` if there is only one tracing.
    """
    newest = reversed(function._function_cache._primary.values())
    after, before = next(newest, None), next(newest, None)
    if before is None or after is None:
        return None
    old, new = _leaves(before.function_type), _leaves(after.function_type)
    names = [*new, *(name for name in old if name not in new)]
    differing = [name for name in names if old.get(name, _NONE) != new.get(name, _NONE)]
    return [_change(name, old.get(name, _NONE)[0], new.get(name, _NONE)[0]) for name in differing[:_CHANGES_SENT]]


_NONE, _GONE = ("", 0), ("<>", 0)  # the class of an object that is no longer alive is not known


def _change(name: str, before: str, after: str) -> Change:
    return Change(name[:_TEXT], after if before == _GONE[0] else before, after)


def _leaves(function_type: Any) -> "dict[str, tuple[str, int]]":
    """Return text and identity of each part of each argument that has no parts of its own, by its path."""
    found: dict[str, tuple[str, int]] = {}
    for name, parameter in function_type.parameters.items():
        _add(found, str(name), parameter.type_constraint, 0)
    return found


def _add(found: "dict[str, tuple[str, int]]", name: str, kind: Any, depth: int) -> None:
    if len(found) >= _LEAVES:
        return
    parts = _parts(kind) if depth < _DEEPEST else None
    if parts:
        for key, part in parts:
            _add(found, name + key, part, depth + 1)
    else:
        found[name] = _told(kind)


def _parts(kind: Any) -> "Optional[list[tuple[str, Any]]]":
    """Return the parts of a structure of types, each with the text for the argument's name; ``None`` if it has none."""
    kind = _of(kind, "components_tuple") or kind  # a list's
    mapping, names, parts = (_of(kind, name) for name in ("mapping", "attribute_names", "components"))
    if mapping is not None:
        return [(f"[{_plain(key)}]", part) for key, part in mapping.items()]
    if names is not None:  # a named tuple's
        return [(f".{key}", part) for key, part in zip(names, kind.attributes.components)]
    if parts is not None:
        return [(f"[{place}]", part) for place, part in enumerate(parts)]
    # Iterators and datasets are one object: only their elements can differ.
    element = _of(kind, "_element_spec")
    if type(element) in (tuple, list):
        return [(f"[{place}]", part) for place, part in enumerate(element)]
    if type(element) is dict:
        return [(f"[{_plain(key)}]", part) for key, part in element.items()]
    return None if element is None else [("", element)]


def _told(kind: Any) -> "tuple[str, int]":
    shape, dtype, reference = _of(kind, "_shape"), _of(kind, "_dtype"), _of(kind, "_ref")
    if shape is not None and dtype is not None:
        extents = ["?"] if shape.rank is None else ["None" if each is None else str(each) for each in shape.as_list()]
        return f"{dtype.name}[{','.join(extents)}]"[:_TEXT], 0
    if reference is not None:
        target = reference()
        if target is None:
            return _GONE
        return f"<{type(target).__name__}>"[:_TEXT], id(target)
    if _of(kind, "_value_hash") is not None:
        value = kind.value
        return _plain(value), 0 if type(value) in _PLAIN else id(value)
    return f"<{type(kind).__name__}>"[:_TEXT], 0


def _of(kind: Any, name: str) -> Any:
    """Return an attribute of one of TensorFlow's types; ``None`` if it has none, or the type is the script's."""
    return getattr(kind, name, None) if str(type(kind).__module__).startswith("tensorflow.") else None


def _plain(value: Any) -> str:
    if type(value) not in _PLAIN:
        return f"<{type(value).__name__}>"[:_TEXT]
    text = repr(value)
    return text if len(text) <= _TEXT else text[: _TEXT - 3] + "..."
