"""A failing step that was not recorded gets its names from the step before, if it does the same with a larger batch."""

from fractions import Fraction

import pytest

from tests import streams as s
from tests import windows as w
from tfmemtop import events
from tfmemtop.state.attribution import Kind
from tfmemtop.state.holders import By, course, standing
from tfmemtop.state.likely import likely
from tfmemtop.state.model import Hooked

KIB = 1024
WEIGHTS = 64 * 64 * 4
FEATURES = (64, 96, 32, 64)
"""The features in the results of four layers. The first and the last result have the same size."""


def fails(*sizes: int, rows: int = 256, asked: int | None = None) -> tuple[events.Holders, Hooked]:
    """Return the window of an allocation that waits, and its process. It comes some time after a step of *rows* rows.

    The window contains the weights, and chunks of *sizes* bytes. *asked* is the number of bytes in the error.
    """
    window = w.Window(number=2)
    for size in (*[WEIGHTS] * 4, *sizes):
        window.has(size)
    waiting = window.done(t=30.0, opened=events.Opened.WAITING)
    variables = [
        events.Variable(f"m/l{n}/kernel", "variables", [64, 64], "float32", "GPU:0", WEIGHTS) for n in range(4)
    ]
    census = events.Census(t=5.0, pid=100, kinds={"GPU:0": {"variables": 4 * WEIGHTS}}, largest=variables)
    error = events.OutOfMemory(t=39.0, pid=100, message="OOM when allocating", device="GPU:0", requested=asked)
    stream = [s.session(), s.run(), s.process(0.6, 100), s.hook(1.1, 100), census, step(rows), waiting, error]
    found = s.fold(stream).processes[100].hooked
    assert found is not None
    return waiting, found


def step(rows: int) -> events.Holders:
    """Return a step of four layers.

    It makes their results forward, and the gradients of their weights backward, while it frees the layers' results.
    """
    window = w.Window()
    for _ in range(4):
        window.has(WEIGHTS)
    results = []
    for layer, features in enumerate(FEATURES):
        name = f"{w.CALL}m_1/l{layer}_1"
        scratch = window.allocate(rows * 400, f"{name}/MatMul", shape=[rows, 100], dtype="float32")
        results.append(window.allocate(rows * features * 4, f"{name}/Relu", shape=[rows, features], dtype="float32"))
        window.free(scratch)
    for layer in (3, 2, 1, 0):
        name = f"{w.CALL}gradient_tape/m_1/l{layer}_1/MatMul/MatMul_1"
        window.allocate(WEIGHTS, name, shape=[64, 64], dtype="float32")
        window.free(results[layer])
    return window.done(t=20.0)


@pytest.mark.parametrize("times", [1, 2, 3])
@pytest.mark.parametrize("computed", [2, 3, 4])
def test_what_has_been_computed_has_the_names_of_the_step_before(times: int, computed: int) -> None:
    rows = 256
    sizes = [times * rows * features * 4 for features in FEATURES[:computed]]
    waiting, process = fails(*sizes, rows=rows)
    found = likely(waiting, process)
    assert found is not None and found.scale == times
    names = sorted((owner.layer, owner.shape) for owner in found.owners.values())
    assert names == [(f"l{layer}", (times * rows, FEATURES[layer])) for layer in range(computed)]
    rowed = standing(waiting, process, By.LAYER)
    assert rowed.total == waiting.peak == sum(row.bytes for row in rowed.holders) and rowed.without_name == 0
    assert all(part.likely == (part.kind is Kind.ACTIVATIONS) for row in rowed.holders for part in row.parts)
    (moment,) = course(waiting, process)
    assert moment.by_kind == {Kind.VARIABLES: 4 * WEIGHTS, Kind.ACTIVATIONS: sum(sizes)}


def test_in_the_backward_pass_gradients_of_weights_have_not_grown() -> None:
    sizes = [2 * 256 * features * 4 for features in FEATURES[:3]]
    found = likely(*fails(*sizes, WEIGHTS))
    assert found is not None and found.scale == Fraction(2)
    kinds = sorted((owner.layer, owner.kind.value) for owner in found.owners.values())
    assert kinds == [("l0", "activations"), ("l1", "activations"), ("l2", "activations"), ("l3", "gradients")]


@pytest.mark.parametrize("sizes", [(), (123 * KIB, 457 * KIB, 999 * KIB), (8000 * KIB,)])
def test_what_does_not_fit_gets_no_name(sizes: tuple[int, ...]) -> None:
    assert likely(*fails(*sizes)) is None


def test_a_step_that_makes_nothing_of_the_size_that_failed_is_another_one() -> None:
    sizes = [2 * 256 * features * 4 for features in FEATURES]
    assert likely(*fails(*sizes, asked=2 * 256 * 400)) is not None
    assert likely(*fails(*sizes, asked=2 * 256 * 404)) is None
