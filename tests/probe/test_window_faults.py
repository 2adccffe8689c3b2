"""The probe's windows in difficult cases: a fork while a recording ends, more functions or records than it stores."""

from pathlib import Path

from tests.forked import Fork
from tests.hooked import outcome
from tfmemtop.engine.sources.window_file import read_window

ROOT = Path(__file__).parents[2]

SCRIPT = """
import ctypes, os, sys, threading, time
import tensorflow as tf
sys.path.append(sys.argv[3])
from tfmemtop.agent.native_windows import Limits, NativeWindows

library, folder = sys.argv[1:3]
windows = NativeWindows(ctypes.CDLL(library))
framework = ctypes.CDLL(os.path.dirname(tf.__file__) + "/libtensorflow_framework.so.2")
level = ctypes.c_int.in_dll(framework, "_ZN3tsl8profiler8internal13g_trace_levelE")
ones = tf.ones([8])
weights = tf.Variable(ones)
most = 10**9

def ended():
    while (progress := windows.progress()).running:
        time.sleep(0.01)
    return progress

def function(number):
    def called(x):
        return x + number
    called.__name__ = f"called_{number}_"
    return tf.function(called, autograph=False)

@tf.function
def train(x):
    weights.assign_sub(x)

train(ones)
functions = [function(number) for number in range(260)]
for called in functions:
    called(ones)
windows.permit()  # of what began before the library was there
windows.forbid()
print(windows.start(folder + "/0.window", [(2, 0)], "", Limits(0, 600.0, most, most, most, 0.02)), flush=True)
windows.permit()
assert windows.start(folder + "/1.window", [(2, 0)], "", Limits(3, 600.0, most, most, most, 0.02))
for called in functions:
    called(ones)
begun = time.monotonic()
while windows.progress().running and time.monotonic() < begun + 60:
    train(ones)
windows.end(2)
print(ended().closed, ended().function, flush=True)

@tf.function
def many(count):
    y = ones
    for _ in tf.range(count):
        y = (y + ones) * ones

many(tf.constant(10))
begun = time.monotonic()
many(tf.constant(10000))
count = int(10000 * 0.35 / (time.monotonic() - begun))
for number in range(2, 4):
    # So much is recorded that to end it takes longer than a fork waits.
    assert windows.start(f"{folder}/{number}.window", [(2, 0)], "", Limits(0, 600.0, most, most, most, 0.9))
    many(tf.constant(count))
    ending = threading.Thread(target=windows.end, args=(5,))
    ending.start()
    time.sleep(0.002)
    child = os.fork()
    if child == 0:
        ctypes.CDLL(None).exit(0 if level.value == -1 else 9)  # as C programs end
    begun = time.monotonic()
    while (waited := os.waitpid(child, os.WNOHANG)) == (0, 0) and time.monotonic() < begun + 60:
        time.sleep(0.01)
    if waited == (0, 0):
        os.kill(child, 9)
        os.waitpid(child, 0)
    print(waited[0] == child and os.waitstatus_to_exitcode(waited[1]), flush=True)
    ending.join()
    ended()
assert windows.start(folder + "/late.window", [(2, 0)], "", Limits(0, 600.0, 500, most, most, 0.9))
many(tf.constant(count))
for _ in range(3):
    train(ones)
print(ended().bytes, flush=True)
os._exit(0)
"""


def test_forks_and_many_functions(forked_bare: Fork, library: Path, tmp_path: Path) -> None:
    process = forked_bare(SCRIPT, str(library), str(tmp_path), str(ROOT), TF_CPU_BFC_MEM_LIMIT_IN_MB="2048")
    done = outcome(process)
    assert done.code == 0, done.err
    forbidden, functions, *children, late = done.out.splitlines()
    assert forbidden == "False", "a profiler of the script's comes first"
    assert functions == "1 train", "its step was seen"
    assert children == ["0"] * 2, "no child waits for a lock that only its parent's thread would have released"
    cut = read_window(tmp_path, "late.window", int(late))
    assert len(cut.records) == 1000, "twice as many as were wanted, where more had been recorded in one go"
    assert cut.steps == [], "no step without its allocations"
