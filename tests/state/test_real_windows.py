"""Steps of real programs on TensorFlow's BFC allocator for the CPU: the holders have the names that the program uses.

The windows were recorded with TensorFlow 2.21. Each is that of a step, some seconds after the start. In a window that
is ``alone``, nothing is recorded of the allocations before that step.
"""

from collections import Counter
from pathlib import Path

import pytest

from tests.state.real import alone, load, named
from tfmemtop.state.attribution import Kind
from tfmemtop.state.holders import By, Standing, course, standing

FOLDER = Path(__file__).parent / "real_windows"
PROGRAMS = sorted(path.stem for path in FOLDER.glob("*.jsonl"))


def layers(found: Standing) -> dict[str, Counter[Kind]]:
    """Return the bytes that were requested, by layer and kind."""
    sums: dict[str, Counter[Kind]] = {}
    for row in found.holders:
        for part in row.parts:
            sums.setdefault(part.layer, Counter())[part.kind] += part.requested
    return sums


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("by", [By.LAYER, By.SHAPE])
def test_rows_add_up_to_what_the_allocator_said(program: str, by: By) -> None:
    window, hooked = load(FOLDER / f"{program}.jsonl")
    for each in (window, alone(window)):
        found = standing(each, hooked, by)
        assert sum(row.bytes for row in found.holders) + found.unknown == found.total == window.peak
    moments = course(window, hooked)
    assert max(moment.total for moment in moments) == window.peak


@pytest.mark.parametrize("program", [program for program in PROGRAMS if program != "xla"])
def test_nearly_all_bytes_have_a_name(program: str) -> None:
    window, hooked = load(FOLDER / f"{program}.jsonl")
    # Variables below 1 KiB are not listed, and a value that a step has made may not be the variable's yet.
    assert named(standing(window, hooked, By.LAYER)) >= 0.995
    if program != "v1":  # where a session's variables lie is not known
        # Beside small chunks, only what lay in the pool before the window and is no variable: the input of the step.
        assert named(standing(alone(window), hooked, By.LAYER)) >= 0.92


LAYERS = {
    "dense": {"layer0", "layer1", "layer2", "layer3", "head"},
    "sequential": {"c1", "c2", "batch_normalization", "conv2d", "conv2d_1", "d1", "dense", "dense_1", "dense_2"},
    "functional": {"dense", "dense_1", "dense_3", "dense_5", "layer_normalization_2", "head", "add", "add_1"},
    "subclassed": {"block0/conv1", "block1/conv2", "block2/batch_normalization_2", "global_average_pooling2d", "dense"},
    "transformer": {
        "tok",
        "attn0/query",
        "attn1/attention_output",
        "layer_normalization",
        "mlp0up",
        "mlp1down",
        "head",
    },
    "plain": {"encoder", "decoder", "w1", "w2"},
    "mirrored": {"up", "down"},
    "v1": {"encoder0", "encoder2", "head"},
    "eager": {"sequential/d1", "sequential/d2", "w1", "w2"},
}
"""The names that the programs give to their layers."""


def test_the_copies_of_variables_and_slots_on_other_devices_belong_to_their_layer() -> None:
    window, hooked = load(FOLDER / "mirrored.jsonl")
    # ``down`` is without its bias of 40 B: many chunks have that size.
    up, mid, down = (256 + 1) * 1024 * 4, (1024 + 1) * 512 * 4, 512 * 10 * 4
    for each in (window, alone(window)):
        found = layers(standing(each, hooked, By.LAYER))
        assert not [layer for layer in found if "replica" in layer or "kernel" in layer or "bias" in layer]
        for layer, one in (("up", up), ("mid", mid), ("down", down)):
            assert found[layer][Kind.VARIABLES] == 2 * one
            assert found[layer][Kind.OPTIMIZER] >= 4 * one  # momentum and velocity of each, and the update's own


@pytest.mark.parametrize("program", LAYERS)
def test_layers_are_called_as_the_program_calls_them(program: str) -> None:
    window, hooked = load(FOLDER / f"{program}.jsonl")
    rows = {row.name: row for row in standing(window, hooked, By.LAYER).holders}
    assert LAYERS[program] <= rows.keys()
    if program in ("dense", "transformer", "functional"):
        # The forward, backward and optimizer parts of one layer are in one row.
        kinds = {kind for name in LAYERS[program] for part in rows[name].parts for kind in [part.kind]}
        assert {Kind.VARIABLES, Kind.OPTIMIZER, Kind.ACTIVATIONS, Kind.GRADIENTS} <= kinds


def test_layers_hold_what_arithmetic_says() -> None:
    """Four layers of 1024 × 1024 on a batch of 256: float32, and Adam has two slots for each variable."""
    window, hooked = load(FOLDER / "dense.jsonl")
    most: Counter[str] = Counter()
    gradients: Counter[str] = Counter()
    for moment in course(window, hooked):
        for row in standing(window, hooked, By.LAYER, moment.event).holders:
            kept = sum(part.requested for part in row.parts if part.kept)
            most[row.name] = max(most[row.name], kept)
            for part in row.parts:
                if part.kind is Kind.GRADIENTS and part.shape == (1024, 1024):
                    gradients[row.name] = max(part.requested // part.count, gradients[row.name])
    peak = layers(standing(window, hooked, By.LAYER))
    weights = (1024 * 1024 + 1024) * 4
    for layer in ("layer0", "layer1", "layer2", "layer3"):
        assert peak[layer][Kind.VARIABLES] == pytest.approx(weights, rel=0.01)
        assert peak[layer][Kind.OPTIMIZER] == pytest.approx(2 * weights, rel=0.01)
        assert most[layer] == pytest.approx(256 * 1024 * 4, rel=0.01)
        assert gradients[layer] == 1024 * 1024 * 4
    assert peak["head"][Kind.VARIABLES] == pytest.approx((1024 * 10 + 10) * 4, rel=0.01)
