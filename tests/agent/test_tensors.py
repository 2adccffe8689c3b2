"""Live tensors are found wherever the script keeps them, exact to the byte, and no reference to them is kept."""

import json
from typing import Any

from tests.hooked import OPERATIONS_ELSEWHERE, VERSION, Event, Forks, Monitor, Process, Script, line, outcome, typed
from tfmemtop.help import topic

HELD = (
    """
import gc, json, sys, threading, weakref
import tensorflow as tf
"""
    + OPERATIONS_ELSEWHERE
    + """
class Holder:
    pass

def wait(word):
    print(word, tf.config.experimental.get_memory_info("CPU:0")["current"], len(elsewhere), flush=True)
    sys.stdin.readline()

def held():
    local = tf.fill([1000, 1001], 1.0)
    captured = tf.fill([1000, 1002], 1.0)
    references.append(weakref.ref(local))
    references.append(weakref.ref(captured))
    counts = [sys.getrefcount(each()) for each in references]
    wait("held")
    print(counts == [sys.getrefcount(each()) for each in references], flush=True)
    return lambda: captured

own = tf.Variable(tf.zeros([1000, 1000]), name="own")
plain = tf.fill([1000, 1003], 1.0)
listed = [1, tf.fill([1000, 1004], 1.0)]
by_name = {"images": tf.cast(tf.fill([1000, 1005], 1.0), tf.float16)}
holder = Holder()
holder.kept = tf.fill([1000, 1006], 1.0)
words = tf.constant(["no size of its own"])
references = [weakref.ref(each) for each in (plain, listed[1], by_name["images"], holder.kept)]
closure = held()
print([each() is not None for each in references], flush=True)
del plain, listed, closure, holder, by_name
print([each() is not None for each in references], flush=True)
wait("gone")
"""
)


def ask(monitor: Monitor, process: Process) -> Event:
    """Request a search for tensors, and return the census with its result."""

    def found() -> list[Event]:
        return [event for event in list(monitor.events) if event["type"] == "census" and "tensors" in event]

    known = len(found())
    monitor.say(process.pid, {"do": "census", "tensors": True})
    monitor.wait_for(lambda event: len(found()) > known)
    return found()[-1]


def rows(census: Event) -> dict[int, list[Any]]:
    """Return the rows of the large tensors by the second extent of their shape."""
    return {row[2][1]: row for row in census["largest"] if row[1] == "tensors" and len(row[2]) == 2}


def test_tensors_wherever_they_are_held(monitor: Monitor, script: Script, forks: Forks) -> None:
    process = forks.start(monitor, script(HELD))
    before = line(process)
    census = ask(monitor, process)
    found = rows(census)
    assert sorted(found) == [1001, 1002, 1003, 1004, 1005, 1006]
    assert found[1003] == ["plain", "tensors", [1000, 1003], "float32", "CPU:0", 4_012_000]
    assert found[1005][0] == "by_name['images']" and found[1005][3:] == ["float16", "CPU:0", 2_010_000]
    names = ["held.<locals>.local", "held.<locals>.captured", "listed[1]", "holder.kept"]
    if VERSION < (3, 13):
        names[:2] = "", ""  # the locals of running functions are not looked at
    assert [found[extent][0] for extent in (1001, 1002, 1004, 1006)] == names
    assert census["kinds"]["CPU:0"]["variables"] == 4_000_000
    large = sum(row[-1] for row in found.values())
    assert large <= census["kinds"]["CPU:0"]["tensors"] < large + 1000
    assert 6 <= census["tensors"] < 40 and census["hidden"] is None and 0 < census["cost_us"] < 5_000_000
    again = ask(monitor, process)
    typed(process)
    assert line(process) == "True", "references that are not the script's"
    assert line(process) == str([True] * 4 + [False, True]), "a local kept alive"
    assert line(process) == str([False] * 6), "tensors kept alive"
    after = line(process)
    assert before.split()[0] == "held" and after.split()[0] == "gone"
    assert int(before.split()[1]) - int(after.split()[1]) >= large
    assert before.split()[2] == after.split()[2] == "0", "operations that are not the script's"
    assert again["kinds"] == census["kinds"]
    assert rows(ask(monitor, process)) == {}
    assert outcome(process, "\n").code == 0


