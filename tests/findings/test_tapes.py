"""Gradient tapes that fill a pool. The pool is that of the tests of keepers."""

from msgspec.structs import replace

from tests.findings.test_keepers import FULL, actions, hooked, kept, look, part, stock
from tests.streams import MIB
from tfmemtop import events
from tfmemtop.findings.cause import Cause, Key
from tfmemtop.findings.keepers import keeper
from tfmemtop.findings.remedy import Action
from tfmemtop.findings.scene import MANY, Scene
from tfmemtop.state.holders import Part


def test_a_tape_whose_gradient_is_being_computed_has_recorded_a_forward_pass() -> None:
    line = events.Waiting(t=29.0, pid=100, operation="", file="/a/t.py", line=9, code="tape.gradient(loss, weights)")

    def cause(*parts: Part) -> Cause | None:
        return keeper(Scene(stock(look(tapes=0), *parts), FULL, hooked(line)))

    passed = cause(part("Mul", 300 * MIB, 40), part("Tanh", 300 * MIB, 40))
    assert passed is not None and passed.key is Key.TAPE_OPEN
    assert cause(part("Slice", 600 * MIB, 80)) is None, "another thread may have made them, for a queue"


def test_a_tape_that_is_open() -> None:
    results = part("while/MatMul", 600 * MIB, 300)
    cause = kept(look(tapes=1), results)
    assert cause is not None and (cause.key, cause.count, cause.bytes) == (Key.TAPE_OPEN, 300, 600 * MIB)
    assert "300 MatMul of [256,1024]" in cause.evidence[0] and actions(cause) == [Action.TAPE_EACH_STEP]
    several = kept(replace(look(tapes=58), tapes_in="kept[*]"), results)
    assert several is not None and actions(several) == [Action.DROP_TAPES]
    assert several.holder == "kept[*]" and "`kept[*]` keeps 58 gradient tapes" in several.text
    assert kept(look(tapes=0), results) is None
    assert kept(look(tapes=1), part("while/MatMul", 600 * MIB, MANY - 1)) is None
    mixed = kept(look(tapes=1), part("Mul", 300 * MIB, 40), part("Tanh", 300 * MIB, 40))
    assert mixed is not None and mixed.count == 80, "of one shape, though no operation made so many"
    nameless = kept(look(tapes=1), part("Tanh", 600 * MIB, 300, shape=None))
    assert nameless is not None and "300 Tanh of 2.0 MiB each" in nameless.evidence[0], (
        "as on a GPU, without recorded shapes"
    )
    logits = part("logits/MatMul", 500 * MIB, shape=(4096, 20000))
    assert kept(look(tapes=1), logits, part("cell/AddV2", 9 * MIB, 300)) is None, "one output has nearly all"
