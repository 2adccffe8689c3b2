"""Recordings of format 1 are read as if they had been written today."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests import streams as s
from tests.streams import GIB, MIB
from tfmemtop import events as ev
from tfmemtop.recording import read
from tfmemtop.recording.format_1 import decode_format_1
from tfmemtop.words.requests import call_text, settled_text

RECORDINGS = sorted((Path(__file__).parents[1] / "recordings").rglob("*.jsonl"))


def upgraded(**fields: object) -> Any:
    return decode_format_1(json.dumps({"t": 1.0, "pid": 7} | fields).encode())


def requested(call: str, arguments: str, error: str | None = None) -> ev.Requested:
    found = upgraded(type="requested", call=call, arguments=arguments, file="a.py", line=3, error=error)
    assert isinstance(found, ev.Requested)
    return found


def effective(*settled: str) -> list[ev.Settled]:
    found = upgraded(
        type="effective", device="GPU:0", physical=0, uuid=None, growth=True, limit=None, allocator="bfc",
        settled=list(settled),
    )  # fmt: skip
    assert isinstance(found, ev.Effective)
    return found.settled


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.stem)
def test_every_line_of_every_recording_is_read(path: Path) -> None:
    recording = read(path)
    types = Counter(type(event) for event in recording.events())
    lines = [json.loads(line)["type"] for line in path.read_text().splitlines()]
    assert types.total() == len(lines) and (recording.damaged, recording.unknown) == (0, 0)
    assert recording.session.format == ev.FORMAT


GROWTH, DIVIDE, VISIBLE = "set_memory_growth", "set_logical_device_configuration", "set_visible_devices"


@pytest.mark.parametrize(
    ("call", "arguments", "expected"),
    [
        (GROWTH, "GPU:0, True", {"devices": ["GPU:0"], "growth": True}),
        (GROWTH, "GPU:1, False", {"devices": ["GPU:1"], "growth": False}),
        (GROWTH, "GPU:0, enable=True", {"devices": ["GPU:0"], "growth": True}),
        (GROWTH, "True, True", {"devices": None, "growth": True, "other": ["True"]}),
        (GROWTH, "<Odd>, <Odd>", {"devices": None, "growth": None, "other": ["<Odd>, <Odd>"]}),
        (DIVIDE, "GPU:0, [(memory_limit=1024)]", {"devices": ["GPU:0"], "limits": [GIB]}),
        (DIVIDE, "CPU:0, [(), ()]", {"devices": ["CPU:0"], "limits": [None, None]}),
        (VISIBLE, "[GPU:0], GPU", {"devices": ["GPU:0"], "device_type": "GPU"}),
        (VISIBLE, "[GPU:0, GPU:1]", {"devices": ["GPU:0", "GPU:1"]}),
        (VISIBLE, "[], GPU", {"devices": [], "device_type": "GPU"}),
        (VISIBLE, "[<Odd>], CPU", {"devices": None, "device_type": "CPU", "other": ["[<Odd>]"]}),
        (VISIBLE, "", {"devices": None, "other": [""]}),
    ],
)  # fmt: skip
def test_what_the_script_asked_for_becomes_values(call: str, arguments: str, expected: dict[str, Any]) -> None:
    found = requested(call, arguments)
    assert found == s.requested(1.0, ev.Call(call), pid=7, line=3, **expected, file="a.py")
    assert call_text(found) == f"{call}({arguments.replace('enable=', '')})"


def test_logical_devices_keep_their_places() -> None:
    shown = "GPU:0, [(memory_limit=1000, device_ordinal=1), (memory_limit=3000.5, priority=2, device_ordinal=0)]"
    found = requested(DIVIDE, shown)
    assert found.logical == [ev.LogicalDevice(1000 * MIB, None, 1), ev.LogicalDevice(6001 * MIB // 2, 2, 0)]
    assert call_text(found) == f"{DIVIDE}({shown})"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("growth off", ev.Settled(ev.Setting.GROWTH, False, False)),
        ("growth on (the script: off)", ev.Settled(ev.Setting.GROWTH, False, True)),
        ("limit 4.0 GiB", ev.Settled(ev.Setting.MEMORY_LIMIT, [], 4 * GIB)),
        (
            "limit 512.0 MiB (the script: 1.0 GiB + 2.0 GiB)",
            ev.Settled(ev.Setting.MEMORY_LIMIT, [GIB, 2 * GIB], 512 * MIB),
        ),
    ],
)
def test_what_was_settled_becomes_values(text: str, expected: ev.Settled) -> None:
    assert effective(text) == [expected]
    assert settled_text(expected) == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (None, None),
        ("Python was started with -I, which ignores PYTHONPATH", ev.HookAbsence(ev.Absence.ISOLATED)),
        ("it runs in app.pex, which loads no sitecustomize", ev.HookAbsence(ev.Absence.OTHER_PROGRAM, "app.pex")),
        (
            "its environment was cleaned: PYTHONPATH no longer leads to the hook",
            ev.HookAbsence(ev.Absence.ENVIRONMENT_CLEANED),
        ),
        ("something else", ev.HookAbsence(ev.Absence.UNEXPLAINED)),
    ],
)
def test_why_the_hook_is_not_in_becomes_a_reason(text: str | None, expected: ev.HookAbsence | None) -> None:
    found = upgraded(type="process", ppid=1, user="ada", command=["python"], started=1.0, run=1, hooked_out=text)
    assert found.hook_absence == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (None, None),
        ("the driver names no process for the memory in use", ev.SharesMissing.NAMES_NONE),
        (
            "the driver numbers processes otherwise than this container: which of them are here cannot be told",
            ev.SharesMissing.NUMBERED_OTHERWISE,
        ),
        ("the driver does not tell this user memory by process", ev.SharesMissing.USER_FORBIDDEN),
        ("the driver does not tell memory by process here", ev.SharesMissing.NOT_TOLD),
    ],
)
def test_why_processes_have_no_figures_becomes_a_reason(text: str | None, expected: ev.SharesMissing | None) -> None:
    found = upgraded(
        type="device_reading", index=0, used=1, free=1, utilisation=None, bandwidth=None, power_w=None,
        temperature_c=None, processes=[], processes_missing=text,
    )  # fmt: skip
    assert found.processes_missing is expected


def test_the_tensor_that_found_no_room_has_a_shape() -> None:
    found = upgraded(type="out_of_memory", message="OOM when allocating tensor with shape[200,3] and type float on …")
    assert (found.shape, found.dtype) == ([200, 3], "float")


@pytest.mark.parametrize(
    "line",
    [
        b'{"type":"requested","t":1,"pid":7,"call":"set_memory_growth","arguments":3,"file":"","line":1,"error":null}',
        b'{"type":"requested","t":1,"pid":7}',
        b'{"type":"effective","t":1,"pid":7,"settled":[3]}',
        b'{"type":"effective","t":1,"pid":7,"settled":{"limit":1}}',
        b'{"type":"requested","t":1,"pid":7,"more":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b"[]",
    ],
)
def test_what_makes_no_sense_is_refused_in_one_way(line: bytes) -> None:
    with pytest.raises(ev.Unreadable):
        decode_format_1(line)


@pytest.mark.parametrize(
    ("detail", "held"),
    [
        ("", None),
        ("GPU 1 still lists process 7, 3.0 GiB", ev.StillHeld(ev.Leftover.LISTED, 1, None, [7])),
        ("GPU 0 holds 1.0 GiB more than before the run", ev.StillHeld(ev.Leftover.MORE_USED, 0)),
        ("the kernel does not let go of 7 (a), 9 (b)", ev.StillHeld(ev.Leftover.PROCESSES, pids=[7, 9])),
        ("the driver does not answer, so what is still held cannot be known", ev.StillHeld(ev.Leftover.DRIVER_SILENT)),
    ],
)
def test_what_was_still_held_becomes_values(detail: str, held: ev.StillHeld | None) -> None:
    assert upgraded(type="stopping", run=1, phase="held", detail=detail).held == held
