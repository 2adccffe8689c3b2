"""Programs that import TensorFlow: starts, ends, misuse, forks, odd company.

One is a real training on its pool for the CPU: the figures, the output and the end must be the same.
"""

from tests.tools.corpus.script import Script, py


def _tf(name: str, exercises: str, source: str, **rest: object) -> Script:
    return py(f"tf-{name}", exercises, source, tensorflow=True, **{"filters": ("log",), **rest})


SCRIPTS: tuple[Script, ...] = (
    _tf("import-only", "imported and not used", "import tensorflow as tf\nprint(tf.__version__)\n", live=True),
    _tf("eager", "eager operations, an exit code", """
import sys
import tensorflow as tf
print(tf.reduce_sum(tf.ones([100, 100])).numpy())
sys.exit(7)
""", live=True),
    _tf("exception", "an exception in an operation", "import tensorflow as tf\ntf.matmul(tf.ones([2, 3]), tf.ones([2, 3]))\n", live=True),
    _tf("misuse", "settings asked for too late, twice, wrongly: tracebacks", """
import traceback
import tensorflow as tf
tf.zeros(1)
cpu = tf.config.list_physical_devices("CPU")[0]
for call in (lambda: tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2),
             lambda: tf.config.set_visible_devices([], "CPU"), lambda: tf.config.experimental.set_memory_growth(cpu, True),
             lambda: tf.config.set_visible_devices("x"), lambda: tf.config.experimental.get_memory_info("GPU:0")):
    try:
        call()
    except Exception:
        traceback.print_exc()
""", quick=True),
    _tf("memory-info", "the script's own peak is not reset by us", """
import time
import tensorflow as tf
x = tf.zeros([1 << 20])
peak = tf.config.experimental.get_memory_info("CPU:0")["peak"]
del x
time.sleep(0.5)
print(tf.config.experimental.get_memory_info("CPU:0")["peak"] == peak)
"""),
    _tf("fork-before", "a fork before the import", """
import os
pid = os.fork()
import tensorflow as tf
print(tf.ones(2).numpy(), flush=True)
if pid == 0:
    os._exit(3)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
""", filters=("log", "sorted")),
    _tf("fork-after", "forks after the import, and after the devices", """
import os
import tensorflow as tf
def child():
    if os.fork() == 0:
        print("child", flush=True)
        os._exit(3)
    print(os.waitstatus_to_exitcode(os.wait()[1]), flush=True)
child()
tf.zeros(1)
child()
""", live=True, filters=("log", "pids")),
    _tf("multiprocessing", "spawned workers that import it", """
import multiprocessing as mp
def work(n):
    import tensorflow as tf
    return float(tf.reduce_sum(tf.ones([n])))
if __name__ == "__main__":
    with mp.get_context("spawn").Pool(1) as pool:
        print(pool.map(work, [2, 3]))
"""),
    _tf("killed", "ends by a signal", "import os, signal\nimport tensorflow as tf\nprint(tf.ones(1).numpy(), flush=True)\nos.kill(os.getpid(), signal.SIGTERM)\nsignal.pause()\n", live=True),
    _tf("interrupted", "Ctrl-C in a loop of operations", """
import os, signal, threading
import tensorflow as tf
threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    while True:
        tf.reduce_sum(tf.ones([1000]))
except KeyboardInterrupt:
    print("interrupted")
"""),
    _tf("mocked-clock", "time, pid and masks replaced while it trains", """
import os, signal, time
from unittest import mock
import tensorflow as tf
tf.zeros(1)
sleep, until = time.sleep, time.monotonic() + 0.7
clock = time.monotonic
with mock.patch("time.monotonic", side_effect=list(range(5))) as monotonic, mock.patch("os.getpid", return_value=1) as pid, \\
        mock.patch("signal.pthread_sigmask") as masks, mock.patch("os.putenv") as put, mock.patch("time.sleep") as slept:
    while clock() < until:
        tf.reduce_sum(tf.ones([1000]))
    print(monotonic.call_count, pid.call_count, masks.call_count, put.call_count, slept.call_count)
    print([time.monotonic() for _ in range(5)])
""", quick=True),
    _tf("children-environment", "what its children's environment holds once there is a pool", """
import os, subprocess
os.environ["TF_CPU_ALLOCATOR_USE_BFC"] = "true"
import tensorflow as tf
tf.zeros(1)
print(subprocess.run("env | grep -E '^(TF_|XLA_|CUDA_)' | sort", shell=True, capture_output=True, text=True).stdout)
print(sorted(name for name in os.environ if name.startswith(("TF_", "XLA_", "CUDA_"))))
""", live=True),
    _tf("closed-stdio", "all streams closed", "import tensorflow as tf\nopen('made', 'w').write(str(tf.ones(2).numpy()))\n", stdin="closed", stdout="closed", stderr="closed"),
    _tf("keras", "Keras fit: the losses to the last digit", """
import tensorflow as tf
import keras
keras.utils.set_random_seed(1)
model = keras.Sequential([keras.layers.Input((8,)), keras.layers.Dense(16, 'relu'), keras.layers.Dense(1)])
model.compile('adam', 'mse')
print(model.fit(tf.ones((64, 8)), tf.ones((64, 1)), epochs=2, verbose=2).history)
""", live=True, quick=True, filters=("log", "durations")),
    _tf("dataset", "tf.data with a generator and parallel maps", """
import tensorflow as tf
data = tf.data.Dataset.range(8).map(lambda x: x * 2, num_parallel_calls=2).batch(2).prefetch(1)
print([batch.numpy().tolist() for batch in data])
data = tf.data.Dataset.from_generator(lambda: iter([1, 2]), output_signature=tf.TensorSpec([], tf.int32))
print([int(x) for x in data])
"""),
)  # fmt: skip
