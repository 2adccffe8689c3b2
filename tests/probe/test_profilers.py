"""The profilers of a script, while windows of its allocations are recorded."""

from collections.abc import Callable
from pathlib import Path

from tests.forked import Fork
from tests.hooked import Monitor, outcome, start
from tests.probe.watched import Watched

PROFILES = """
import json, os, pathlib, sys
import tensorflow as tf
from tensorflow.tsl.profiler.protobuf import xplane_pb2

weights = tf.Variable(tf.ones([64, 64]))

@tf.function
def train_step(x):
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.square(x @ weights))
    weights.assign_sub(1e-6 * tape.gradient(loss, weights))
    return loss

ones = tf.ones([32, 64])
train_step(ones)
print("up", flush=True)
sys.stdin.readline()

def events(name, profile):
    folder = pathlib.Path(sys.argv[1], name)
    profile(str(folder))
    (path,) = folder.rglob("*.xplane.pb")
    space = xplane_pb2.XSpace()
    space.ParseFromString(path.read_bytes())
    counts = {}
    for plane in space.planes:
        for line in plane.lines:
            for event in line.events:
                text = plane.event_metadata[event.metadata_id].name
                # How often an executor takes up its work, and which operations it holds to be quick, varies. So does
                # in how many cases an operation can write over what another has just ceased to need.
                if text.startswith("Memory"):
                    counts[text] = "some"
                elif text.startswith(("EagerExecute", "EagerLocalExecute", "FunctionRun", "TFE_Py")):
                    counts[text] = counts.get(text, 0) + 1
    planes = sorted(plane.name for plane in space.planes if plane.lines)
    print(json.dumps([name, planes, sorted(counts.items()), list(space.errors)]), flush=True)

def by_functions(folder):
    tf.profiler.experimental.start(folder)
    for _ in range(20):
        train_step(ones)
    tf.profiler.experimental.stop()

def by_a_context(folder):
    with tf.profiler.experimental.Profile(folder):
        for _ in range(20):
            tf.matmul(ones, weights)

def by_keras(folder):
    import keras
    model = keras.Sequential([keras.layers.Input((64,)), keras.layers.Dense(4)])
    model.compile("sgd", "mse", jit_compile=False)
    board = keras.callbacks.TensorBoard(folder)  # all of it needs TensorBoard itself
    model.fit(ones, ones[:, :4], batch_size=8, verbose=0, shuffle=False)
    board._start_profiler(folder)
    model.fit(ones, ones[:, :4], batch_size=8, verbose=0, shuffle=False)
    board._stop_profiler()

for number in range(3):
    events(f"functions{number}", by_functions)
events("context", by_a_context)
events("keras", by_keras)
try:
    tf.profiler.experimental.stop()
except tf.errors.UnavailableError as error:
    print(error.message)
tf.profiler.experimental.start(sys.argv[1] + "/twice")
try:
    tf.profiler.experimental.start(sys.argv[1] + "/twice")
except tf.errors.AlreadyExistsError as error:
    print(error.message)
tf.profiler.experimental.stop(save=False)

v1 = tf.compat.v1
with tf.Graph().as_default(), v1.Session() as session:
    metadata = v1.RunMetadata()
    session.run(tf.ones([8]) * 2.0, options=v1.RunOptions(trace_level=3), run_metadata=metadata)
    print([device.device for device in metadata.step_stats.dev_stats], flush=True)
sys.stdin.readline()
tf.profiler.experimental.server.start(0)
print("served", flush=True)
sys.stdin.readline()
"""


def test_the_scripts_profilers_find_what_they_find_without_us(
    monitor: Monitor, forked_bare: Fork, script: Callable[[str], str], library: Path, tmp_path: Path
) -> None:
    (dumps := tmp_path / "dumps").mkdir()
    # A window is open nearly always, also when a profile begins.
    always = {"TFMEMTOP_DATA": str(dumps), "TFMEMTOP_HOLDERS_INTERVAL": "0.05"}
    process = start(monitor, script(PROFILES), str(tmp_path / "hooked"), **always)
    hooked = Watched(monitor, process, library, dumps)
    bare = outcome(forked_bare(PROFILES, str(tmp_path / "bare")), "\n\n\n")
    assert hooked.line() == "up"
    hooked.go_on()
    expected = bare.out.splitlines()
    assert bare.code == 0 and expected[0] == "up" and expected[-1] == "served"
    for line in expected[1:-1]:
        assert hooked.line() == line
    ended = hooked.until("start")
    assert ended["closed"] == "profiler"
    hooked.read(ended).replay()
    assert hooked.ask()["closed"] == "time", "nothing goes on"
    hooked.go_on()
    assert hooked.line() == "served"
    told = hooked.ask()
    assert told["windowless"] == "profiler_server" and told["pools"] == ["CPU:0"]
    hooked.go_on()
    assert outcome(hooked.process).code == 0
