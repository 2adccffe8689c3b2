"""What scripts print while Python ends, after it has buffered their output: no script here has PYTHONUNBUFFERED."""

from tests.tools.corpus.script import Script, py

_HELD = """
import sys
import tensorflow as tf
class Held:
    def __init__(self, name):
        self.name = name
    def __del__(self):
        print("end of", self.name)
"""


def _ends(name: str, exercises: str, source: str, **rest: object) -> Script:
    return py(f"ends-{name}", exercises, _HELD + source, tensorflow=True, **{"filters": ("log", "addresses"), **rest})


_GLOBALS = "one, two = Held('one'), Held('two')\nprint('best epoch: 3')\n"

SCRIPTS: tuple[Script, ...] = (
    _ends("pipe", "global variables, to a pipe", _GLOBALS, live=True, quick=True),
    _ends("used", "after operations", "x = tf.Variable(tf.ones([9]))\ny = tf.function(lambda: x + 1)()\n" + _GLOBALS, live=True),
    _ends("operation", "an operation and a tf.function in a finalizer", """
double = tf.function(lambda x: x * 2)
class Last(Held):
    def __del__(self, double=double, ones=tf.ones):
        print(double(ones([2])).numpy())
last = Last("last")
double(tf.ones([2]))
"""),
    _ends("stdout-own", "a stream of the script's in the place of stdout", """
import io
sys.stdout = io.TextIOWrapper(open(1, "wb", closefd=False), write_through=False)
""" + _GLOBALS),
    _ends("finders", "a finder, an excepthook, a signal's handler, an exit's", """
import atexit, signal
class Called(Held):
    def __call__(self, *arguments):
        print("called", self.name)
    def find_spec(self, name, path=None, target=None):
        return None
sys.meta_path.append(Called("finder"))
sys.excepthook = Called("excepthook")
signal.signal(signal.SIGUSR1, Called("handler"))
atexit.register(Called("exit"))
"""),
)  # fmt: skip
