"""A recording may say of any figure that it is 0, and of any list that it is empty: no sentence divides by that."""

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tfmemtop.events.decoding import Unreadable, decode_event
from tfmemtop.findings.finding import RuleFailed
from tfmemtop.findings.rules import findings
from tfmemtop.state import State, apply

RECORDINGS = Path(__file__).parents[1] / "recordings"
KEPT = {"t", "type", "pid", "run", "index"}
NAMES = ("seeds/default.jsonl", "seeds/cut-up.jsonl", "leaks/h100-leak.jsonl", "windows/first-step.jsonl")


def without(field: str, value: Any) -> Any:
    """Return *value* with 0 or nothing in each *field* of that name, however deep."""
    if isinstance(value, list):
        return [without(field, one) for one in value]
    if not isinstance(value, dict):
        return value
    return {
        name: type(one)() if name == field and isinstance(one, int | float | list) else without(field, one)
        for name, one in value.items()
    }


def fields(value: Any) -> set[str]:
    within = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    own = (
        {name for name, one in value.items() if isinstance(one, int | float | list)} if isinstance(value, dict) else ()
    )
    return set(own).union(*map(fields, within)) - KEPT


@pytest.mark.parametrize("name", NAMES)
def test_nothing_divides_by_what_a_recording_says(name: str) -> None:
    lines = [json.loads(line) for line in (RECORDINGS / name).read_text().splitlines()]
    for field in sorted(fields(lines)):
        state = State()
        for line in lines:
            with suppress(Unreadable):  # the reader leaves out such a line
                apply(state, decode_event(json.dumps(without(field, line)).encode()))
        found = findings(state)
        assert not any(isinstance(one, RuleFailed) for one in found), field
        assert all(one.said.text for one in found), field
