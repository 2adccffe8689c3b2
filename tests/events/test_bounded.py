"""No event and no command contains a number, text or list without bounds."""

from collections.abc import Iterator

import msgspec.inspect as inspected
import pytest

from tfmemtop.events.base import event_types
from tfmemtop.events.commands import command_types


def unbounded(kind: object, place: str) -> Iterator[str]:
    """Yield the places in a type where a value may have any size."""
    match kind:
        case inspected.BoolType() | inspected.NoneType() | inspected.LiteralType() | inspected.EnumType():
            return
        case inspected.IntType() | inspected.FloatType():
            if kind.ge is None or kind.le is None:
                yield place
            return
        case inspected.StrType() | inspected.BytesType():
            inner = []
        case inspected.ListType() | inspected.VarTupleType():
            inner = [kind.item_type]
        case inspected.DictType():
            inner = [kind.key_type, kind.value_type]
        case inspected.StructType():
            for field in kind.fields:
                yield from unbounded(field.type, f"{place}.{field.name}")
            return
        case inspected.TupleType():
            for item in kind.item_types:
                yield from unbounded(item, place)
            return
        case inspected.UnionType():
            for item in kind.types:
                yield from unbounded(item, place)
            return
        case _:
            yield f"{place}: {kind}"
            return
    if kind.max_length is None:
        yield place
    for item in inner:
        yield from unbounded(item, place)


@pytest.mark.parametrize("kind", [*event_types(), *command_types()])
def test_every_field_has_bounds(kind: type) -> None:
    assert list(unbounded(inspected.type_info(kind), kind.__name__)) == []
