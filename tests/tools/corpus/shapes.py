"""Random messages: made to fit msgspec's types, then bent and broken."""

import copy
import json
import random
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

DEEP, NUMBER = '"@deep@"', '"@number@"'
"""Placeholders for values that no JSON library would write."""

_NUMBERS = (b"1" + b"0" * 308, b"1" + b"0" * 4000, b"1e308", b"-1e308", b"1e-320", b"NaN", b"Infinity", b"-0", b"0x10")
_NASTY: tuple[Any, ...] = (  # numbers first
    *(-1, 0, 2**31, 2**53 + 1, 2**63, 2**64, -(2**63), 10**18, 10**308, 1e308, -1e308, 1e-300, True, None, "", [], {}),
    *(
        "x" * 5000,
        "\x1b]52;c;QUJD\x1b\\",
        "\x1b[2J\x07\r\x00\x9b31m",
        "\u202e\u2066\U0001f600\u0301",
        "GPU:0\n",
        "\\u0000",
    ),
    *("@deep@", "@number@", [0] * 3000, [[]] * 500, {str(n): n for n in range(500)}, {"": {"": {"": []}}}),
)
_TEXTS = ("GPU:0", "CPU:0", "GPU:1", "bfc", "train.py", "/a/b.py", "set_memory_growth", "x", "é漢", "f", "")


def sample(type_: Any, chance: random.Random) -> Any:
    """Return a value that fits *type_*."""
    return _value(msgspec.inspect.type_info(type_), chance)


def _value(info: Any, chance: random.Random) -> Any:
    kinds = msgspec.inspect
    if isinstance(info, kinds.StructType):
        fields = {
            field.encode_name: _value(field.type, chance)
            for field in info.fields
            if field.required or chance.random() < 0.7
        }
        if info.array_like:
            return [_value(field.type, chance) for field in info.fields]
        return {str(info.tag_field): info.tag, **fields} if info.tag_field else fields
    if isinstance(info, kinds.UnionType):
        return _value(chance.choice(info.types), chance)
    if isinstance(info, kinds.LiteralType):
        return chance.choice(list(info.values))
    if isinstance(info, kinds.EnumType):
        return chance.choice([member.value for member in info.cls])
    if isinstance(info, kinds.ListType):
        return [_value(info.item_type, chance) for _ in range(chance.choice((0, 1, 2, 5)))]
    if isinstance(info, kinds.DictType):
        return {_value(info.key_type, chance): _value(info.value_type, chance) for _ in range(chance.randrange(3))}
    if isinstance(info, (kinds.TupleType, kinds.VarTupleType)):
        items = info.item_types if isinstance(info, kinds.TupleType) else (info.item_type,)
        return [_value(item, chance) for item in items]
    if isinstance(info, kinds.IntType):
        return chance.choice((0, 1, 7, 1 << 20, chance.randrange(1 << 40)))
    plain: dict[Any, Callable[[], Any]] = {
        kinds.FloatType: lambda: chance.choice((0.0, 0.5, 1e9, chance.random() * 100)),
        kinds.BoolType: lambda: chance.random() < 0.5,
        kinds.BytesType: lambda: "AAAA" * chance.randrange(600),
        kinds.StrType: lambda: chance.choice(_TEXTS),
    }
    make = plain.get(type(info))
    return make() if make else None


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


def enlarged(kind: type, chance: random.Random, most: int) -> bytes:
    """Return a message of *kind* that fits its bounds, with parts as large as they may be, in *most* bytes of JSON."""
    value = sample(kind, chance)
    data = b""
    for _ in range(150):
        holder, key = chance.choice(list(_places(value)))
        before = holder[key]
        holder[key] = _twice(before, chance)
        made = json.dumps(value, ensure_ascii=False).encode()
        try:
            msgspec.convert({"t": 1.0, "pid": 1} | value, kind)
            fits = len(made) <= most
        except msgspec.ValidationError:
            fits = False
        if fits:
            data = made
        else:
            holder[key] = before
    return data or json.dumps(value).encode()


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    for key, part in list(value.items() if isinstance(value, dict) else enumerate(value)):
        yield value, key
        if isinstance(part, (dict, list)):
            yield from _places(part)


def _twice(part: Any, chance: random.Random) -> Any:
    if isinstance(part, str):
        return part + chance.choice(("x", "x", "\U0001f600")) * max(1, len(part))
    if isinstance(part, list):
        return part + copy.deepcopy(part)
    if isinstance(part, dict):
        return part | {f"{key}{len(part)}": copy.deepcopy(each) for key, each in part.items()}
    return part


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
    """Return *value* as JSON, with impossible values in the place of the placeholders."""
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


def pool(type_: Any, chance: random.Random, count: int) -> list[bytes]:
    """Return *count* messages: a third fit, a third are bent, a third are damaged too."""
    made = []
    for number in range(count):
        value = sample(type_, chance)
        if number % 3:
            bend(value, chance, chance.choice((1, 1, 2, 5)))
        data = encode(value, chance)
        made.append(damage(data, chance) if number % 3 == 2 else data)
    return made
