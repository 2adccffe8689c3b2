"""Out of memory on a real GPU: the verdict, and how soon it is reported. Run by hand: ``pytest -m gpu``."""

from pathlib import Path

import pytest

from tests.gpu.recorded import kept, record
from tests.gpu.seeds import running_beside
from tfmemtop import events
from tfmemtop.cli.launch import ask_machine
from tfmemtop.findings.cause import Key
from tfmemtop.findings.review import RunReview, review
from tfmemtop.findings.rules.out_of_memory import AllocationFailed, NoRoom

pytestmark = pytest.mark.usefixtures("built")

OUT_OF_MEMORY = events.MapMoment.OUT_OF_MEMORY

BEFORE = """
import sys
import tensorflow as tf

def take(mib):
    return tf.zeros([mib, 256, 1024])

gpu = tf.config.list_physical_devices("GPU")[0]
"""
BEYOND = "kept = take(600)\nalso = take(600)\n"
PIECES = """
pieces = [take(8) for _ in range(120)]
del pieces[::2]
take(200)
"""
CASES = {
    "our-limit": (
        ["--memory-limit", "1G", "--growth", "on"],
        BEYOND,
        (Key.LIMIT_TOO_SMALL, "asked for 600.0 MiB", "your limit is 1.0 GiB"),
    ),
    "its-own-limit": (
        [],
        "tf.config.set_logical_device_configuration(gpu, [tf.config.LogicalDeviceConfiguration(memory_limit=1024)])\n"
        + BEYOND,
        (Key.LIMIT_TOO_SMALL, "asked for 600.0 MiB", "the script's limit is 1.0 GiB"),
    ),
    "fragmented": (
        ["--memory-limit", "1G", "--growth", "off"],
        PIECES,
        (Key.FRAGMENTATION, "asked for 200.0 MiB", "fragmented by 60 tensors of `pieces`"),
    ),
    "truly-full": (["--growth", "on"], "kept = take(100 << 10)\nalso = take(60 << 10)\n", (Key.LIMIT_TOO_SMALL,)),
    "cuda-malloc-async": (["--allocator", "cuda_malloc_async"], "take(200 << 10)\n", (Key.LIMIT_TOO_SMALL,)),
}


def run(folder: Path, name: str, options: list[str], code: str) -> tuple[int, str, list[events.Event], RunReview]:
    """Run *code* under ``tfmemtop record``. Return exit code, stderr, the recording, and the review of it."""
    path = kept(folder) / f"oom-{name}.jsonl"
    done, stream = record(path, options, "-c", BEFORE + code)
    return done.returncode, done.stderr, stream, review(iter(stream))


@pytest.mark.parametrize("name", CASES)
def test_why_it_ran_out(name: str, tmp_path: Path) -> None:
    options, code, (key, *phrases) = CASES[name]
    exit_code, stderr, stream, seen = run(tmp_path, name, options, code)
    assert exit_code == 1 and "ResourceExhaustedError" in stderr
    (failed,) = [held.finding for held in seen.held if isinstance(held.finding, AllocationFailed)]
    assert failed.cause.key is key, failed.said.text
    for phrase in ("GPU:0, process ", *phrases):
        assert phrase in failed.said.text, failed.said.text
    assert "Out of memory" in stderr[stderr.index("ResourceExhaustedError") :]  # the summary
    error = next(event for event in stream if isinstance(event, events.OutOfMemory))
    moments = [event for event in stream if isinstance(event, events.MemoryMap) and event.moment is OUT_OF_MEMORY]
    if name != "cuda-malloc-async":
        # TensorFlow tries for ten seconds; the map of that moment is recorded long before they end.
        assert moments and moments[0].t < error.t - 5
        assert moments[0].cells
        where = next(event for event in stream if isinstance(event, events.Waiting))
        assert where.operation == "Fill" and where.t < error.t - 5
        (soon,) = [held.finding.said for held in seen.held if isinstance(held.finding, NoRoom)]
        assert "Fill at <string>:" in soon.text


def _beyond_half() -> int:
    """Return a size in MiB that fits the card, but does not fit while another process holds half of it."""
    return int((ask_machine().totals[0] or 0) * 0.64) >> 20


def test_it_is_the_others_that_hold_the_card(tmp_path: Path) -> None:
    with running_beside("hold_card", "50", "120"):
        _, _, _, seen = run(tmp_path, "others", ["--growth", "on"], f"take({_beyond_half()})\n")
    (failed,) = [held.finding for held in seen.held if isinstance(held.finding, AllocationFailed)]
    assert failed.cause.key is Key.OTHERS, failed.said.text


def test_a_failed_scratch_allocation_is_no_error(tmp_path: Path) -> None:
    """Convolutions try algorithms whose scratch does not fit. TensorFlow then uses another one and goes on."""
    code = """
import time
images = tf.ones([16, 64, 256, 256])
filters = tf.ones([5, 5, 64, 64])
until = time.monotonic() + 3
while time.monotonic() < until:
    out = None
    out = tf.nn.conv2d(images, filters, 1, "SAME", data_format="NCHW")
print(float(tf.reduce_sum(out)) * 0)
"""
    line = "there could be performance gains if more memory were available"
    for limit in ("700M", "620M", "560M"):  # which algorithms are tried depends on the card
        exit_code, stderr, stream, seen = run(tmp_path, f"scratch-{limit}", ["--memory-limit", limit], code)
        assert exit_code == 0, stderr[-2000:]
        if line in stderr:
            break
    assert line in stderr, "no scratch allocation failed: the test needs another limit"
    # TensorFlow did not wait.
    assert not [event for event in stream if isinstance(event, events.MemoryMap) and event.moment is OUT_OF_MEMORY]
    assert not [event for event in stream if isinstance(event, events.OutOfMemory)]
    told = [held.finding for held in seen.held]
    assert not [one for one in told if isinstance(one, AllocationFailed)]
    assert {one.cause.key for one in told if isinstance(one, NoRoom)} <= {Key.SCRATCH}
    assert "Out of memory" not in stderr[stderr.rindex("tfmemtop") :]
