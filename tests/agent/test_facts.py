"""Agent, probe and the replay send the values of enums as text: each text is a value of its enum.

Agent and probe cannot use the enums themselves, since they import only the standard library.
"""

import ast
from collections.abc import Iterator
from enum import Enum
from functools import lru_cache
from pathlib import Path

import pytest

from tfmemtop import events
from tfmemtop.agent.pools import LIVE, OUT_OF_MEMORY

PACKAGE = Path(__file__).parents[2] / "tfmemtop"

SENT: dict[tuple[str, int], type[Enum]] = {
    ("NotTrusted", 0): events.Fault,
    ("_failed", 0): events.Fault,
    ("_CannotBuild", 0): events.Unbuildable,
    ("NotReplayed", 0): events.Unreplayed,
    ("NoCopy", 0): events.Mapless,
    ("nothing", 0): events.Unseen,
    ("_say_missing", 1): events.Windowless,
    ("server_begins", 0): events.Windowless,
}
"""The enum to which an argument belongs, by the name of the function and the position of the argument."""

ELSEWHERE = {
    *("async", "not_bfc"),  # of Mapless, sent when an allocator turns out to have no map
    *("profiler_server", "no_folder"),  # of Windowless, defaults
    *("unbuilt", "no_answer"),  # of Unreplayed, set where a replay is requested
    *("busy", "frozen", "audited", "late"),  # of Unseen, beside what was found
    "system",  # of Unbuildable, without an exception
}
"""Values that are sent without one of those functions."""


def sent(room: str) -> Iterator[tuple[type[Enum], str]]:
    for path in sorted((PACKAGE / room).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call):
                name = getattr(node.func, "attr", getattr(node.func, "id", ""))
                for place, argument in enumerate(node.args):
                    if (name, place) in SENT and (text := constant(argument)):
                        yield SENT[name, place], text


def constant(node: ast.expr) -> str:
    """Return the text of a string up to a colon.

    Of an f-string this is the fixed text at its start. The result is empty if there is no such text.
    """
    first = node.values[0] if isinstance(node, ast.JoinedStr) else node
    text = first.value if isinstance(first, ast.Constant) and isinstance(first.value, str) else ""
    return text.partition(":")[0]


@lru_cache(maxsize=1)
def found() -> set[tuple[type[Enum], str]]:
    return {one for room in ("agent", "probe", "experiments/whatif") for one in sent(room)}


@pytest.mark.parametrize("kind", sorted(set(SENT.values()), key=str))
def test_what_is_sent_is_in_the_vocabulary_and_nothing_there_is_never_sent(kind: type[Enum]) -> None:
    known = {one.value for one in kind}
    told = {text for of, text in found() if of is kind}
    assert told <= known
    assert known - ELSEWHERE <= told


STATES: dict[tuple[str, str], type[Enum]] = {
    ("probe", "state"): events.ProbeState,
    ("hook_end", "reason"): events.HookEnding,
}
"""The enum to which a state belongs, by the type of the event and the name of the field."""


def test_the_states_that_the_agent_sends_are_values_of_their_enums() -> None:
    found = set()
    for path in sorted((PACKAGE / "agent").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "send" and node.args:
                for keyword in node.keywords:
                    if kind := STATES.get((constant(node.args[0]), keyword.arg or "")):
                        found.add(kind(constant(keyword.value)))
    assert {type(one) for one in found} == set(STATES.values())
    assert {LIVE, OUT_OF_MEMORY} == {one.value for one in events.MapMoment}
