"""Random messages: they fit msgspec's types, or are bent and broken."""

import copy
import json
import random
from collections.abc import Sequence
from typing import Any

import msgspec

from tests.anything import Filling

DEEP, NUMBER = '"@deep@"', '"@number@"'
"""Placeholders for values that no JSON library would write."""

_NUMBERS = (b"1" + b"0" * 308, b"1" + b"0" * 4000, b"1e308", b"-1e308", b"1e-320", b"NaN", b"Infinity", b"-0", b"0x10")
_NASTY: tuple[Any, ...] = (  # numbers first
    *(-1, 0, 2**31, 2**53 + 1, 2**63, 2**64, -(2**63), 10**18, 10**308, 1e308, -1e308, 1e-300, True, None, "", [], {}),
    *("x" * 5000, "\x1b]52;c;QUJD\x1b\\", "\x1b[2J\x07\r\x00\x9b31m", "\u202e\u2066\U0001f600\u0301", "GPU:0\n"),
    "\\u0000",
    *("@deep@", "@number@", [0] * 3000, [[]] * 500, {str(n): n for n in range(500)}, {"": {"": {"": []}}}),
)  # fmt: skip
_TEXTS = ("GPU:0", "CPU:0", "GPU:1", "bfc", "train.py", "/a/b.py", "set_memory_growth", "x", "é漢", "f", "")
_AMOUNTS = (0, 1, 7, 0.5, 1 << 20, 1 << 40)


def sample(kinds: Sequence[type], chance: random.Random) -> Any:
    """Return the JSON of a message of one of *kinds* that fits it."""
    filling = Filling(chance.choice(_TEXTS), chance.choice(_AMOUNTS), chance.choice((0, 1, 2, 5)))
    return json.loads(msgspec.json.encode(chance.choice(list(filling.each(chance.choice(kinds))))))


def bend(value: Any, chance: random.Random, times: int = 1) -> Any:
    """Return *value* with some of its parts replaced by unexpected ones. The parts are replaced in place."""
    for _ in range(times):
        path = []
        part = value
        while isinstance(part, (dict, list)) and part and chance.random() < 0.8:
            key = chance.choice(list(part)) if isinstance(part, dict) else chance.randrange(len(part))
            path.append((part, key))
            part = part[key]
        if path:
            parent, key = path[-1]
            if isinstance(parent, dict) and chance.random() < 0.1:
                del parent[key]
            else:
                parent[key] = copy.deepcopy(chance.choice(_like(parent[key]) if chance.random() < 0.6 else _NASTY))
    return value


def enlarged(kind: type[Any], most: int) -> list[bytes]:
    """Return two messages of *kind* that fit its bounds: with long texts, and with long lists, in *most* bytes each."""
    found = []
    for long, many in ((True, False), (False, True)):
        size, data = 1, b""
        while size <= most:
            filling = Filling("\U0001f600" * size if long else "x", 7, size if many else 1)
            larger = msgspec.json.encode(next(filling.each(kind)))
            if len(larger) > most:
                break
            data, size = larger, 2 * size
        found.append(data)
    return found


_LONGEST, _MOST = 1000, 20
"""The most characters and elements that are repeated: a bent value may be bent again, and must not fill our memory."""


def _like(part: Any) -> tuple[Any, ...]:
    """Return values of the same type, which pass where types are checked."""
    if isinstance(part, bool) or part is None:
        return (True, False, None)
    if isinstance(part, (int, float)):
        large = part * 1e300 if abs(part) < 1e8 else part
        return (*_NASTY[:12], large, -part, large, "@number@")
    if isinstance(part, str):
        return ("", part[:_LONGEST] * 500, *(text for text in _NASTY if isinstance(text, str)))
    if isinstance(part, list):
        return ([], part[:_MOST] * 200, part[::-1], [*part, None])
    return ({}, {**part, "": 1}, part)


def encode(value: Any, chance: random.Random) -> bytes:
    """Return *value* as JSON in one line, with impossible values in the place of the placeholders."""
    data = json.dumps(value, ensure_ascii=chance.random() < 0.5).encode("utf-8", "surrogatepass")
    if DEEP.encode() in data:
        opening, closing = chance.choice(((b"[", b"]"), (b'{"a":', b"}")))
        depth = chance.choice((50, 900, 20_000))
        data = data.replace(DEEP.encode(), opening * depth + b"1" + closing * depth)
    return data.replace(NUMBER.encode(), chance.choice(_NUMBERS))


def damage(data: bytes, chance: random.Random) -> bytes:
    """Return *data* cut, changed in one byte, doubled, replaced by random bytes, or otherwise broken."""
    kind = chance.randrange(6)
    if kind == 0:
        return data[: chance.randrange(len(data) + 1)]
    if kind == 1:
        at = chance.randrange(max(1, len(data)))
        return data[:at] + bytes([chance.randrange(256)]) + data[at + 1 :]
    if kind == 2:
        return data + data
    if kind == 3:
        return chance.randbytes(chance.randrange(1, 200))
    if kind == 4:
        return b"\xff\xfe" + data
    return data.replace(b":", b":\n\t ", 3)


def pool(kinds: Sequence[type], chance: random.Random, count: int) -> list[bytes]:
    """Return *count* messages: a third fit, a third are bent, a third are damaged too."""
    made = []
    for number in range(count):
        value = sample(kinds, chance)
        if number % 3:
            bend(value, chance, chance.choice((1, 1, 2, 5)))
        data = encode(value, chance)
        made.append(damage(data, chance) if number % 3 == 2 else data)
    return made
