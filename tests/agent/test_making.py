"""Real TensorFlow reports which line initialised its devices, in which environment, and what it refused."""

from pathlib import Path

from tests.hooked import Forks, Monitor, Script, outcome, start
from tfmemtop.agent.devices import VARIABLES
from tfmemtop.settings import KEPT_VARIABLES

LATE = """
import os, sys
sys.path.insert(0, os.path.dirname(__file__))
os.environ["TF_FORCE_GPU_ALLOW_GROWTH"] = "True"
import tensorflow as tf
tf.config.set_visible_devices([], "GPU")
tf.config.experimental.set_synchronous_execution(True)
print("asked in time", flush=True)
import layers
try:
    tf.config.set_visible_devices([], "CPU")
except RuntimeError as error:
    print(error)
os.environ["TF_GPU_ALLOCATOR"] = "later"
layers.build()
"""

LAYERS = """
import functools
import keras

@functools.lru_cache
def build():
    return keras.Sequential([
        keras.layers.Input((4,)),
        keras.layers.Dense(2),
    ])

model = build()
"""


def test_the_line_that_made_the_devices_is_the_scripts_own(
    monitor: Monitor, script: Script, forks: Forks, tmp_path: Path
) -> None:
    (tmp_path / "layers.py").write_text(LAYERS)
    done = forks.run(monitor, script(LATE), TF_DEVICE_MIN_SYS_MEMORY_IN_MB="9" * 600, AWS_SECRET_ACCESS_KEY="x")
    assert done.code == 0 and done.out.startswith("asked in time\n"), done.err
    (made,) = monitor.of("initialised")
    lines = LAYERS.splitlines()
    assert made["file"] == str(tmp_path / "layers.py")
    assert made["code"] == lines[made["line"] - 1].strip() == "return keras.Sequential(["
    assert made["error"] is None
    # The variables are those of the moment when the devices were made.
    # Those that the script set before count; those that it set later do not.
    variables = made["variables"]
    assert variables["TF_FORCE_GPU_ALLOW_GROWTH"] == "True" and variables["TF_CPU_BFC_MEM_LIMIT_IN_MB"] == "512"
    assert "TF_GPU_ALLOCATOR" not in variables and len(variables["TF_DEVICE_MIN_SYS_MEMORY_IN_MB"]) == 500
    assert set(variables) <= set(VARIABLES)
    late = monitor.of("requested")[-1]
    assert "cannot be modified after being initialized" in late["error"]
    order = [event["type"] for event in monitor.events]
    assert order.index("initialised") < order.index("effective")


def test_what_is_sent_may_stand_in_recordings() -> None:
    assert all(name.startswith(KEPT_VARIABLES) for name in VARIABLES)


WAYS = (
    "x = tf.constant(1)",
    "x = tf.Variable([1.0])",
    "tf.config.list_logical_devices()",
    "x = tf.data.Dataset.range(3)",
    "with tf.device('CPU:0'): pass",
    "tf.config.experimental.get_memory_info('CPU:0')",
    "with tf.distribute.MirroredStrategy(['CPU:0']).scope(): pass",
    "x = tf.function(lambda: 1)()",
    "tf.compat.v1.Session().close()",
)


def test_every_way_to_begin_has_its_line(monitor: Monitor, script: Script, forks: Forks) -> None:
    source = "import tensorflow as tf\nfrom tensorflow.python.eager import context\n"
    source += "".join(f"{way}\ncontext._reset_context()\n" for way in WAYS)
    assert forks.run(monitor, script(source)).code == 0
    made = [(event["line"], event["code"], event["error"]) for event in monitor.of("initialised")]
    assert made == [(3 + 2 * index, way, None) for index, way in enumerate(WAYS)]


DIFFERENT = """
import tensorflow as tf
from tensorflow.python.eager import context

# As on a machine with two GPUs; what refuses is TensorFlow's own code.
found = context.context()
found._initialize_physical_devices()
gpus = [context.PhysicalDevice("/physical_device:GPU:%d" % i, "GPU") for i in range(2)]
found._physical_devices += gpus
found._visible_device_list += gpus
found._memory_growth_map.update((gpu, None) for gpu in gpus)

tf.config.experimental.set_memory_growth(gpus[0], True)
for attempt in range(3):
    try:
        tf.ones(3)
    except ValueError as error:
        print(error)
"""


def test_growth_that_differs_is_told_once_a_line_and_so_is_the_end_of_it(
    monitor: Monitor, script: Script, forks: Forks
) -> None:
    source = DIFFERENT + "tf.config.experimental.set_memory_growth(gpus[1], True)\nprint(tf.ones(3).numpy())\n"
    assert forks.run(monitor, script(source))[:2] == (
        0,
        "Memory growth cannot differ between GPU devices\n" * 3 + "[1. 1. 1.]\n",
    )
    refused, made = monitor.of("initialised")
    assert refused["error"] == "ValueError: Memory growth cannot differ between GPU devices"
    assert refused["code"] == "tf.ones(3)"
    assert made["error"] is None and made["line"] == len(source.splitlines())


def test_a_script_that_dies_of_it_dies_the_same(monitor: Monitor, script: Script, forks: Forks) -> None:
    error = "Memory growth cannot differ between GPU devices"
    done = forks.run(monitor, script(DIFFERENT + "tf.zeros(8)\n"))
    assert (done.code, done.out, done.err.splitlines()[-1]) == (1, f"{error}\n" * 3, f"ValueError: {error}")
    assert [event["code"] for event in monitor.of("initialised")] == ["tf.ones(3)", "tf.zeros(8)"]


def test_pools_are_read_often_until_the_first_operation_and_a_script_without_a_file_has_a_line(
    monitor: Monitor,
) -> None:
    source = "import sys, tensorflow as tf\ntf.config.list_logical_devices()\nsys.stdin.readline()"
    process = start(monitor, "-c", source, TFMEMTOP_INTERVAL="60")
    monitor.wait_for(lambda event: len(monitor.of("allocator")) >= 3)
    assert outcome(process, "\n").code == 0
    assert {event["peak"] for event in monitor.of("allocator")} == {0}
    (made,) = monitor.of("initialised")
    assert (made["file"], made["line"]) == ("<string>", 2)
    assert made["code"] in ("", "tf.config.list_logical_devices()")  # from 3.13 on Python itself keeps the source of -c
