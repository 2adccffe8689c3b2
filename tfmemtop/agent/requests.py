"""Describes what a call of the script requests of TensorFlow, as values for an event."""

from typing import Any, Callable, Optional

from .apply_settings import bytes_of

RECORDED = ("set_memory_growth", "set_logical_device_configuration", "set_visible_devices")
"""The methods of TensorFlow's context whose calls are reported."""

_PARAMETERS = dict(zip(RECORDED, (("dev", "enable"), ("dev", "virtual_devices"), ("devices", "device_type"))))
_MOST = 256  # elements of a list that are reported
_TEXT = 200  # characters


def request(call: str, args: "tuple[Any, ...]", kwargs: "dict[str, Any]") -> "dict[str, Any]":
    """Return the fields of a ``requested`` event with the arguments of *call*."""
    given = dict(zip(_PARAMETERS[call], args))
    given.update(kwargs)
    fields: dict[str, Any] = {"devices": None, "growth": None, "logical": None, "device_type": None}
    for name, value in given.items():
        if name in _FIELDS:
            field, read = _FIELDS[name]
            fields[field] = read(value)
    return {"call": call, **fields}


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


_FIELDS: "dict[str, tuple[str, Callable[[Any], Any]]]" = {
    "dev": ("devices", lambda value: _devices([value])),
    "devices": ("devices", _devices),
    "enable": ("growth", lambda value: bool(value) if type(value) in (bool, int, type(None)) else None),
    "virtual_devices": ("logical", _logical),
    "device_type": ("device_type", lambda value: value[:_TEXT] if type(value) is str else None),
}
"""By the name of an argument: the field of the event, and its value; ``None`` if the argument's type is wrong."""
