"""Events of every kind, with every field filled in. They are made from the types themselves, so none is missing."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, TypeVar

import msgspec
from msgspec import inspect

from tfmemtop.events import Event, event_types

T = TypeVar("T")

KINDS: tuple[type[Event], ...] = event_types()

_FIRST = (
    *("session", "device", "run", "process", "hook", "initialised", "effective", "device_reading", "allocator"),
    "outside",  # its last state, that nothing reads the process any more, takes the pools from the screen
)
"""The order in which these events make a picture. All others follow, the end of a run last."""

_LAST = ("run_end",)


@dataclass
class Filling:
    """The values for fields: *text* for strings; *number*, or the nearest value that is allowed, for numbers.

    ``named`` are the values of fields that must fit together, so that the events of a process belong to it.
    """

    text: str
    number: float
    many: int = 1
    named: dict[str, Any] = field(default_factory=dict)

    def events(self) -> list[Event]:
        """Return one event of each kind, or one for each allowed value of a field that has a list of them."""
        found = [event for kind in KINDS for event in self.each(kind)]
        order = {name: place for place, name in enumerate(_FIRST)}
        order |= dict.fromkeys(_LAST, 1000)
        return sorted(found, key=lambda event: order.get(str(event.__struct_config__.tag), 100))

    def each(self, kind: type[T]) -> Iterator[T]:
        """Yield an event or a command of *kind*, or one for each allowed value of a field that has a list of them."""
        info = inspect.type_info(kind)
        assert isinstance(info, inspect.StructType)
        choices = [(f.name, found) for f in info.fields if (found := _choices(f.type))]
        name, values = choices[0] if choices else ("", [None])
        for value in values:
            fields = {f.encode_name: self.value(f.type, f.name) for f in info.fields}
            if name:
                fields[name] = value
            yield msgspec.convert({str(info.tag_field): info.tag} | fields, kind)

    def value(self, kind: inspect.Type, name: str = "") -> Any:
        """Return a value of *kind*, as JSON represents it."""
        if name in self.named:
            return self.named[name]
        match kind:
            case inspect.UnionType(types):
                return self.value(next(each for each in types if not isinstance(each, inspect.NoneType)), name)
            case inspect.IntType(ge=ge, le=le) | inspect.FloatType(ge=ge, le=le):
                assert ge is not None and le is not None, f"{name} is not bounded"
                fitting = min(max(self.number, ge), le)
                return int(fitting) if isinstance(kind, inspect.IntType) else float(fitting)
            case inspect.StrType(max_length=longest):
                assert longest is not None, f"{name} may be of any length"
                return self.text[:longest]
            case inspect.BytesType(max_length=longest):
                assert longest is not None, f"{name} may be of any length"
                return "/wAB" * min(self.many, longest // 3)
            case inspect.BoolType():
                return self.number > 0
            case inspect.EnumType() | inspect.LiteralType():
                return _choices(kind)[0]
            case inspect.ListType(item, max_length=most) | inspect.VarTupleType(item, max_length=most):
                assert most is not None, f"{name} may have any length"
                return [self.value(item)] * min(self.many, most)
            case inspect.TupleType(items):
                return [self.value(item) for item in items]
            case inspect.DictType(key, value, max_length=most):
                assert most is not None, f"{name} may have any length"
                called, filled = self.value(key)[:1000], self.value(value)
                return {f"{called}{n or ''}": filled for n in range(min(self.many, most))}
            case inspect.StructType(fields=fields, array_like=array_like):
                made = {f.encode_name: self.value(f.type, f.name) for f in fields}
                return list(made.values()) if array_like else made
        raise TypeError(f"{name}: nobody has said how to make {kind}")


def _choices(kind: inspect.Type) -> list[Any]:
    """Return the allowed values of a type that has a list of them, or an empty list."""
    match kind:
        case inspect.EnumType(cls=cls):
            return [member.value for member in cls]
        case inspect.LiteralType(values):
            return list(values)
        case inspect.UnionType(types):
            return [choice for each in types for choice in _choices(each)]
    return []
