"""Python's collector of cycles runs the script's finalizers in the script's threads, as without the hook."""

from collections.abc import Callable

from tests.hooked import Forks, Monitor, outcome

Script = Callable[[str], str]


def test_no_finalizer_runs_in_our_thread(monitor: Monitor, script: Script, forks: Forks) -> None:
    source = """
import collections, gc, select, sys, threading
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
while seen["finalizer", True] <= 1000 or not select.select([sys.stdin], [], [], 0.001)[0]:
    for _ in range(20):
        Cycle()
print([where for _, where in seen if not where], seen["finalizer", True] > 1000, gc.isenabled())
"""
    process = forks.start(monitor, script(source))
    monitor.wait_for(lambda event: len(monitor.of("allocator")) > 20 and bool(monitor.of("census")))
    done = outcome(process, "\n")
    assert done[:2] == (0, "[] True True\n") and "Traceback" not in done.err
    assert not monitor.of("hook_error")


def test_a_finalizer_that_is_due_while_the_script_sleeps_waits_for_it(
    monitor: Monitor, script: Script, forks: Forks
) -> None:
    source = """
import gc, os, threading
import tensorflow as tf
saved = []
matrix = tf.ones([1000, 1000])

def wait():
    os.write(1, b"up\\n")
    os.read(0, 1)

wait()

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
wait()
gc.collect()
print(saved)
"""
    process = forks.start(monitor, script(source))
    assert process.stdin is not None and process.stdout is not None
    for _ in range(2):  # while the script waits, its pools are read again and again
        assert process.stdout.readline() == "up\n"
        told = len(monitor.of("allocator"))
        monitor.wait_for(lambda event, least=told + 20: len(monitor.of("allocator")) >= least)  # type: ignore[misc]
        process.stdin.write("\n")
        process.stdin.flush()
    done = outcome(process)
    assert done[:2] == (0, "[True]\n") and "Traceback" not in done.err
    assert not monitor.of("hook_error")


def test_a_child_forked_meanwhile_has_its_collector_on(monitor: Monitor, script: Script, forks: Forks) -> None:
    source = """
import gc, os
import tensorflow as tf
kept = [tf.Variable(tf.zeros([4])) for _ in range(300)]
gc.set_threshold(70)  # so that a reading nearly always finds it due, and turns it off
off = 0
for _ in range(200):
    kept.append(tf.zeros([4]))
    child = os.fork()
    if child == 0:
        os._exit(not gc.isenabled())
    off += os.waitpid(child, 0)[1] != 0
while not gc.isenabled():  # off for a moment, while a reading is under way; not for longer
    os.sched_yield()
print(off)
"""
    assert forks.run(monitor, script(source))[:2] == (0, "0\n")
