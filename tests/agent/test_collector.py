"""Python's collector of cycles runs the script's finalizers in the script's threads, as without the hook."""

from collections.abc import Callable

from tests.agent.conftest import Monitor, both

Script = Callable[[str], str]


def test_no_finalizer_runs_in_our_thread(monitor: Monitor, script: Script) -> None:
    source = """
import collections, gc, threading, time
import tensorflow as tf
kept = [tf.Variable(tf.zeros([4])) for _ in range(300)]
seen = collections.Counter()

class Cycle:
    def __init__(self):
        self.me = self
    def __del__(self):
        seen["finalizer", threading.get_ident() == threading.main_thread().ident] += 1

def began(phase, _):
    if phase == "start":
        seen["collection", threading.get_ident() == threading.main_thread().ident] += 1

gc.collect()
gc.callbacks.append(began)
until = time.monotonic() + 4
while time.monotonic() < until:
    for _ in range(20):
        Cycle()
    time.sleep(0.001)
print([where for _, where in seen if not where], seen["finalizer", True] > 1000, gc.isenabled())
"""
    bare, hooked = both(monitor, script(source), TFMEMTOP_INTERVAL="0.01")
    assert bare == hooked and hooked.out == "[] True True\n"
    assert len(monitor.of("allocator")) > 20 and monitor.of("census") and not monitor.of("hook_error")


def test_a_finalizer_that_is_due_while_the_script_sleeps_waits_for_it(monitor: Monitor, script: Script) -> None:
    source = """
import gc, threading, time
import tensorflow as tf
saved = []
matrix = tf.ones([1000, 1000])
time.sleep(0.5)

class Saves:
    def __init__(self):
        self.me = self
    def __del__(self):
        product = matrix
        for _ in range(60):
            product = tf.linalg.matmul(product, matrix) * 1e-4
        saved.append(threading.get_ident() == threading.main_thread().ident)

gc.collect()
Saves()
kept = []
while gc.get_count()[0] < gc.get_threshold()[0] - 8:
    kept.append([])
time.sleep(0.5)
gc.collect()
print(saved)
"""
    bare, hooked = both(monitor, script(source), TFMEMTOP_INTERVAL="0.01")
    assert bare == hooked and hooked.out == "[True]\n"
    assert monitor.of("allocator") and not monitor.of("hook_error")


def test_a_child_forked_meanwhile_has_its_collector_on(monitor: Monitor, script: Script) -> None:
    source = """
import gc, os, time
import tensorflow as tf
kept = [tf.Variable(tf.zeros([4])) for _ in range(300)]
off = 0
for _ in range(100):
    kept.append(tf.zeros([4]))
    child = os.fork()
    if child == 0:
        os._exit(not gc.isenabled())
    off += os.waitpid(child, 0)[1] != 0
# Off for a moment, while a reading is under way; not for longer.
print(off, any(gc.isenabled() or time.sleep(0.01) for _ in range(100)))
"""
    bare, hooked = both(monitor, script(source), TFMEMTOP_INTERVAL="0.01")
    assert bare[:2] == hooked[:2] and hooked.out == "0 True\n"
