"""The inventory of a pool, over real recordings: every byte in use is in one group, at any moment."""

from functools import cache
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import windows as w
from tests.findings.situations import begin
from tests.state.real import load
from tests.streams import MIB, fold
from tfmemtop import events
from tfmemtop.events import recording
from tfmemtop.state import State, apply
from tfmemtop.state.inventory import Group, Inventory, inventory
from tfmemtop.state.lookup import hooked_of

RECORDINGS = Path(__file__).parents[1] / "recordings"
PATHS = sorted(path for path in RECORDINGS.rglob("*.jsonl") if '"type":"census"' in path.read_text())
PROGRAMS = Path(__file__).parent / "real_windows"


@cache
def stream(path: Path) -> list[events.Event]:
    return list(recording.read(path).events())


@given(st.sampled_from(PATHS), st.floats(0.0, 1.0), st.integers(-64 * MIB, 64 * MIB))
def test_the_groups_add_up_at_any_moment(path: Path, share: float, more: int) -> None:
    """*more* bytes than were read, or fewer: a census and a reading are not of the same instant."""
    state = State()
    for event in stream(path)[: 1 + int(share * len(stream(path)))]:
        apply(state, event)
    for process in state.processes.values():
        for device, read in process.hooked.allocators.items() if process.hooked else ():
            assert process.hooked is not None
            in_use = max(0, (read.in_use or 0) + more)
            stock = inventory(process.hooked, device, in_use, state.now)
            assert sum(stock.groups.values()) == in_use and all(size > 0 for size in stock.groups.values())
            assert 0 <= stock.rest <= in_use


def stock_of(name: str) -> Inventory:
    window, hooked = load(PROGRAMS / f"{name}.jsonl")
    return inventory(hooked, window.device, window.peak, window.ended)


@pytest.mark.parametrize("name", ["dense", "transformer", "mirrored"])
def test_of_a_real_step_little_has_no_name(name: str) -> None:
    stock = stock_of(name)
    groups = stock.groups
    slots, variables = groups[Group.OPTIMIZER], groups[Group.VARIABLES]
    assert slots == pytest.approx(2 * variables, rel=0.01), "Adam has two for each variable"
    assert groups.get(Group.HELD, 0) < 0.02 * stock.in_use


def test_what_two_paths_hold_is_counted_once() -> None:
    """Two lists hold the same ten tensors, and a third holds views of a variable."""
    addresses = b"".join(address.to_bytes(8, "little") for address in range(MIB, 11 * MIB, MIB))
    view = (64 * MIB).to_bytes(8, "little")
    alike = [
        events.Alike("first[*]", 10, [MIB // 4], "float32", "GPU:0", 10 * MIB, packed=addresses),
        events.Alike("second[*]", 10, [MIB // 4], "float32", "GPU:0", 10 * MIB, packed=addresses),
        events.Alike("views[*]", 1, [MIB // 4], "float32", "GPU:0", MIB, packed=view),
    ]
    weights = events.Variable("weights", "variables", [MIB // 4], "float32", "GPU:0", MIB, 64 * MIB)
    kinds = {"GPU:0": {"variables": MIB, "tensors": 21 * MIB}}
    look = events.Census(t=5.0, pid=100, kinds=kinds, largest=[weights], tensors=21, alike=alike)
    stock = Inventory("GPU:0", 20 * MIB, look, look, ())
    assert stock.groups == {Group.VARIABLES: MIB, Group.HELD: 10 * MIB, Group.NO_NAME: 9 * MIB}


def test_what_an_object_of_a_list_holds_itself_belongs_to_the_list() -> None:
    """As the logits that Keras keeps with the result of a softmax."""
    paths = "history", "history[*]._keras_logits", "jobs[*]._args"
    alike = [events.Alike(path, 10, [MIB // 4], "float32", "GPU:0", 10 * MIB, items=10) for path in paths]
    look = events.Census(t=5.0, pid=100, kinds={}, largest=[], tensors=30, alike=alike)
    kept = {one.holder: one for one in Inventory("GPU:0", 40 * MIB, look, look, ()).kept}
    assert {name: one.count for name, one in kept.items()} == {"history": 10, "jobs[*]._args": 10}
    assert (kept["history"].bytes, kept["history"].own) == (20 * MIB, "_keras_logits")


def test_of_two_looks_the_one_counts_that_found_more_and_tapes_that_either_saw() -> None:
    def loose(t: float, count: int, tapes: int) -> events.Census:
        alike = [events.Alike("", count, [256], "float32", "GPU:0", count * MIB)]
        return events.Census(t=t, pid=100, kinds={}, largest=[], tensors=count, alike=alike, tapes=tapes)

    error = events.OutOfMemory(t=5.0, pid=100, message="OOM when allocating")
    hooked = hooked_of(fold([*begin(), loose(4.0, 38, 1), error, loose(6.0, 168, 0)]), 100)
    assert hooked is not None and hooked.failure is not None
    stock = inventory(hooked, "GPU:0", 200 * MIB, 5.0)
    assert stock.look is not None and (stock.look.tensors, stock.look.tapes) == (168, 1)


def test_an_older_look_counts_while_most_of_what_it_found_is_there() -> None:
    def looked(still: int) -> bool:
        window = w.Window()
        for _ in range(still):
            window.has(w.SIZE, "Identity")
        packed = b"".join((w.BASE + place * w.SIZE).to_bytes(8, "little") for place in range(8))
        queue = events.Alike("saver.pending", 8, [1024, 1024], "float32", "GPU:0", 8 * w.SIZE, packed=packed)
        look = events.Census(t=2.0, pid=100, kinds={}, largest=[], tensors=8, alike=[queue])
        hooked = hooked_of(fold([*begin(), look, window.done(t=60.0)]), 100)
        assert hooked is not None
        return inventory(hooked, "GPU:0", still * w.SIZE, 60.0).look is not None

    assert looked(still=8) and not looked(still=3)


def test_many_tensors_of_a_variables_shape_are_no_views_of_it_if_they_lie_elsewhere() -> None:
    def loose(*addresses: int) -> bool:
        packed = b"".join(address.to_bytes(8, "little") for address in addresses)
        alike = events.Alike("", len(addresses), [256], "float32", "GPU:0", len(addresses) * MIB, packed=packed)
        weights = events.Variable("weights", "variables", [256], "float32", "GPU:0", MIB, 64 * MIB)
        look = events.Census(t=5.0, pid=100, kinds={}, largest=[weights], tensors=9, alike=[alike])
        return bool(Inventory("GPU:0", 99 * MIB, look, look, ()).loose)

    assert loose(*range(MIB, 6 * MIB, MIB))
    assert not loose(*range(MIB, 5 * MIB, MIB)), "as a step makes them"
    assert not loose(*range(60 * MIB, 65 * MIB, MIB)), "one is the variable itself"


def test_what_was_in_use_is_taken_from_the_window_that_shows_about_so_much() -> None:
    """A window that began later may have ended before the request waited for room."""
    waiting, before = w.Window(), w.Window(number=2)
    waiting.allocate(200 * MIB, "Softmax", shape=[50, MIB])
    before.allocate(300 * MIB, "Dropout", shape=[75, MIB])
    ended = before.done(t=4.0), msgspec.structs.replace(waiting.done(t=5.0), began=1.0)
    hooked = hooked_of(fold([*begin(), *ended]), 100)
    assert hooked is not None
    assert [part.operation for part in inventory(hooked, "GPU:0", 200 * MIB, 14.0).parts] == ["Softmax"]