def test_like_tensors_are_told_by_what_holds_them(monitor: Monitor, script: Script, forks: Forks) -> None:
    source = """
import sys
import tensorflow as tf
history = {"loss": [tf.zeros([100, 100 + i]) for i in range(5)], "step": [1, 2]}
many = [tf.zeros([1000]) for _ in range(3000)]
class Holder:
    pass
holder = Holder()
holder.kept = [tf.zeros([200, 300]) for _ in range(4)]
print("up", flush=True)
sys.stdin.readline()
"""
    process = forks.up(monitor, script(source))
    census = ask(monitor, process)
    assert census["alike"][:3] == [
        ["many", 3000, [1000], "float32", "CPU:0", 12_000_000, "tensors", 3000],
        ["holder.kept", 4, [200, 300], "float32", "CPU:0", 960_000, "tensors", 4],
        ["history['loss']", 5, None, "float32", "CPU:0", 204_000, "tensors", 1],
    ]
    assert any(row[0] == "history['loss'][4]" for row in census["largest"])
    assert outcome(process, "\n").code == 0


def test_a_tensor_with_a_path_of_its_own_is_told_though_others_are_like_it(
    monitor: Monitor, script: Script, forks: Forks
) -> None:
    source = """
import sys
import tensorflow as tf
class Batch:
    __slots__ = ("image", "mask")
large = [tf.zeros([300, 300]) for _ in range(20)]
batch = Batch()
batch.image, batch.mask = tf.zeros([90, 90]), tf.zeros([90, 90])
print("up", flush=True)
sys.stdin.readline()
"""
    process = forks.up(monitor, script(source))
    census = ask(monitor, process)
    assert {row[0] for row in census["others"]} == {"batch.image", "batch.mask"}
    assert [row[:2] for row in census["alike"]] == [["large", 20]], "a group without a path has none of them"
    assert outcome(process, "\n").code == 0


def test_a_tensor_that_is_still_being_made_is_left_alone(monitor: Monitor, script: Script, forks: Forks) -> None:
    source = """
import sys
import numpy as np
import tensorflow as tf
from tensorflow.python.framework import ops

class Slow:
    def __array__(self, dtype=None, copy=None):
        print("making", flush=True)
        sys.stdin.readline()
        return np.ones([1000, 1001], np.float32)

kept = [tf.fill([1000, 1002], 1.0), tf.constant(Slow())]
print(kept[1].shape, flush=True)
sys.stdin.readline()
"""
    process = forks.start(monitor, script(source))
    assert line(process) == "making"
    assert sorted(rows(ask(monitor, process))) == [1002]
    typed(process)
    while (said := line(process)) == "making":
        assert sorted(rows(ask(monitor, process))) == [1002]
        typed(process)
    assert said == "(1000, 1001)"
    assert sorted(rows(ask(monitor, process))) == [1001, 1002]
    assert outcome(process, "\n").code == 0


def test_where_tensors_cannot_be_looked_for_it_is_said(monitor: Monitor, script: Script, forks: Forks) -> None:
    source = """
import gc, sys
import tensorflow as tf
kept = tf.fill([1000, 1001], 1.0)
gc.freeze()
print("frozen", flush=True)
sys.stdin.readline()
gc.unfreeze()
tf.config.experimental.set_synchronous_execution(False)
print("asynchronous", flush=True)
sys.stdin.readline()
"""
    process = forks.start(monitor, script(source))
    assert line(process) == "frozen"
    census = ask(monitor, process)
    assert census["tensors"] == 0 and census["hidden"] == "frozen" and census["frozen"] > 0
    typed(process)
    assert line(process) == "asynchronous"
    census = ask(monitor, process)
    assert census["tensors"] is None and census["hidden"] == "asynchronous"
    assert outcome(process, "\n").code == 0


def test_what_an_audit_hook_hears(monitor: Monitor, script: Script, forks: Forks) -> None:
    """A search for tensors raises only the audit events that the manual names. Without a request there is no search."""
    source = """
import json, sys, threading
import tensorflow as tf
seen, main = set(), threading.main_thread()

def hear(event, args):
    if threading.current_thread() is not main:
        seen.add(event)

kept = tf.Variable(tf.ones([1000]))
tensors = [tf.ones([1000])]
sys.addaudithook(hear)

def run():
    for _ in range(2):
        print("up", flush=True)
        sys.stdin.readline()
        print(json.dumps(sorted(seen)), flush=True)

run()
"""
    process = forks.up(monitor, script(source))
    monitor.wait_for(lambda event: event["type"] == "census" and "CPU:0" in event["kinds"])
    typed(process)
    unasked = json.loads(line(process))
    assert not [event for event in unasked if event.startswith(("gc.", "sys."))]
    assert line(process) == "up"
    assert any(row[0] == "tensors[0]" for row in ask(monitor, process)["largest"])
    typed(process)
    of_look = set(json.loads(line(process))) - set(unasked)
    # The locals of running functions are looked at from Python 3.13 on.
    assert of_look == {"gc.get_objects", "sys._current_frames"} - (
        set() if VERSION >= (3, 13) else {"sys._current_frames"}
    )
    manual = " ".join(topic("trust").split())
    assert all(f"`{event}`" in manual for event in of_look)
    assert outcome(process, "\n").code == 0
