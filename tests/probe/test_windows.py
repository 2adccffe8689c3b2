"""Windows of allocations in real trainings, on TensorFlow's BFC allocator for the CPU."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.agent.conftest import Event, Monitor, outcome, start
from tests.probe.window_files import Record, WindowFile, read_window
from tfmemtop.probe.cache import checksum_of

Script = Callable[[str], str]


class Watched:
    """A script that the hook and the probe are in, with the windows that they tell of."""

    def __init__(self, monitor: Monitor, script: str, library: Path, folder: Path, **variables: str) -> None:
        self.monitor = monitor
        self.folder = folder
        folder.mkdir(exist_ok=True)
        self.process = start(monitor, script, TFMEMTOP_DUMPS=str(folder), **variables)
        monitor.wait_for(lambda event: event["type"] == "hook" and event["pid"] == self.pid)
        self.say({"do": "load", "path": str(library), "checksum": checksum_of(library.read_bytes())})

    @property
    def pid(self) -> int:
        return self.process.pid

    def say(self, message: Event) -> None:
        self.monitor.say(self.pid, message)

    def until(self, opened: str, count: int = 1) -> Event:
        """What is told of a window that was opened so and has ended; of several the *count*-th."""

        def whole() -> list[Event]:
            told = self.monitor.of("window", self.pid)
            return [window for window in told if window["opened"] == opened and window["last"]]

        self.monitor.wait_for(lambda _: len(whole()) >= count)
        return whole()[count - 1]

    def ask(self, count: int = 1) -> Event:
        self.say({"do": "holders"})
        return self.until("asked", count)

    def read(self, window: Event) -> WindowFile:
        return read_window(self.folder / f"{self.pid}.{window['window']}.window", window["bytes"])

    def line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def go_on(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()


Watch = Callable[..., Watched]


@pytest.fixture
def watch(monitor: Monitor, script: Script, library: Path, tmp_path: Path) -> Watch:
    def watched(source: str, **variables: str) -> Watched:
        return Watched(monitor, script(source), library, tmp_path / "dumps", **variables)

    return watched


def operations(window: WindowFile) -> set[str]:
    return {record.operation for record in window.records}


def inside(window: WindowFile, step: int) -> list[Record]:
    """The records of one of its steps."""
    begin, end = window.steps[step]
    return [record for record in window.records if begin <= record.at_ns <= end]


KERAS = """
import json, sys
import keras, numpy as np, tensorflow as tf

class Wait(keras.callbacks.Callback):
    batches = 0
    def on_train_batch_end(self, batch, logs=None):
        self.batches += 1
        if self.batches == 12:
            print(json.dumps(tf.config.experimental.get_memory_info("CPU:0")), flush=True)
            sys.stdin.readline()
        if self.batches > 12 and self.batches % 100 == 0 and done.exists():
            self.model.stop_training = True

import pathlib
done = pathlib.Path(__file__).with_name("done")
model = keras.Sequential([
    keras.layers.Input((64,)), keras.layers.Dense(256, activation="relu", name="wide"), keras.layers.Dense(1)])
model.compile("adam", "mse", jit_compile=False)
x, y = np.zeros((320, 64), "f"), np.zeros((320, 1), "f")
model.fit(x, y, batch_size=32, epochs=100000, verbose=0, callbacks=[Wait()])
print("trained", flush=True)
"""


def test_a_keras_fit_from_the_making_of_its_devices_on(watch: Watch, tmp_path: Path) -> None:
    keras = watch(KERAS)
    told = keras.until("start")
    found = keras.read(told)
    assert (told["closed"], told["function"], told["pools"]) == ("step", "multi_step_on_iterator", ["CPU:0"])
    assert not found.chunks and not found.pools[0].in_use, "it began before the first allocation"
    _, peak = found.replay()
    assert len(found.steps) >= 3 and not found.lost
    said = json.loads(keras.line())
    assert peak == said["peak"], "what stands at the peak is what the allocator says"
    made = [record for record in found.records if record.size > 0]
    assert sum(record.size for record in made if record.operation) > 0.9 * sum(record.size for record in made)
    assert any("gradient_tape" in record.operation and "wide" in record.operation for record in inside(found, -1))
    assert {"[32,256]", "[64,256]"} <= {record.shape for record in inside(found, -1)}

    keras.go_on()
    for number in (1, 2):
        told = keras.ask(number)
        assert told["closed"] == "step" and told["window"] == 1 + number and told["cost_us"] > 0
        found = keras.read(told)
        found.replay()
        assert found.chunks and not found.lost and found.steps
        assert any("gradient_tape" in operation for operation in operations(found))
        assert len(found.records) < 2000, "one step, and the part of one before it"
    (tmp_path / "done").touch()
    assert outcome(keras.process)[:2] == (0, "trained\n")
    assert not keras.monitor.of("hook_error")
