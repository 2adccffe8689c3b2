"""XLA's report on a real GPU, for Keras's ResNet-50 with its default settings. Run by hand: ``pytest -m gpu``."""

from pathlib import Path

import pytest

from tests.gpu.recorded import kept, record
from tfmemtop import events

pytestmark = pytest.mark.usefixtures("built")

RESNET = """
import keras
import numpy as np

model = keras.applications.ResNet50(weights=None)
model.compile("adam", "sparse_categorical_crossentropy")
images, labels = np.zeros((64, 224, 224, 3), "float32"), np.zeros(64)
for _ in range(20):
    model.train_on_batch(images, labels)
"""


def run(folder: Path, name: str, script: str, *options: str) -> tuple[str, list[events.Event]]:
    """Run *script* under ``tfmemtop record``. Return its output, and the events of the recording."""
    watched = ("--growth", "on", *options)
    done, stream = record(kept(folder) / f"xla-{name}.jsonl", watched, "-c", script)
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout, stream


def test_the_temporary_buffer_of_a_resnet_is_opened(tmp_path: Path) -> None:
    _, told = run(tmp_path, "report", RESNET, "--xla-report")
    clusters = [event for event in told if isinstance(event, events.XlaCluster)]
    for one in clusters:
        print(one.name, one.module, one.temporary, one.peak, one.missing, one.detail)
    assert clusters and not [one for one in clusters if one.missing]
    step = max(clusters, key=lambda one: one.temporary)
    values = [value for value in step.values if value.first <= step.peak_at <= value.last]
    for value in sorted(values, key=lambda value: -value.size)[:30]:
        print(f"{value.size:>14,} {value.operation}")
    assert step.name == "one_step_on_data" and step.temporary > 1 << 30
    assert sum(value.size for value in values) <= step.peak <= step.temporary
    named = sum(value.size for value in values if "resnet50" in value.operation)
    assert named >= 0.9 * step.temporary
    peak = max(event.peak or 0 for event in told if isinstance(event, events.Allocator) and event.device == "GPU:0")
    assert step.temporary < peak
    # With windows: one allocation of the step is exactly that buffer.
    windows = [event for event in told if isinstance(event, events.Holders) and not event.is_missing]
    if windows:
        from tfmemtop.events.allocations import WindowAllocations, unpack

        asked = {kind.requested for window in windows for kind in unpack(window.packed, WindowAllocations).kinds}
        assert step.temporary in asked
