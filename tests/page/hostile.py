"""A recording whose names and texts try to break out of a page: each ends in markup, quotes and bidi characters."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from tfmemtop import events
from tfmemtop.events.allocations import WindowAllocations, pack, unpack
from tfmemtop.events.recording import read

ATTACK = (
    "</script><script>attacked=1</script><img src=x onerror=attacked=2><svg onload=attacked=3>"
    "\"'`--><!--]]>&lt;b&gt;\\u003c${attacked=4}\u202egnp.exe\u2066\u2028"
)
FILE = "<img src=x onerror=attacked=5>'\"&lt;" + "long" * 20
"""The name of a recording's file, which may have no slash."""

LONG = 700
"""So many characters have some of the texts more."""

TEXTS = frozenset(
    {
        *("host", "user", "command", "argv", "cwd", "environment", "executable", "tensorflow_path", "version"),
        *("name", "function", "operation", "file", "code", "message", "text", "error", "detail", "variables"),
        *("lines", "largest", "others", "functions", "names"),
    }
)
"""The fields of events and of their parts whose texts are any, with all that is in them."""

FIXED = frozenset({"GPU:0", "CPU:0", "HOST:0", "variables", "optimizer", "float32", ""})
"""Texts that have a meaning in such a field."""


def stream(path: Path) -> Iterator[events.Event]:
    """Yield the events of recording *path*, with :data:`ATTACK` behind each text that may be any."""
    for event in read(path).events():
        if isinstance(event, events.Holders) and event.packed:
            content = unpack(event.packed, WindowAllocations)
            event = replace(event, packed=pack(replace(content, names=[attacked(name) for name in content.names])))
        made = msgspec.to_builtins(event)
        yield msgspec.convert({key: _hostile(value, key in TEXTS) for key, value in made.items()}, type(event))


def attacked(text: str) -> str:
    """Return *text* with the attack behind it, and longer than any screen if it is short."""
    return f"{text}{ATTACK}{'long' * (LONG // 4) if len(text) % 4 == 0 else ''}"


def _hostile(value: Any, free: bool) -> Any:
    match value:
        case dict():
            return {key: _hostile(inner, free or key in TEXTS) for key, inner in value.items()}
        case list():
            return [_hostile(inner, free) for inner in value]
        case str() if free and value not in FIXED:
            return attacked(value)
    return value
