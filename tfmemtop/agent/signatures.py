"""Finds the arguments of a ``tf.function`` that differed between its newest two tracings, from TensorFlow's records.

TensorFlow keeps the type of each argument: for a tensor shape and dtype, for a plain Python object the value, for other
objects a weak reference. Of the script's own classes only the name is read.
"""

from typing import Any, NamedTuple, Optional

SENT = 4
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
    return [_change(name, old.get(name, _NONE)[0], new.get(name, _NONE)[0]) for name in differing[:SENT]]


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
