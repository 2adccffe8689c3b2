"""Python's collector of cycles runs the script's finalizers in the script's threads, as without the hook."""

from tests.agent.test_tensors import ask
from tests.hooked import Forks, Monitor, Process, Script, line, outcome, typed


def read_while_it_waits(monitor: Monitor, process: Process, times: int, readings: int) -> None:
    """Let the script wait so many *times*, each until its pool has been read so many times more."""
    for _ in range(times):
        assert line(process) == "up"
        told = len(monitor.of("allocator"))
        monitor.wait_for(lambda _, least=told + readings: len(monitor.of("allocator")) >= least)  # type: ignore[misc]
        typed(process)


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
kept = []
while gc.get_count()[0] < gc.get_threshold()[0] - 8:
    kept.append([])
wait()  # the system may have interrupted a reading, for which there was room before
Saves()
wait()
gc.collect()
print(saved)
"""
    process = forks.start(monitor, script(source))
    read_while_it_waits(monitor, process, 3, 20)
    done = outcome(process)
    assert done[:2] == (0, "[True]\n") and "Traceback" not in done.err


def test_a_collection_that_is_due_while_the_script_waits_in_c_waits_for_it(
    monitor: Monitor, script: Script, forks: Forks
) -> None:
    """On Python 3.12 a collection does not run where it becomes due, but in the thread that runs Python code next."""
    source = """
import gc, os, threading
from itertools import chain, repeat
import tensorflow as tf
kept, ours = tf.ones([1000]), []
main = threading.get_ident()
gc.collect()
gc.callbacks.append(lambda phase, info: ours.append(threading.get_ident() != main))
os.write(1, b"up\\n")
os.read(0, 1)
many = map(list, repeat((), gc.get_threshold()[0] + 100))
made = list(chain(many, map(os.write, (1,), (b"up\\n",)), map(os.read, (0,), (1,))))
print(any(ours))
"""
    process = forks.start(monitor, script(source))
    read_while_it_waits(monitor, process, 2, 40)  # the first time, the devices have just been made
    assert outcome(process).out == "False\n"


def test_the_collector_stays_as_the_script_sets_it(monitor: Monitor, script: Script, forks: Forks) -> None:
    """At every moment, also while the script's objects are looked at."""
    source = """
import gc, select, sys
import tensorflow as tf
kept = [tf.zeros([4]) for _ in range(300)]
things = [{"number": [number]} for number in range(100_000)]

def changed(wanted):
    print("up", flush=True)
    changes = 0
    while not select.select([sys.stdin], [], [], 0)[0]:
        changes += gc.isenabled() != wanted
    sys.stdin.readline()
    return changes

before = gc.get_threshold()
gc.disable()
off = changed(False)
gc.enable()
print(off, changed(True), gc.get_threshold() == before)
"""
    process = forks.start(monitor, script(source))
    for _ in range(2):
        assert line(process) == "up"
        for _ in range(3):
            assert ask(monitor, process)["alike"][0][:2] == ["kept", 300]
        typed(process)
    assert outcome(process).out == "0 0 True\n"


def test_no_finalizer_runs_in_our_thread_while_objects_are_looked_at(
    monitor: Monitor, script: Script, forks: Forks
) -> None:
    """The script lets go of objects, in cycles or not, while they are looked at."""
    source = """
import collections, select, sys, threading
import tensorflow as tf
main = threading.main_thread().ident
seen = collections.Counter()

class Holder:
    def __init__(self, turn):
        self.turn, self.kept = turn, [tf.zeros([4])]
        self.me = self if turn % 2 else None
    def __del__(self):
        seen[threading.get_ident() == main] += 1

kept = [Holder(turn) for turn in range(50)]
print("up", flush=True)
turn = 0
while not select.select([sys.stdin], [], [], 0)[0]:
    turn += 1
    kept[turn % 50] = Holder(turn)
print(seen[False], seen[True] > 100)
"""
    process = forks.up(monitor, script(source))
    for _ in range(10):
        ask(monitor, process)
    assert outcome(process, "\n").out == "0 True\n"


def test_a_script_that_waits_can_be_read_for_days(monitor: Monitor, script: Script, forks: Forks) -> None:
    """Nothing that the agent does again and again makes the collector due, since a script that waits never collects."""
    source = """
import gc, os
import tensorflow as tf
kept = tf.ones([1000])
gc.collect()
filled = [[] for _ in range(300)]

def wait():
    os.write(1, b"up\\n")
    os.read(0, 1)

for _ in range(2):  # the first time, Python keeps some containers that are freed for later use
    wait()
    before = gc.get_count()[0]
    wait()
    made = gc.get_count()[0] - before
print(made)
"""
    process = forks.start(monitor, script(source))
    read_while_it_waits(monitor, process, 4, 40)
    assert int(outcome(process).out) <= 20  # far less than one for each reading
