"""Windows of well-known models, recorded on an H100: the rows agree with arithmetic."""

from functools import cache
from pathlib import Path

import pytest

from tests.state.real import load
from tests.streams import MIB
from tfmemtop.events import recording
from tfmemtop.state.attribution import Kind
from tfmemtop.state.fold import apply
from tfmemtop.state.holders import By, Standing, standing
from tfmemtop.state.model import Hooked, State
from tfmemtop.state.windows import recorded

RECORDINGS = Path(__file__).parents[1] / "recordings"
NAMES = ("h100-resnet", "h100-resnet-xla", "h100-transformer")

FLOAT = 4
BATCH = 64
STAGES = {2: (56, 64, 256), 3: (28, 128, 512), 4: (14, 256, 1024)}
"""The stages of ResNet-50: the side of its pictures in pixels, the channels within a block, and those after it."""
BLOCKS = {2: 3, 3: 4, 4: 6}


@cache
def folded(name: str) -> Hooked:
    """Return the process of a recording, of one with the addresses of variables if there is one."""
    located = Path(__file__).parent / "gpu_windows" / f"{name.removeprefix('h100-')}.jsonl"
    if located.exists():
        return load(located, "GPU:0")[1]
    state = State()
    for event in recording.read(RECORDINGS / f"{name}.jsonl").events():
        apply(state, event)
    (hooked,) = [process.hooked for process in state.processes.values() if process.hooked]
    return hooked


def variables_known(name: str) -> int:
    """Return whether the hook sent where the variables lie. Else the rows have no variable's bytes."""
    census = folded(name).census
    return int(census is not None and any(one.address for one in census.largest))


@cache
def held(name: str, by: By = By.LAYER) -> Standing:
    """Return the holders of the GPU's pool at the peak of the newest window."""
    hooked = folded(name)
    window = list(recorded(hooked.windows["GPU:0"]))[-1]
    found = standing(window, hooked, by)
    assert found.total == window.peak
    return found


@pytest.mark.parametrize("by", [By.LAYER, By.LINE])
@pytest.mark.parametrize("name", NAMES)
def test_rows_add_up_to_the_byte_and_have_names(name: str, by: By) -> None:
    found = held(name, by)
    assert sum(row.bytes for row in found.holders) + found.unknown == found.total > 2 << 30
    before = sum(row.bytes for row in found.holders if row.kind is Kind.BEFORE)
    assert found.unknown + before < 0.001 * found.total


@pytest.mark.parametrize("name", ["h100-resnet", "h100-resnet-xla"])
def test_a_convolution_holds_its_output_weights_and_slots(name: str) -> None:
    """This holds with and without XLA. XLA has one buffer, which its report divides into values."""
    rows = {row.name: row for row in held(name).holders}
    for stage, (side, inner, outer) in STAGES.items():
        output = BATCH * side * side * outer * FLOAT
        for block in range(1, BLOCKS[stage] + 1):
            weights = (inner * outer + outer) * FLOAT
            row = rows[f"conv{stage}_block{block}_3_conv"]
            assert row.kind is Kind.ACTIVATIONS
            # The temporary copies for other orders of dimensions are as small as the weights.
            assert (
                output + 3 * variables_known(name) * weights <= row.bytes + MIB // 8
                and row.bytes <= 1.01 * output + 5 * weights
            ), row


def test_a_transformer_holds_its_logits_and_its_attention() -> None:
    """32 texts of 256 tokens, 8000 words, width 512, 8 heads."""
    rows = {row.name: row for row in held("h100-transformer").holders}
    logits, weights = 32 * 256 * 8000 * FLOAT, (512 * 8000 + 8000) * FLOAT
    assert (
        logits + 3 * variables_known("h100-transformer") * weights
        <= rows["logits"].bytes
        <= 1.01 * logits + 5 * weights
    )
    scores = 32 * 8 * 256 * 256 * FLOAT
    for number in range(4):
        assert rows[f"attention_{number}"].bytes >= scores
        assert rows[f"up_{number}"].bytes >= 32 * 256 * 2048 * FLOAT * 3  # before GELU, in it, after it
