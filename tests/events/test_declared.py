"""What the classes of events declare about themselves, and that everything else is derived from it."""

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from tests.anything import Filling
from tfmemtop.events import Event, Origin, Run, event_types
from tfmemtop.events.base import Curve
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
