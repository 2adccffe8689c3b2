"""The hook keeps no object of the script alive."""

from tests.hooked import Forks, Monitor, Script


def test_no_code_is_run_and_no_pipe_is_read_for_us_and_subclasses_are_made_as_ever(
    monitor: Monitor, script: Script, forks: Forks
) -> None:
    """A script can be piped in or typed. To read its source would block, and would take the input that comes next."""
    source = """
import os, sys
import tensorflow as tf
from tensorflow.python.ops.resource_variable_ops import ResourceVariable

class Odd:
    def __repr__(self):
        print("shown")
        return "odd"

    def __getattr__(self, name):
        print("asked for", name)
        raise AttributeError(name)

try:
    tf.config.set_visible_devices([Odd()], "CPU")
except Exception as error:
    print(error)

pipe = f"{sys.argv[0]}.{os.getpid()}"
os.mkfifo(pipe)
exec(compile("tf.config.list_logical_devices()", pipe, "exec"))

class Other:
    def __new__(cls, *args, **kwargs):
        print("other", args, kwargs)
        return super().__new__(cls)

class Mine(ResourceVariable, Other):
    pass

class Own(ResourceVariable):
    def __new__(cls, *args):
        print("own", args)
        return super().__new__(cls)

print(Mine(1.0, name="x").numpy(), Own(2.0).numpy())
"""
    bare, hooked = forks.both(monitor, script(source))
    assert bare == hooked and bare.code == 0 and "other (1.0,) {'name': 'x'}\n" in bare.out
    assert monitor.of("requested")[0]["devices"] is None
    assert monitor.of("initialised")[0]["code"] == ""
