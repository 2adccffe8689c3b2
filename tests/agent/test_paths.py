"""A tensor's path shows how Python holds it, for every kind of holder; none of the script's code runs for that."""

import json
import os
import sys
from pathlib import Path

from tests.agent.test_tensors import ask
from tests.hooked import VERSION, Forks, Monitor, Script, line, outcome, typed
from tests.starting import ran

MAKING = """
import collections, dataclasses, functools, json, sys, threading, types, typing, weakref
import tensorflow as tf

expected = {}

def made(path):
    extent = 1001 + len(expected)
    expected[extent] = path
    return tf.fill([100, extent], 1.0)

def told(**more):
    print(json.dumps({"paths": expected, **more}), flush=True)
    sys.stdin.readline()
"""

OBJECTS = (
    MAKING
    + """
ran = []

class Angry:
    def __init__(self, kept):
        self.kept = kept
    def refuse(self, *_):
        ran.append(self)
        raise SystemError
    __getattribute__ = __getattr__ = __eq__ = __hash__ = __bool__ = __len__ = __iter__ = __repr__ = refuse
    __class__ = property(refuse)

class Stubborn(dict):
    def refuse(self, *_):
        ran.append(self)
        raise SystemError
    __getitem__ = __iter__ = __len__ = keys = values = items = get = __missing__ = refuse

@dataclasses.dataclass
class Result:
    value: object

class Slots:
    __slots__ = ("unset", "kept")

class Ring:
    def __init__(self, size):
        self.items, self.at = [None] * size, 0
    def add(self, item):
        self.items[self.at % len(self.items)] = item
        self.at += 1

class Model:
    cache = {"x": made("Model.cache['x']")}

class Trainer:
    def __init__(self):
        self.history = []
    def step(self):
        return self.history

class Module(tf.Module):
    def __init__(self):
        super().__init__()
        self.cache = {"x": made("module.cache['x']")}

Point = collections.namedtuple("Point", "x y")

angry = Angry(made("angry.kept"))
stubborn = Stubborn({angry_key: [made("stubborn['key'][0]")] for angry_key in ["key"]})
result = Result(made("result.value"))
slots = Slots()
slots.kept = [made("slots.kept[0]")]
queue = collections.deque([1, made("queue[1]")], maxlen=2)
losses = collections.defaultdict(list)
losses["val"].append(made("losses['val'][0]"))
nested = [[], [1, [made("nested[1][1][0]")]]]
ring = Ring(3)
for turn in range(3):
    ring.add(1)
ring.add(made("ring.items[0]"))
trainer = Trainer()
trainer.history.append(made("trainer.history[0]"))
step = trainer.step
point = Point(1, made("point.y"))
module = Module()
written = tf.TensorArray(tf.float32, 1).write(0, made("written._implementation._tensor_array[0]"))
written.mark_used()
keyed = {(1, 2): made("keyed[...]"), 3: made("keyed[3]")}
helpers = types.ModuleType("helpers")
helpers.__file__, helpers.losses = "/somewhere/helpers.py", {}
helpers.losses[7] = [made("helpers.losses[7][0]")]
sys.modules["helpers"] = helpers
told(ran=len(ran))
print(len(ran), flush=True)
"""
)

FUNCTIONS = (
    MAKING
    + """
def closing():
    captured = made("closure.__closure__[0].cell_contents")
    return lambda: captured

def suspended():
    inside = [made("generator.<generator>[0]")]
    yield
    return inside

def counting():
    pass

shortest = lambda x=made(""): x
counting.cache = [made("counting.cache[0]")]
closure, generator = closing(), suspended()
next(generator)
part = functools.partial(print, made("part.args[0]"))
apart = threading.local()
apart.kept = made("")
iterator = iter([made("iterator[0]")])
weak = weakref.WeakValueDictionary()

def hold():
    weak["x"] = kept = made("hold.<locals>.kept")
    shared = [made("train.<locals>.pieces[0]")]
    return kept, shared

def train():
    pieces = hold()[1]
    alias = lambda: pieces
    rest(pieces)

def rest(given):
    unbound = 1
    del unbound
    told()

train()
"""
)


