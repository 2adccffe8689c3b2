"""Batches and data sets that are older than the recording get their names from the inputs that layers have read.

Nothing else gets a name in this way.

Each recording is the last window that ``tfmemtop record`` made of a small program on the CPU's BFC allocator:
``fit`` is Keras's ``fit`` on NumPy arrays with batches of 8192 and layers of 32 and 10. ``batches`` is a loop over
tf.data with the batch in a variable of Python. ``tokens`` is an embedding. ``images`` has images of bytes and a second
input. ``mirrored`` trains on two logical devices. ``autoencoder`` keeps its results, which are as large as its batches.
"""

from pathlib import Path

import pytest

from tests import streams as s
from tests import windows as w
from tests.state.real import alone, load, named
from tfmemtop import events
from tfmemtop.findings.who_holds import likely, marked_name
from tfmemtop.state.attribution import Kind
from tfmemtop.state.holders import By, Part, standing
from tfmemtop.state.model import Hooked
from tfmemtop.state.owners import Guess

FOLDER = Path(__file__).parent / "recorded_windows"
SHAPES = {
    "fit": {(8192, 784), (32768, 784)},
    "batches": {(4096, 512), (12288, 512)},
    "tokens": {(512, 128), (4096, 128)},
    "images": {(128, 48, 48, 3), (128, 40), (512, 40)},
    "mirrored": {(8192, 256)},
}
"""The shapes of each program's batches and data sets."""


def guessed(window: events.Holders, hooked: Hooked) -> list[Part]:
    found = standing(window, hooked, By.LAYER)
    assert sum(row.bytes for row in found.holders) + found.unknown == found.total == window.peak
    return [part for row in found.holders for part in row.parts if part.guess]


@pytest.mark.parametrize("program", SHAPES)
def test_nearly_all_bytes_have_a_name_though_the_batch_is_older_than_the_window(program: str) -> None:
    window, hooked = load(FOLDER / f"{program}.jsonl")
    parts = guessed(alone(window), hooked)
    assert {part.shape for part in parts} - {None} == SHAPES[program]
    assert {part.kind for part in parts} == {Kind.INPUT} and {part.guess for part in parts} == {Guess.SIZE}
    assert named(standing(alone(window), hooked, By.LAYER)) >= 0.95


def test_a_guess_is_marked_and_explained() -> None:
    window, hooked = load(FOLDER / "fit.jsonl")
    found = standing(window, hooked, By.LAYER)
    assert marked_name(found.holders[0], By.LAYER) == "~input"
    assert "known by its size" in likely(found)


def test_what_may_as_well_be_a_kept_result_gets_no_name() -> None:
    window, hooked = load(FOLDER / "autoencoder.jsonl")
    assert not guessed(window, hooked) and not guessed(alone(window), hooked)
    assert named(standing(alone(window), hooked, By.LAYER)) < 0.5


ROWS, READ, MADE = 512, 96, 64
BATCH, KERNEL = ROWS * READ * 4, READ * MADE * 4


def step(
    *older: int, opened: events.Opened = events.Opened.INTERVAL, kept: int = 0, first: int = 0, loss: int = 0
) -> list[Part]:
    """Return the parts that are guessed in a step of one dense layer, if there are *older* chunks beside its kernel.

    Three more operations may make results, of so many bytes: *kept* is not freed in the step, *first* comes before the
    layer, and *loss* belongs to the loss. 0 means that there is no such operation.
    """
    window = w.Window()
    for size in (KERNEL, *older):
        window.has(size)
    if first:
        shape = [ROWS, first // ROWS // 4]
        window.free(window.allocate(first, f"{w.CALL}m_1/augment_1/mul", shape=shape, dtype="float32"))
    result = window.allocate(ROWS * MADE * 4, f"{w.CALL}m_1/l0_1/Relu", shape=[ROWS, MADE], dtype="float32")
    if loss:
        shape = [ROWS, loss // ROWS // 4]
        window.free(window.allocate(loss, f"{w.CALL}compile_loss/mse/Square", shape=shape, dtype="float32"))
    if kept:
        window.allocate(kept, f"{w.CALL}m_1/l1_1/mul", shape=[ROWS, kept // ROWS // 4], dtype="float32")
    window.free(result)
    variable = events.Variable("m/l0/kernel", "variables", [READ, MADE], "float32", "GPU:0", KERNEL)
    census = events.Census(t=5.0, pid=100, kinds={"GPU:0": {"variables": KERNEL}}, largest=[variable])
    state = s.fold([s.session(), s.run(), s.process(0.6, 100), s.hook(1.1, 100), census])
    hooked = state.processes[100].hooked
    assert hooked is not None
    return guessed(window.done(opened=opened), hooked)


def test_what_a_layer_has_read_is_its_input() -> None:
    (part,) = step(BATCH, BATCH, BATCH + 4)
    assert (part.kind, part.shape, part.dtype, part.count) == (Kind.INPUT, (ROWS, READ), "float32", 2)


def test_what_the_step_has_made_itself_is_not_older() -> None:
    assert step(BATCH, first=BATCH) == []


def test_what_may_be_of_the_step_before_is_not_told() -> None:
    assert step(BATCH, kept=BATCH) == []


def test_what_may_be_a_constant_of_the_loss_is_told_only_where_it_is_the_only_one() -> None:
    assert len(step(BATCH, loss=BATCH)) == 1
    assert step(BATCH, BATCH, loss=BATCH) == []


def test_a_data_set_is_told_by_its_labels() -> None:
    examples = 10 * BATCH
    assert step(examples) == []
    data, labels = step(examples, 10 * ROWS * 8)
    assert data.shape == (10 * ROWS, READ) and labels.shape is None and labels.bytes == 10 * ROWS * 8


def test_within_a_step_nothing_is_known_of_what_it_has_read() -> None:
    assert step(BATCH, opened=events.Opened.WAITING) == []
