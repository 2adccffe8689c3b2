"""Real trainings write, raise, warn and end exactly as they do without the hook."""

import signal
from pathlib import Path

import pytest

from tests.hooked import Forks, Monitor, Script, both, line, outcome, run, working_tensorflow

TRAINING = """
import gc, inspect, os, pickle, sys, threading, traceback, types, warnings
first = os.dup(0); os.close(first)
import tensorflow as tf
import keras
print(first, os.dup(0), sys.path)
print([type(finder).__name__ for finder in sys.meta_path if type(finder).__name__ != "ImportWatch"])
from tensorflow.python.eager import context
print(sorted(sys.modules), context.__spec__, context.__loader__.__class__, context._context)

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
for call in (lambda: tf.config.experimental.set_memory_growth(cpu, True), lambda: tf.config.set_visible_devices("x"),
             lambda: context.context().set_memory_growth(cpu), lambda: context.context().set_visible_devices(nope=1)):
    try:
        call()
    except Exception:
        traceback.print_exc()
print(context._context._context_handle, threading.active_count())
if os.fork() == 0:
    print("in the child", flush=True)
    os._exit(0)
os.wait()

keras.utils.set_random_seed(1)
model = keras.Sequential([keras.layers.Input((8,)), keras.layers.Dense(16, "relu"), keras.layers.Dense(1)])
model.compile("adam", "mse")
print(model.fit(tf.ones((64, 8)), tf.ones((64, 1)), epochs=2, verbose=0).history)
print(tf.config.list_logical_devices(), [thread.name for thread in threading.enumerate()], threading.active_count())

@tf.function(jit_compile=True)
def compiled(x):
    return tf.reduce_sum(x * 2.0)

print(compiled(tf.ones((3, 3))).numpy(), tf.function(lambda x: x + 1)(tf.constant(1.0)).numpy())
with tf.device("CPU:1"):
    print(tf.constant(1.0).device)
warnings.warn("mine")
error = tf.errors.ResourceExhaustedError(None, None, "OOM when allocating", {})
print(pickle.loads(pickle.dumps(error)), inspect.signature(tf.errors.ResourceExhaustedError.__init__))
print([inspect.signature(getattr(context.Context, name)) for name in dir(context.Context) if name.startswith("set_")])
print(inspect.getsource(context.Context.set_memory_growth), context.Context.set_memory_growth.__qualname__)
v1 = tf.compat.v1
with v1.Graph().as_default(), v1.Session() as session:
    print(session.run(v1.placeholder_with_default(3.0, []) + 1))

class Held:
    def __init__(self, name):
        self.name = name
    def __del__(self):
        print("end of", self.name)

gc.set_threshold(0)  # what one collection finds comes in an order that depends on those before
held = Held("a global")
circle = Held("a circle")
circle.itself = circle
sys.modules["made"] = types.ModuleType("made")
sys.modules["made"].held = Held("a module")
sys.stdout.flush()
tf.config.set_visible_devices([], "CPU")
"""


def test_a_whole_training(monitor: Monitor, script: Script) -> None:
    bare, hooked = both(monitor, script(TRAINING), PYTHONPATH="")  # without tests.sparing: as on a user's machine
    assert bare.out == hooked.out
    assert without_our_frames(hooked.err) == bare.err
    assert bare.code == hooked.code == 1 and "cannot be modified after being initialized" in bare.err
    assert bare.out.count("end of") >= 2, "what the script holds ends as ever, and what it prints then is seen"
    assert monitor.of("hook") and monitor.of("allocator") and monitor.of("hook_end")


def without_our_frames(err: str) -> str:
    """Return *err* without the lines of our wrappers.

    Python 3.9 and 3.10 cannot raise an exception again without these lines in its traceback. From 3.11 on, *err* is
    returned unchanged.
    """
    if run(None, "-c", "import sys; print(sys.version_info >= (3, 11))").out == "True\n":
        return err
    return "".join(line for line in err.splitlines(keepends=True) if 'File "<tfmemtop ' not in line)


WAITING = """
import signal, sys
import tensorflow as tf
tf.ones(8)
signal.signal(signal.SIGINT, signal.default_int_handler)  # whatever the tests were started with
try:
    print("ready", flush=True)
    while True:  # signal.pause() would sleep through a signal that comes just before it
        pass
except KeyboardInterrupt:
    print("asked to end")
    raise
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals(monitor: Monitor, script: Script, number: int, forks: Forks) -> None:
    process = forks.start(monitor, script(WAITING))
    assert line(process) == "ready"
    process.send_signal(number)
    done = outcome(process)
    assert done.code == -number  # Python ends itself by SIGINT, too, after the traceback
    asked = number == signal.SIGINT
    assert done.out == ("asked to end\n" if asked else "")
    assert ("KeyboardInterrupt" in done.err.splitlines()[-1:]) == ("Traceback" in done.err) == asked
    # The traceback names a file of these tests, and the folder of the checkout may have our name.
    assert "tfmemtop" not in done.err.replace(str(Path(__file__).parents[2]), "")
    monitor.wait_for(lambda event: event["type"] == "end of line")


def test_exec_and_os_exit(monitor: Monitor, script: Script, forks: Forks) -> None:
    source = """
import os, sys
import tensorflow as tf
print(tf.ones(2).numpy(), flush=True)
if len(sys.argv) == 1:
    os.execv(sys.executable, [sys.executable, __file__, "again"])
os._exit(3)
"""
    assert forks.run(monitor, script(source))[:2] == (3, "[1. 1.]\n[1. 1.]\n")
    assert len({event["pid"] for event in monitor.of("hook")}) == 1
    monitor.wait_for(lambda event: len(monitor.of("end of line")) == 2)
    assert not monitor.of("hook_end")
    assert monitor.of("hook")[-1]["argv"][-1] == "again"


HANDLED_AT_EXIT = """
import os, signal, sys, tensorflow

def handler(number, frame):
    os.write(1, b"handled\\n")
    raise {kind}("mine")

def watch(frame, event, argument):
    if "tfmemtop" in frame.f_code.co_filename and frame.f_code.co_name in ("_say_goodbye", "close"):
        sys.setprofile(None)
        signal.raise_signal(signal.SIGALRM)

signal.signal(signal.SIGALRM, handler)
sys.setprofile(watch)
"""


@pytest.mark.parametrize("kind", ["TimeoutError", "SystemExit"])
def test_a_signal_handlers_exception_at_the_end_is_nobodys(
    monitor: Monitor, script: Script, tmp_path: Path, kind: str
) -> None:
    """Python would print it as an exception of our code: no code of the script is left to catch it."""
    source = script(HANDLED_AT_EXIT.format(kind=kind))
    assert run(monitor, source, PYTHONPATH=working_tensorflow(tmp_path)) == (0, "handled\n", "")
    assert monitor.wait_for(lambda event: event["type"] == "hook_end")