def paths(found: "list[list[object]]") -> dict[str, object]:
    return {str(row[2][1]): row[0] for row in found if isinstance(row[2], list) and row[2][:1] == [100]}


def test_objects_and_containers(monitor: Monitor, script: Script, forks: Forks) -> None:
    process = forks.start(monitor, script(OBJECTS))
    said = json.loads(line(process))
    census = ask(monitor, process)
    assert paths(census["largest"]) == said["paths"]
    typed(process)
    assert int(line(process)) == said["ran"], "code of the script's ran"
    assert outcome(process).code == 0


def test_functions_that_run_or_are_held(monitor: Monitor, script: Script, forks: Forks) -> None:
    process = forks.start(monitor, script(FUNCTIONS))
    expected = json.loads(line(process))["paths"]
    expected = {extent: path for extent, path in expected.items() if not path.startswith("hold.")}  # hold has returned
    if not LOCALS:
        expected = {extent: "" if ".<locals>." in path else path for extent, path in expected.items()}
    if VERSION < (3, 11):  # where a generator shows its frame only, and that shows all global variables too
        expected = {extent: "" if path.startswith("generator") else path for extent, path in expected.items()}
    assert paths(ask(monitor, process)["largest"]) == expected
    assert outcome(process, "\n").code == 0


LOCALS = VERSION >= (3, 13)
"""Whether the locals of running functions are looked at."""

MANY = """
import collections, sys, threading, time
import tensorflow as tf

class Record:
    def __init__(self, loss):
        self.loss = loss

class Thing:
    def __init__(self):
        self.one, self.other = {"a": [1]}, (2.5, [3])

class Trainer:
    def __init__(self):
        self.history = [tf.zeros([500]) for _ in range(690)]

things = [Thing() for _ in range(170_000)]
trainer = Trainer()
replay = collections.deque((tf.zeros([60]), number) for number in range(5000))
rows = [{"loss": tf.zeros([300]), "step": number} for number in range(2000)]
records = [Record(tf.zeros([200])) for _ in range(1000)]
longest = [0.0]

def beat():
    while True:
        began = time.process_time()  # of all its threads: what other processes take does not count
        time.sleep(0.001)
        longest[0] = max(longest[0], time.process_time() - began)

threading.Thread(target=beat, daemon=True).start()
print("up", flush=True)
while True:
    said = sys.stdin.readline()
    if not said:
        break
    print(longest[0], flush=True)
    longest[0] = 0.0
"""


def test_a_million_objects(monitor: Monitor, script: Script, forks: Forks) -> None:
    """Groups of tensors have their holder, and the script goes on while they are searched for."""
    process = forks.up(monitor, script(MANY))
    # A busy machine may leave one search too little time.
    looks = (ask(monitor, process) for _ in range(9))
    census = next(look for look in looks if look["hidden"] != "late")
    assert [row[:2] for row in census["alike"][:4]] == [
        ["rows[*]['loss']", 2000],
        ["trainer.history", 690],
        ["replay[*]", 5000],
        ["records[*].loss", 1000],
    ]
    stops = []
    for _ in range(3):
        typed(process)
        line(process)
        ask(monitor, process)
        typed(process)
        stops.append(float(line(process)))
    assert outcome(process).code == 0
    # For this time no other thread of the script ran. Most of it is the one look through all objects.
    assert sorted(stops)[1] < 2


def test_packages_are_no_part_of_the_script_wherever_they_were_installed(tmp_path: Path) -> None:
    """Otherwise their thousands of modules are searched before the script's own objects."""
    (installed := tmp_path / "packages").mkdir()
    for package in ("tensorflow", "keras", "another"):
        (installed / package).mkdir()
        (installed / package / "__init__.py").touch()
    (tmp_path / "own.py").touch()
    (tmp_path / "train.py").write_text(
        "import own, tensorflow, keras, another\n"
        "from tfmemtop.agent.views import Classes\n"
        "print([Classes().is_librarys(name) for name in ('keras.layers', 'another', 'own')])\n"
    )
    variables = {**os.environ, "PYTHONPATH": f"{installed}:{Path(__file__).parents[2]}"}
    done = ran([sys.executable, tmp_path / "train.py"], env=variables)
    assert done.stdout == "[True, True, False]\n", done.stderr
