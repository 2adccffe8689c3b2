"""How the script ended: its exception, failed allocations of every wording, and what held the memory at that time."""

from pathlib import Path

import pytest

from tests.hooked import VERSION, Event, Forks, Monitor, Script, both, run, working_tensorflow


@pytest.mark.parametrize(
    ("source", "kind", "message"),
    [
        ("raise ValueError('the first line\\nthe second')", "ValueError", "the first line"),
        (
            "raise ValueError('in user code:\\n\\n  File \"t.py\"\\n\\n  KeyError: 3')",
            "ValueError",
            "KeyError: 3",
        ),  # AutoGraph's
        ("open('/nowhere/at/all')", "FileNotFoundError", "No such file or directory: /nowhere/at/all"),
        (
            "import pathlib\npathlib.Path('/nowhere/at/all').read_text()",  # which pathlib opens, not the script
            "FileNotFoundError",
            "No such file or directory: /nowhere/at/all",
        ),
        (
            "class Own(Exception):\n    def __str__(self):\n        print('asked')\n        return 'x'\nraise Own(3)",
            "Own",
            "",
        ),
    ],
)
def test_the_exception_that_ended_the_script(
    monitor: Monitor, script: Script, tmp_path: Path, source: str, kind: str, message: str
) -> None:
    path = script(f"import tensorflow\n{source}\n")
    bare, hooked = both(monitor, path, PYTHONPATH=working_tensorflow(tmp_path))
    assert bare == hooked and bare.code == 1
    monitor.wait_for(lambda event: event["type"] == "hook_end")
    (error,) = monitor.of("script_error")
    last = source.splitlines()[-1]
    assert (error["kind"], error["message"], error["file"], error["code"]) == (kind, message, path, last)
    assert error["line"] == 1 + len(source.splitlines())


GRPC = """
from concurrent import futures
import grpc, tensorflow
server = grpc.server(futures.ThreadPoolExecutor(1))
answers = grpc.unary_unary_rpc_method_handler(lambda request, context: bytes(6 << 20))
server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("Embedder", {"Embed": answers}),))
port = server.add_insecure_port("127.0.0.1:0")
server.start()
embed = grpc.insecure_channel(f"127.0.0.1:{port}").unary_unary("/Embedder/Embed")
def ask():
    return embed(b"x")
ask()
"""


COMPILED = """
import tensorflow
native = {}
exec(compile("def load(): raise FileNotFoundError(2)", "FILE", "exec"), native)
native["load"]()
"""


@pytest.mark.parametrize("file", ["h5py/h5f.pyx", "/tmp/__autograph_generated_filex_1.py"])
def test_an_error_of_compiled_code(monitor: Monitor, script: Script, tmp_path: Path, file: str) -> None:
    run(monitor, path := script(COMPILED.replace("FILE", file)), PYTHONPATH=working_tensorflow(tmp_path))
    monitor.wait_for(lambda event: event["type"] == "hook_end")
    (error,) = monitor.of("script_error")
    assert (error["kind"], error["file"], error["line"]) == ("FileNotFoundError", path, 5)


def test_an_error_of_an_installed_package(monitor: Monitor, script: Script, tmp_path: Path) -> None:
    """The line is the script's. The error's own code, which takes a lock, is not called for a message."""
    run(monitor, path := script(GRPC), PYTHONPATH=working_tensorflow(tmp_path))
    monitor.wait_for(lambda event: event["type"] == "hook_end")
    (error,) = monitor.of("script_error")
    assert (error["kind"], error["file"], error["code"]) == ("_InactiveRpcError", path, 'return embed(b"x")')
    assert error["message"] == ""


@pytest.mark.parametrize(
    "source",
    ["sys.exit('mine')", "raise KeyboardInterrupt", "try:\n    1 / 0\nexcept Exception as error:\n    keep(error)"],
)
def test_no_exception_of_the_scripts(monitor: Monitor, script: Script, tmp_path: Path, source: str) -> None:
    """Test runners and notebooks leave an exception in ``sys`` that they have caught."""
    keep = "def keep(error):\n    sys.last_value, sys.last_traceback = error, error.__traceback__\n"
    called = "def main():\n" + "".join(f"    {each}\n" for each in source.splitlines())
    run(monitor, script(f"import sys, tensorflow\n{keep}{called}main()\n"), PYTHONPATH=working_tensorflow(tmp_path))
    monitor.wait_for(lambda event: event["type"] == "hook_end")
    assert not monitor.of("script_error")


