"""Variables are told by what the script holds: a model, a list of models; and those that nothing holds are counted."""

from tests.agent.test_tensors import ask
from tests.hooked import VERSION, Event, Forks, Monitor, Script, line, outcome, typed

KERAS = """
import gc, sys
import keras
import tensorflow as tf

def made():
    model = keras.Sequential([keras.layers.Input((32,)), keras.layers.Dense(64), keras.layers.Dense(8)])
    model.compile("adam", "mse")
    model.fit(tf.ones((8, 32)), tf.ones((8, 8)), verbose=0)
    return model

def wait():
    print("up", flush=True)
    sys.stdin.readline()
"""

WEIGHTS = 4 * (32 * 64 + 64 + 64 * 8 + 8)
SCALARS = 8 + 4  # Adam's count of iterations and its learning rate


def groups(census: Event) -> dict[tuple[str, str], list[int]]:
    """Return count, bytes and items of the groups of variables, by kind and holder."""
    return {
        (kind, holder): [count, size, items]
        for holder, count, _, _, _, size, kind, items in census["alike"]
        if kind != "tensors" and holder
    }


def test_models_that_a_list_keeps_and_one_that_has_gone(monitor: Monitor, script: Script, forks: Forks) -> None:
    """Each model counts as one item, with all of its layers and with its optimizer. What nothing holds is counted."""
    source = (
        KERAS
        + """
class Search:
    def __init__(self):
        self.done = []

class Net(tf.Module):
    def __init__(self):
        super().__init__()
        self.parts = [tf.Variable(tf.zeros([100, 100 + number])) for number in range(3)]

search, net = Search(), Net()
search.done += [(0.5, made()) for _ in range(3)]
model = made()
by_user = {"ada": Net(), "eve": Net()}
tried = {"deep": {rate: Net() for rate in (1, 2)}, "wide": {rate: Net() for rate in (1, 2, 3)}}
pieces = [tf.Variable(tf.zeros([30, 30])) for _ in range(4)]
single = tf.Variable(tf.zeros([70, 70]))
gone = made()
seen = tf.Variable(tf.zeros([1000]))
wait()
del gone, seen
keras.backend.clear_session()
gc.collect()
wait()
"""
    )
    process = forks.up(monitor, script(source))
    census = ask(monitor, process)
    assert census["gone"] == []
    found = groups(census)
    assert found["variables", "search.done[*][1]"] == [12, 3 * WEIGHTS, 3]
    assert found["optimizer", "search.done[*][1]"] == [3 * (8 + 2), 3 * (2 * WEIGHTS + SCALARS), 3]
    assert found["variables", "model"] == [4, WEIGHTS, 0]
    assert found["variables", "net"] == [3, 4 * 100 * 303, 0]
    assert found["variables", "by_user[*]"] == [6, 2 * 4 * 100 * 303, 2]
    assert found["variables", "tried[*][*]"] == [15, 5 * 4 * 100 * 303, 5]
    assert found["variables", "pieces"] == [4, 4 * 4 * 900, 4]
    assert found["variables", "single"] == [1, 4 * 4900, 0]
    typed(process)
    assert line(process) == "up"
    ((device, count, size, slots),) = ask(monitor, process)["gone"]
    few = 100  # bytes: metrics, and the seeds of initializers
    assert device == "CPU:0" and count >= 4 + 8 + 2 + 1
    assert 0 <= size - (3 * WEIGHTS + SCALARS + 4000) < few and 0 <= slots - 2 * WEIGHTS < few
    assert outcome(process, "\n").code == 0


KEYS = """
import sys
import tensorflow as tf

class Job:
    def __init__(self, size):
        self.result = tf.zeros([size, 60])

def stepper():
    image = tf.Variable(tf.zeros([20, 20]))
    return tf.function(lambda: image.assign_add(image))

jobs = {Job(size): size for size in range(50, 55)}
waiting = {Job(size) for size in range(70, 74)}
steps = {name: stepper() for name in ("sky", "sea", "sun")}
assert len([step() for step in steps.values()]) == 3
print("up", flush=True)
sys.stdin.readline()
"""


def test_what_the_keys_of_a_dict_a_set_and_compiled_functions_keep(
    monitor: Monitor, script: Script, forks: Forks
) -> None:
    process = forks.up(monitor, script(KEYS))
    found = {holder: [count, items] for holder, count, _, _, _, _, _, items in ask(monitor, process)["alike"]}
    assert (found["jobs[*].result"], found["waiting[*].result"], found["steps[*]"]) == ([5, 5], [4, 4], [3, 3])
    assert outcome(process, "\n").code == 0


