"""The text about the script's calls to set up TensorFlow's memory, and about the settings that tfmemtop imposed."""

from collections.abc import Iterator, Sequence

from tfmemtop.events import Call, LogicalDevice, Requested, Setting, Settled
from tfmemtop.units import MIB, format_bytes


def call_text(request: Requested) -> str:
    """Return the call as it is written in a script: ``set_memory_growth(GPU:0, True)``."""
    return f"{request.call.value}({', '.join(_arguments(request))})"


def _arguments(request: Requested) -> Iterator[str]:
    other = iter(request.other)
    if request.devices is None:
        yield from _next(other)
    else:
        names = ", ".join(request.devices)
        yield f"[{names}]" if request.call is Call.SET_VISIBLE_DEVICES else names
    if request.growth is not None:
        yield str(request.growth)
    elif request.logical is not None:
        yield f"[{', '.join(map(_logical, request.logical))}]"
    elif request.device_type is not None:
        yield request.device_type
    else:
        yield from other


def _next(other: Iterator[str]) -> Iterator[str]:
    first = next(other, None)
    if first is not None:
        yield first


def _logical(device: LogicalDevice) -> str:
    fields = [
        None if device.limit is None else f"memory_limit={device.limit / MIB:.10g}",
        None if device.priority is None else f"priority={device.priority}",
        None if device.ordinal is None else f"device_ordinal={device.ordinal}",
    ]
    return f"({', '.join(field for field in fields if field)})"


def settled_text(settled: Settled) -> str:
    """Return what tfmemtop settled: ``growth on (the script: off)``, ``limit 4.0 GiB``."""
    asked = _asked(settled)
    return f"{_NAMES[settled.setting]} {_value(settled.given)}" + (f" (the script: {asked})" if asked else "")


def settled_on(text: str, devices: Sequence[str]) -> str:
    """Return what tfmemtop settled, given as *text*, on *devices*: ``tfmemtop set growth on for GPU:0 to GPU:3``."""
    where = f"{devices[0]} to {devices[-1]}" if len(devices) > 2 else " and ".join(devices)
    return f"tfmemtop set {text} for {where}"


_NAMES = {Setting.GROWTH: "growth", Setting.MEMORY_LIMIT: "limit"}


def _asked(settled: Settled) -> str:
    """Return what the script requested; empty if that is what tfmemtop settled."""
    if isinstance(settled.asked, list):
        return " + ".join(map(format_bytes, settled.asked))
    return "" if settled.asked == settled.given else _value(settled.asked)


def _value(value: bool | int) -> str:
    return format_bytes(value) if not isinstance(value, bool) else "on" if value else "off"


_DTYPES = {"half": "float16", "float": "float32", "double": "float64"}
"""The types that have another name in TensorFlow's messages than in Python."""


def tensor_text(shape: list[int], dtype: str | None) -> str:
    """Return shape and type of a tensor: ``[200,3] float32``."""
    return f"[{','.join(map(str, shape))}]" + (f" {_DTYPES.get(dtype, dtype)}" if dtype else "")
