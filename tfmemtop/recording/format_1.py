"""Upgrades recordings of format 1 as they are read. In that format, some facts were English sentences.

This is the only place that parses those sentences. Facts that they do not contain are ``None`` after the upgrade.
"""

import re
from collections.abc import Callable
from typing import Any

import msgspec

from tfmemtop.events import (
    FORMAT,
    Absence,
    Call,
    Event,
    HookAbsence,
    Leftover,
    NoticeKind,
    Setting,
    SharesMissing,
    Unreadable,
    decode_event,
    decoder,
    encode,
)
from tfmemtop.tensorflow_text import parse_exhausted
from tfmemtop.units import GIB, MIB

Fields = dict[str, Any]
"""An event as a JSON object."""


class _Typed(msgspec.Struct):
    type: str


_decode_typed = decoder(_Typed)
_decode_fields: Callable[[bytes], Fields] = decoder(dict[str, Any])


def decode_format_1(line: bytes) -> Event:
    """Return the event in a *line* of format 1.

    Raises:
        Unreadable: *line* cannot be decoded.
    """
    if _decode_typed(line).type not in _UPGRADES:
        return decode_event(line)
    try:
        return decode_event(encode(upgraded(_decode_fields(line))))
    except (LookupError, TypeError, ValueError, OverflowError, RecursionError) as error:
        raise Unreadable(str(error)) from None


def upgraded(event: Fields) -> Fields:
    """Return *event*, which is of format 1, as an event of format 2.

    Raises:
        LookupError, TypeError: *event* lacks a field, or a field has another type.
    """
    return _UPGRADES.get(event["type"], dict)(event)


def _session(event: Fields) -> Fields:
    return event | {"format": FORMAT}


_DEVICE = re.compile(r"[A-Z_]+:\d+")
_ARGUMENT = re.compile(r"\[[^\]]*\]|[^,\[\]]+")
_CONFIGURATION = re.compile(r"\(([^()]*)\)")
_PAIR = re.compile(r"(\w+)=([\d.]+)")


def _requested(event: Fields) -> Fields:
    """Convert arguments such as ``"GPU:0, [(memory_limit=1024)]"`` to values."""
    arguments: str = event["arguments"]
    shown = [re.sub(r"^\w+=", "", match[0].strip()) for match in _ARGUMENT.finditer(arguments) if match[0].strip()]
    first, second = (*shown, "", "")[:2]
    call = event["call"]
    found: Fields = {"devices": _devices(first), "growth": None, "logical": None, "device_type": None, "other": []}
    if call == Call.SET_MEMORY_GROWTH.value:
        found["growth"] = {"True": True, "False": False}.get(second)
        whole = found["growth"] is not None
    elif call == Call.SET_LOGICAL_DEVICE_CONFIGURATION.value:
        found["logical"] = _logical(second)
        whole = found["logical"] is not None
    else:
        found["device_type"] = second or None
        whole = True
    if found["devices"] is None or not whole or len(shown) > 2:
        found["other"] = [first] if whole and len(shown) <= 2 else [arguments]
    return event | found


def _devices(text: str) -> list[str] | None:
    names = [name.strip() for name in text.strip("[]").split(",") if name.strip()]
    return names if text and all(_DEVICE.fullmatch(name) for name in names) else None


def _logical(text: str) -> list[dict[str, int | None]] | None:
    if not (text.startswith("[") and text.endswith("]")):
        return None
    found = []
    for configuration in _CONFIGURATION.finditer(text):
        values = dict(_PAIR.findall(configuration[1]))
        found.append(
            {
                "limit": int(float(values["memory_limit"]) * MIB) if "memory_limit" in values else None,
                "priority": int(values["priority"]) if "priority" in values else None,
                "ordinal": int(values["device_ordinal"]) if "device_ordinal" in values else None,
            }
        )
    return found


_SETTLED = re.compile(r"(growth|limit) ([^(]+?)(?: \(the script: ([^)]*)\))?")
_ON = {"on": True, "off": False}


def _effective(event: Fields) -> Fields:
    """Convert texts such as ``"growth on (the script: off)"`` and ``"limit 4.0 GiB"`` to values.

    Sizes are as exact as the tenth that was written.
    """
    return event | {"settled": [found for text in event.get("settled", []) if (found := _settled(text))]}


