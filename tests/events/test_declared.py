"""What the classes of events declare about themselves, and that everything else is derived from it.

No event and no command contains a number, text or list without bounds.
"""

from collections.abc import Iterator
from typing import Any

import msgspec
import msgspec.inspect as inspected
import pytest

from tests.anything import Filling
from tfmemtop.events import Event, Origin, Run
from tfmemtop.events.base import Curve, event_types
from tfmemtop.events.commands import command_types
from tfmemtop.state import State, apply

KINDS = event_types()
FILLED = "filled in"


@pytest.mark.parametrize("kind", KINDS)
def test_what_an_event_is_kept_by_is_part_of_it(kind: type[Event]) -> None:
    names = {*kind.keep.by, *(kind.keep.highest if isinstance(kind.keep, Curve) else ())}
    assert all(hasattr(kind, name) for name in names)


@pytest.mark.parametrize("kind", event_types(Origin.HOOK))
def test_what_a_hook_tells_is_of_a_process(kind: type[Event]) -> None:
    assert "pid" in kind.__struct_fields__


@pytest.mark.parametrize("event", Filling("x", 7).events(), ids=lambda event: type(event).__name__)
def test_every_event_can_be_folded(event: Event) -> None:
    state = State()
    apply(state, event)
    assert "left-out-event" not in state.notices


def environments(value: Any) -> Iterator[dict[str, str]]:
    """Yield each dict in *value* that maps filled-in names to texts."""
    if isinstance(value, dict):
        if value and all(name.startswith(FILLED) and isinstance(text, str) for name, text in value.items()):
            yield value
        value = list(value.values())
    if isinstance(value, list):
        for each in value:
            yield from environments(each)


def test_no_event_has_an_environment_recorded_as_it_is() -> None:
    # The variables that a script names itself are recorded; the engine leaves out those that may be secrets.
    events = [event for event in Filling(FILLED, 7).events() if not isinstance(event, Run)]
    assert len(list(environments([msgspec.to_builtins(event) for event in events]))) >= 2
    assert list(environments([msgspec.to_builtins(event.recorded()) for event in events])) == []


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
