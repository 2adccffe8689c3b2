"""Real trainings on TensorFlow's pool for the CPU: the figures, the output and the end must be the same."""

from tests.tools.corpus.script import Script, py

_SEED = "import tensorflow as tf\nimport keras\nkeras.utils.set_random_seed(1)\n"
_MODEL = (
    "model = keras.Sequential([keras.layers.Input((8,)), keras.layers.Dense(16, 'relu'), keras.layers.Dense(1)])\n"
    "model.compile('adam', 'mse')\n"
)


def _train(name: str, exercises: str, source: str, **rest: object) -> Script:
    return py(f"train-{name}", exercises, source.replace("SEED\n", _SEED).replace("MODEL\n", _MODEL), tensorflow=True,
              **{"filters": ("log",), **rest})  # fmt: skip


SCRIPTS: tuple[Script, ...] = (
    _train("keras", "Keras fit: the losses to the last digit", """
SEED
MODEL
print(model.fit(tf.ones((64, 8)), tf.ones((64, 1)), epochs=2, verbose=2).history)
""", live=True, quick=True, filters=("log", "durations")),
    _train("tape", "GradientTape in tf.function, retraced", """
SEED
traces = []
@tf.function
def step(x):
    traces.append(1)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.reduce_sum(x * x)
    return tape.gradient(y, x)
for size in (1, 2, 3, 3):
    print(step(tf.ones([size])).numpy())
print(len(traces), step.experimental_get_tracing_count())
"""),
    _train("xla", "jit_compile", "SEED\n@tf.function(jit_compile=True)\ndef f(x): return tf.reduce_sum(x * 2)\nprint(f(tf.ones([3])).numpy())\n"),
    _train("dataset", "tf.data with a generator and parallel maps", """
SEED
data = tf.data.Dataset.range(8).map(lambda x: x * 2, num_parallel_calls=2).batch(2).prefetch(1)
print([batch.numpy().tolist() for batch in data])
data = tf.data.Dataset.from_generator(lambda: iter([1, 2]), output_signature=tf.TensorSpec([], tf.int32))
print([int(x) for x in data])
"""),
    _train("session", "a v1 session", """
import tensorflow.compat.v1 as tf
tf.disable_eager_execution()
x = tf.placeholder(tf.float32, [None])
with tf.Session() as session:
    print(session.run(tf.reduce_sum(x), {x: [1, 2]}))
    try:
        session.run(x)
    except tf.errors.InvalidArgumentError as error:
        print(type(error).__name__)
"""),
    _train("profiler", "the script's own profiler wins", """
SEED
tf.profiler.experimental.start("logs")
tf.reduce_sum(tf.ones([100]))
tf.profiler.experimental.stop()
import os
print(sorted({name.split(".", 1)[-1] for _, _, names in os.walk("logs") for name in names}))
""", filters=("log", "numbers")),
    _train("distributed", "a strategy over logical devices", """
SEED
cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
with strategy.scope():
    v = tf.Variable(1.0)
print(strategy.num_replicas_in_sync, v.numpy())
""", filters=("log", "numbers")),
)  # fmt: skip