def _settled(text: str) -> Fields | None:
    match = _SETTLED.fullmatch(text)
    if match is None:
        return None
    name, given, asked = match.groups()
    if name == "growth":
        is_on = _ON[given]
        return {"setting": Setting.GROWTH.value, "asked": _ON[asked] if asked else is_on, "given": is_on}
    limits = [_size(each) for each in asked.split(" + ")] if asked else []
    return {"setting": Setting.MEMORY_LIMIT.value, "asked": limits, "given": _size(given)}


def _size(text: str) -> int:
    number, unit = text.split(" ")
    return round(float(number) * {"MiB": MIB, "GiB": GIB}[unit])


def _notice(event: Fields) -> Fields:
    """Keep the sentences as they are."""
    text, remedy = event["text"], event.get("remedy", "")
    return event | {"kind": NoticeKind.TEXT.value if text else None, "detail": text, "remedy": remedy}


def _process(event: Fields) -> Fields:
    """Convert the clause on why the process has no hook to a value."""
    text = event.get("hooked_out")
    return event if text is None else event | {"hook_absence": _absence(text)}


_ABSENCES = {
    "Python was started with -I,": Absence.ISOLATED,
    "Python was started with -E,": Absence.IGNORES_ENVIRONMENT,
    "Python was started with -S,": Absence.NO_SITE,
    "its environment was cleaned": Absence.ENVIRONMENT_CLEANED,
    "the process cannot be looked into": Absence.UNREADABLE,
}
_PROGRAM = re.compile(r"it runs in (.*), which loads no sitecustomize")


def _absence(text: str) -> HookAbsence:
    if program := _PROGRAM.fullmatch(text):
        return HookAbsence(Absence.OTHER_PROGRAM, program[1])
    found = (reason for beginning, reason in _ABSENCES.items() if text.startswith(beginning))
    return HookAbsence(next(found, Absence.UNEXPLAINED))


def _device_reading(event: Fields) -> Fields:
    """Convert the text on why the driver does not report memory by process to a value."""
    text = event.get("processes_missing")
    if text is None:
        return event
    found = (reason for phrase, reason in _SHARES_MISSING.items() if phrase in text)
    return event | {"processes_missing": next(found, SharesMissing.NOT_TOLD)}


_SHARES_MISSING = {
    "names no process": SharesMissing.NAMES_NONE,
    "is divided (MIG)": SharesMissing.MIG,
    "under WSL": SharesMissing.WSL,
    "with a vGPU": SharesMissing.VGPU,
    "too old": SharesMissing.DRIVER_TOO_OLD,
    "this user": SharesMissing.USER_FORBIDDEN,
    "in this container": SharesMissing.NOT_TOLD_IN_CONTAINER,
    "numbers processes otherwise": SharesMissing.NUMBERED_OTHERWISE,
}


def _out_of_memory(event: Fields) -> Fields:
    """Add the shape and type of the tensor, which are only in TensorFlow's message."""
    said = parse_exhausted(event["message"])
    return event | {"shape": said.shape, "dtype": said.dtype}


_LISTED = re.compile(r"GPU (\d+) still lists process (\d+), .*")
_MORE = re.compile(r"GPU (\d+) holds .* more than before the run")


def _stopping(event: Fields) -> Fields:
    """Convert the clause on the memory that is still held to values, without its size."""
    text = event.get("detail")
    return event | {"held": _held(text)} if text else event


def _held(text: str) -> Fields:
    if listed := _LISTED.fullmatch(text):
        return {"leftover": Leftover.LISTED.value, "gpu": int(listed[1]), "pids": [int(listed[2])]}
    if more := _MORE.fullmatch(text):
        return {"leftover": Leftover.MORE_USED.value, "gpu": int(more[1])}
    if text.startswith("the kernel"):
        return {"leftover": Leftover.PROCESSES.value, "pids": [int(pid) for pid in re.findall(r"(\d+) \(", text)]}
    return {"leftover": Leftover.DRIVER_SILENT.value}


_UPGRADES: dict[str, Callable[[Fields], Fields]] = {
    "session": _session,
    "requested": _requested,
    "effective": _effective,
    "notice": _notice,
    "process": _process,
    "stopping": _stopping,
    "device_reading": _device_reading,
    "out_of_memory": _out_of_memory,
}
