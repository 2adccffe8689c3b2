"""Puts the user's growth and limit into TensorFlow's GPUOptions, and describes what calls of the script request."""

import json
from typing import Any, Callable, NamedTuple, Optional

MIB = 1024 * 1024
_MOST_MIB = 1 << 42


class Settings(NamedTuple):
    """The user's settings: ``growth`` on or off, ``limit_mb`` in MiB for each GPU; ``None`` is the script's choice."""

    growth: Optional[bool] = None
    limit_mb: Optional[int] = None


def parse_settings(text: str) -> Settings:
    """Return the settings in *text*, the JSON of ``TFMEMTOP_SETTINGS``.

    Raises:
        ValueError: *text* is not a JSON object, or one of its values is not allowed.
    """
    chosen = json.loads(text)
    if not isinstance(chosen, dict):
        raise ValueError(text)
    growth, limit = chosen.get("growth"), chosen.get("memory_limit")
    if growth not in (None, "on", "off"):
        raise ValueError(f"growth={growth!r}")
    if limit is not None and (not isinstance(limit, int) or limit <= 0):
        raise ValueError(f"memory_limit={limit!r}")
    return Settings(None if growth is None else growth == "on", None if limit is None else max(1, limit // MIB))


class Settled(NamedTuple):
    """A setting of the user's in TensorFlow's options: the script's own value in ``asked``, the new one in ``given``.

    Growth is on or off. For a limit, ``given`` is the bytes of each GPU, ``asked`` a list of the bytes of each logical
    device.
    """

    setting: str
    asked: Any
    given: Any


def settle(options: Any, settings: Settings) -> "list[Settled]":
    """Put *settings* into the GPUOptions *options*, and return what was set; nothing is set if no GPU is visible.

    The script keeps its number of logical devices, because its code names them. They share the limit in the
    proportion of the script's own limits, or equally if the script gave none.
    """
    visible = [ordinal for ordinal in options.visible_device_list.split(",") if ordinal]
    settled: list[Settled] = []
    if not visible:
        return settled
    if settings.growth is not None:
        settled.append(Settled("growth", options.allow_growth, settings.growth))
        options.allow_growth = settings.growth
    if settings.limit_mb is not None:
        devices = options.experimental.virtual_devices
        limits = [bytes_of(limit) for device in devices for limit in device.memory_limit_mb]
        while len(devices) < len(visible):
            devices.add()
        for device in devices:
            device.memory_limit_mb[:] = shares(settings.limit_mb, list(device.memory_limit_mb))
        asked = [limit for limit in limits if limit is not None]
        settled.append(Settled("memory_limit", asked, settings.limit_mb * MIB))
    return settled


def shares(whole: int, asked: "list[float]") -> "list[float]":
    """Split *whole* MiB into whole parts of at least 1, in the proportion of *asked*; equally if one of these is 0."""
    if len(asked) < 2:
        return [whole]
    weights = asked if all(weight > 0 for weight in asked) else [1.0] * len(asked)
    return [max(1, int(whole * weight / sum(weights))) for weight in weights]


def bytes_of(mib: Any) -> Optional[int]:
    """Return *mib* MiB in bytes; ``None`` if *mib* is not a size."""
    return int(mib * MIB) if type(mib) in (int, float) and 0 <= mib <= _MOST_MIB else None


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
    return [{"limit": bytes_of(each["memory_limit"])} for each in fields]


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