CACHED = """
import functools, sys
import tensorflow as tf

@functools.cache
def adapter(user):
    return [tf.Variable(tf.zeros([100, 100])) for _ in range(3)]

class Server:
    @functools.lru_cache(maxsize=4)
    def loaded(self, name, version):
        return tf.zeros([50, 50 + version])

server = Server()
for user in range(6):
    adapter(user)
    server.loaded("one", user)
heard = []
print("up", flush=True)
sys.stdin.readline()
sys.addaudithook(lambda event, arguments: heard.append(event) if event == "gc.get_referents" else None)
print("up", flush=True)
sys.stdin.readline()
print(heard)
"""


def test_what_a_cache_of_functools_keeps(monitor: Monitor, script: Script, forks: Forks) -> None:
    """Python shows what such a cache holds only with an audit event. A script with an audit hook hears none."""
    process = forks.up(monitor, script(CACHED))
    census = ask(monitor, process)
    assert census["hidden"] is None
    assert groups(census)["variables", "adapter.<lru_cache>[*]"] == [18, 18 * 40_000, 6]
    (cached,) = [row for row in census["alike"] if row[0] == "Server.loaded.<lru_cache>"]
    assert cached[1] == cached[7] == 4 and cached[6] == "tensors"
    typed(process)
    assert line(process) == "up"
    census = ask(monitor, process)
    assert not groups(census) and (census["hidden"], census["tensors"]) == ("audited", 4)
    typed(process)
    assert line(process) == "[]"
    assert outcome(process).code == 0


WAITING = """
import asyncio, functools, queue, sys, threading
from concurrent.futures import ThreadPoolExecutor
import tensorflow as tf

class Writer:
    def __init__(self):
        self.executor = ThreadPoolExecutor(max_workers=1)
        self.gate = threading.Event()
    def write(self, tile, name):
        self.gate.wait()

class Server:
    def __init__(self):
        self.results = {}
    def answer(self, key):
        self.results[key] = future = asyncio.get_running_loop().create_future()
        future.set_result(tf.zeros([300, 300]))

async def client(server, number):
    for n in range(20):
        server.answer((number, n))
    await asyncio.Event().wait()

async def inner(pieces):
    await asyncio.Event().wait()

async def outer():
    await inner([tf.zeros([80, 80]) for _ in range(5)])

async def main():
    server = Server()
    tasks = [asyncio.create_task(each) for each in (client(server, 0), client(server, 1), outer())]
    await asyncio.sleep(0)
    await asyncio.get_running_loop().run_in_executor(None, wait)
    for task in tasks:
        task.cancel()

def wait():
    print("up", flush=True)
    sys.stdin.readline()
    sys.addaudithook(lambda event, arguments: heard.append(event) if event == "gc.get_referents" else None)
    print("up", flush=True)
    sys.stdin.readline()

heard, writer, ready = [], Writer(), queue.SimpleQueue()
for n in range(41):
    writer.executor.submit(writer.write, tf.zeros([200, 200]), name=f"tile{n}")
    ready.put((n, tf.zeros([90, 90])))
    ready.put(n)
ready.get()
asyncio.run(main())
print(heard)
writer.gate.set()
"""


def test_what_waits_in_a_queue_or_a_coroutine(monitor: Monitor, script: Script, forks: Forks) -> None:
    """Work of an executor has its arguments; an asyncio server, a local variable of its coroutine, has results."""
    process = forks.up(monitor, script(WAITING))
    census = ask(monitor, process)
    found = {row[0]: row[1] for row in census["alike"]}
    assert found["writer.executor._work_queue[*].args"] == 40  # one more is being written
    assert found["ready[*]"] == 40
    if VERSION >= (3, 11):  # before, a coroutine shows its frame only, and that shows all global variables too
        (holder,) = [holder for holder in found if holder.endswith(".results[*]._result")]
        assert holder in ("main.<locals>.results[*]._result", "client.<locals>.results[*]._result")
        assert found[holder] == 40 and found["outer.<locals>"] == 5
    typed(process)
    assert line(process) == "up"
    assert ask(monitor, process)["hidden"] == "audited"
    assert outcome(process, "\n")[:2] == (0, "[]\n")


def test_a_dict_with_a_key_for_each_user(monitor: Monitor, script: Script, forks: Forks) -> None:
    """Many keys are one group, since only the largest groups are sent. A few keys, such as names, stay apart."""
    source = """
import sys
import tensorflow as tf
past = {f"user-{number}": [tf.zeros([50, 50]) for _ in range(4)] for number in range(12)}
batch = {name: [tf.zeros([60, 60]) for _ in range(4)] for name in ("images", "labels")}
class Job:
    def __init__(self):
        self.output = tf.zeros([70, 70])
jobs = {f"job-{number}": Job() for number in range(12)}
print("up", flush=True)
sys.stdin.readline()
"""
    process = forks.up(monitor, script(source))
    found = {holder: count for holder, count, *_ in ask(monitor, process)["alike"]}
    assert found["past[*]"] == 48 and found["jobs[*].output"] == 12
    assert sorted(count for holder, count in found.items() if holder.startswith("batch[")) == [4, 4]
    assert outcome(process, "\n").code == 0