ERRORS = '''
import multiprocessing
import pickle
import tensorflow as tf
for kind, message in [
    (tf.errors.InternalError, "Failed copying input tensor: Dst tensor is not initialized."),
    (tf.errors.UnknownError, "CUDNN_STATUS_ALLOC_FAILED in the stream"),
    (tf.errors.InternalError, "Attempting to perform BLAS operation: CUBLAS_STATUS_ALLOC_FAILED"),
    (tf.errors.InternalError, "Failed to allocate 12345 bytes for new constant"),
    (tf.errors.ResourceExhaustedError, "the queue is full"),
    (tf.errors.OutOfRangeError, "End of sequence"),
]:
    error = kind(None, None, message)
    assert pickle.loads(pickle.dumps(error)).message == message
child, parent = multiprocessing.Pipe()  # as a pool passes on what a worker has raised
child.send_bytes(pickle.dumps(tf.errors.InternalError(None, None, "??? when allocating")).replace(b"???", b"OOM"))
assert parent.recv().message == "OOM when allocating"
kept = [tf.Variable(tf.zeros([1 << 20])) for _ in range(4)]
class Late:
    def __del__(self):
        print("late", len(kept))
late = Late()
raise tf.errors.UnknownError(None, None, """Graph execution error:

Detected at node sequential/conv defined at (most recent call last):
  File "/home/ada/train.py", line 3, in <module>

<stack traces unavailable>
Node: 'sequential/conv'
the end
\t [[{{node sequential/conv}}]]""")
'''


LEFT = """
import itertools
import tensorflow as tf
class Trainer:
    def __init__(self):
        self.pending = []
def batches():
    for number in range(9):
        yield tf.zeros([2, 1 << 20]) + number
def failing(number):
    inside = tf.zeros([3, 1 << 20]) + number
    raise ValueError(number)
def train(given):
    given.pending += [tf.zeros([1 << 20]) + number for number in range(4)]
    tape, value = tf.GradientTape(persistent=True), tf.Variable(1.0)
    with tape:
        for _ in range(600):
            value = value * 1.5
        fail()
def fail():
    raise tf.errors.ResourceExhaustedError(None, None, "OOM when allocating tensor")
def main():
    trainer, errors, endless = Trainer(), [], itertools.cycle(batches())
    for number in range(3):
        next(endless)
        try:
            failing(number)
        except ValueError as error:
            errors.append(error)
    train(trainer)
main()
"""


def last_look(monitor: Monitor, forks: Forks, path: str, *wanted: str) -> Event:
    """Return the census at the end of the script, which has run once already: one that has found the paths *wanted*.

    The script's end waits for a second at most. On a busy machine that may not do for a look, so it runs again then.
    """
    for _ in range(9):
        monitor.wait_for(lambda event: event["type"] == "hook_end")
        last = monitor.of("census", monitor.of("hook_end")[-1]["pid"])[-1]
        if set(wanted) <= {row[0] for row in last.get("alike", ())}:
            break
        ended = len(monitor.of("hook_end"))
        forks.run(monitor, path)
        monitor.wait_for(lambda _, known=ended: len(monitor.of("hook_end")) > known)  # type: ignore[misc]
    assert last["moment"] == "end"
    return last


@pytest.mark.parametrize("library", ["", "import sys\nsys.addaudithook(lambda event, arguments: None)\n"])
def test_what_the_functions_held_that_an_error_left(
    monitor: Monitor, script: Script, forks: Forks, library: str
) -> None:
    """Also where a library has installed an audit hook, as filelock does."""
    source = library + LEFT
    bare, hooked = forks.both(monitor, script(source))
    assert bare == hooked and bare.code == 1
    wanted = ["main.<locals>.trainer.pending", "main.<locals>.errors[*].__traceback__"]
    last = last_look(monitor, forks, script(source), *wanted[: 2 if VERSION >= (3, 11) else 1])
    groups = {row[0]: row[1] for row in last["alike"]}
    assert groups["main.<locals>.trainer.pending"] == 4 and groups["main.<locals>.endless.<cycle>"] == 3
    assert VERSION < (3, 11) or groups["main.<locals>.errors[*].__traceback__"] == 3
    # The tape holds most of its tensors where no path leads.
    assert last["tensors"] > 600 and last["tapes"] == 1 and last["frozen"] is None


def test_what_tensorflow_raised_and_what_was_held_at_the_end(monitor: Monitor, script: Script, forks: Forks) -> None:
    bare, hooked = forks.both(monitor, script(ERRORS))
    assert bare == hooked and bare.code == 1
    monitor.wait_for(lambda event: event["type"] == "hook_end")
    assert [event["message"].split()[0] for event in monitor.of("out_of_memory")] == [
        *("Failed", "CUDNN_STATUS_ALLOC_FAILED", "Attempting", "Failed")
    ]
    assert [event["message"] for event in monitor.of("script_error")] == ["the end"]
    last = last_look(monitor, forks, script(ERRORS), "kept")
    assert last["alike"][0] == ["kept", 4, [1 << 20], "float32", "CPU:0", 16 << 20, "variables", 4]
