"""Describes what a call of the script requests of TensorFlow, as values for an event."""

from typing import Any, Callable, Optional

from .apply_settings import bytes_of

RECORDED = ("set_memory_growth", "set_logical_device_configuration", "set_visible_devices")
"""The methods of TensorFlow's context whose calls are reported."""

_PARAMETERS = dict(zip(RECORDED, (("dev", "enable"), ("dev", "virtual_devices"), ("devices", "device_type"))))
_PLAIN = (bool, int, float, str, bytes, type(None))
_MOST = 256  # elements of a list that are reported
_TEXT = 200  # characters


def request(call: str, args: "tuple[Any, ...]", kwargs: "dict[str, Any]") -> "dict[str, Any]":
    """Return the fields of a ``requested`` event with the arguments of *call*."""
    given = dict(zip(_PARAMETERS[call], args))
    given.update(kwargs)
    fields: dict[str, Any] = {"devices": None, "growth": None, "logical": None, "device_type": None}
    other = []
    for name, value in given.items():
        field, read = _FIELDS.get(name, _FIELDS["device_type"])
        fields[field] = read(value)
        if fields[field] is None and (value is not None or field != "device_type"):
            other.append(described(value)[:_TEXT])
    return {"call": call, **fields, "other": other[:_MOST]}


def _devices(values: Any) -> "Optional[list[str]]":
    fields = [_fields(value) for value in (values if type(values) in (list, tuple) else [values])[:_MOST]]
    names = [_name(each) for each in fields if "device_type" in each]
    return names if len(names) == len(fields) else None


def _logical(values: Any) -> "Optional[list[dict[str, Optional[int]]]]":
    fields = [_fields(value) for value in values[:_MOST]] if type(values) in (list, tuple) else [{}]
    if not all("memory_limit" in each for each in fields):
        return None
    return [
        {
            "limit": bytes_of(each["memory_limit"]),
            "priority": _number(each.get("experimental_priority")),
            "ordinal": _number(each.get("experimental_device_ordinal")),
        }
        for each in fields
    ]


def _number(value: Any) -> Optional[int]:
    return value if type(value) is int and abs(value) < 1 << 31 else None


def _fields(value: Any) -> "dict[str, Any]":
    """Return the fields of TensorFlow's named tuples; of anything else none, as that could run the script's code."""
    kind = type(value)
    if issubclass(kind, tuple) and kind.__module__.startswith("tensorflow."):
        return dict(value._asdict())
    return {}


def _name(fields: "dict[str, Any]") -> str:
    """Return the short name of a device: ``GPU:0`` for ``/physical_device:GPU:0``."""
    return str(fields.get("name")).replace("/physical_device:", "")[:_TEXT]


def described(value: Any) -> str:
    """Return *value* as text for people. Of an object of the script's only the class: more would run its code."""
    kind = type(value)
    if kind in (list, tuple):
        return "[" + ", ".join(described(item) for item in value[:_MOST]) + "]"
    if kind in _PLAIN:
        return str(value) if kind is str else repr(value)
    fields = _fields(value)
    return _name(fields) if "device_type" in fields else f"<{kind.__name__}>"


_FIELDS: "dict[str, tuple[str, Callable[[Any], Any]]]" = {
    "dev": ("devices", lambda value: _devices([value])),
    "devices": ("devices", _devices),
    "enable": ("growth", lambda value: bool(value) if type(value) in _PLAIN else None),
    "virtual_devices": ("logical", _logical),
    "device_type": ("device_type", lambda value: value[:_TEXT] if type(value) is str else None),
}
"""By the name of an argument: the field of the event, and its value; ``None`` if the argument's type is wrong."""
