"""A script may forbid, clear, replace or use up what the hook needs, and runs as it does without the hook."""

import json
from pathlib import Path

import pytest

from tests.agent.test_start import broken_tensorflow
from tests.hooked import INJECT, Forks, Monitor, Script, both, run


def test_an_environment_cleared_before_the_import(monitor: Monitor, script: Script, tmp_path: Path) -> None:
    source = script("import os; os.environ.clear(); import tensorflow")
    bare, hooked = both(monitor, source, PYTHONPATH=broken_tensorflow(tmp_path))
    assert bare == hooked and "libcudart" in bare.err
    assert monitor.wait_for(lambda event: event["type"] == "hook_end")


@pytest.mark.parametrize("forbidden", ["open", "socket.connect", "socket.__new__", "fcntl.fcntl"])
def test_an_audit_hook(monitor: Monitor, script: Script, tmp_path: Path, forbidden: str) -> None:
    source = f"""
import sys
def forbid(event, arguments):
    if event == {forbidden!r} and (event != "open" or str(arguments[0]).startswith(sys.argv[1])):
        raise RuntimeError(event)
sys.addaudithook(forbid)
try:
    import tensorflow
except ImportError as error:
    print(error)
"""
    bare, hooked = both(monitor, script(source), str(INJECT.parent), PYTHONPATH=broken_tensorflow(tmp_path))
    assert bare == hooked and bare[:2] == (0, "libcudart.so.12: cannot open\n")
    if forbidden == "open":
        monitor.error()
    else:
        monitor.die()


def test_a_folder_that_is_gone(monitor: Monitor, script: Script, tmp_path: Path) -> None:
    source = """
import os, subprocess, sys, tempfile
gone = tempfile.mkdtemp(dir=sys.argv[1]); os.chdir(gone); os.rmdir(gone)
os.environ["PYTHONPATH"] = os.environ.get("PYTHONPATH", "") + ":elsewhere"
look = "import sys; print([entry for entry in sys.path if 'python' not in entry])"
done = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True)
print((done.stdout, done.stderr) if done.returncode == 0 else "none starts there, from Python 3.11 on")
"""
    bare, hooked = both(monitor, script(source), str(tmp_path), PYTHONPATH="/nowhere")
    assert bare == hooked and bare.out


def test_modules_that_other_threads_import_meanwhile(monitor: Monitor, script: Script, tmp_path: Path) -> None:
    source = """
import sys, threading
sys.setswitchinterval(1e-6)
done = threading.Event()

def others():
    number = 0
    while not done.is_set():
        number = (number + 1) % 100_000
        sys.modules[f"other{number}"] = sys

threads = [threading.Thread(target=others) for _ in range(2)]
for thread in threads:
    thread.start()
try:
    import tensorflow
except ImportError as error:
    print(error)
done.set()
for thread in threads:
    thread.join()
print([name for name in sys.modules if "tfmemtop" in name])
"""
    bare, hooked = both(monitor, script(source), PYTHONPATH=broken_tensorflow(tmp_path))
    assert bare == hooked and bare.out.endswith("[]\n")
    assert monitor.wait_for(lambda event: event["type"] == "hook_end")


def test_finders_that_were_wrapped(monitor: Monitor, script: Script, tmp_path: Path) -> None:
    source = """
import sys
class Wrapped:
    def __init__(self, finder):
        self.finder = finder
    def find_spec(self, *arguments):
        return self.finder.find_spec(*arguments)
sys.meta_path[:] = map(Wrapped, sys.meta_path)
import tensorflow
"""
    bare, hooked = both(monitor, script(source), PYTHONPATH=broken_tensorflow(tmp_path))
    assert bare == hooked and "libcudart" in bare.err
    assert monitor.wait_for(lambda event: event["type"] == "hook_end")


HANDLERS = {
    "a function": """
def handler(number, frame):
    raise TimeoutError("mine")
""",
    "one that has put another in its place": """
def handler(number, frame):
    signal.signal(number, signal.SIG_DFL)
    raise TimeoutError("mine")
""",
    "a partial function": """
def late(what, number, frame):
    raise ValueError(what)
handler = functools.partial(late, "mine")
""",
    "any arguments": """
def handler(*arguments):
    signal.signal(arguments[0], signal.SIG_DFL)
    raise TimeoutError("mine")
""",
    "arguments deleted": """
def handler(number, frame):
    del number, frame
    raise TimeoutError("mine")
""",
}


def test_the_exceptions_of_signal_handlers_are_the_scripts(monitor: Monitor, script: Script, forks: Forks) -> None:
    """Such exceptions reach the script even if they are raised while our own code runs.

    A ``TimeoutError`` is also an ``OSError``. The line to the monitor catches an ``OSError``, but must not catch this
    one.
    """
    source = """
import functools, json, signal, sys
import tensorflow as tf

def interrupt(place):
    def watch(frame, event, argument):
        if event == "call" and "tfmemtop" in frame.f_code.co_filename and frame.f_code.co_name == place:
            sys.setprofile(None)
            signal.raise_signal(signal.SIGALRM)
    return watch

for text in json.loads(sys.argv[1]):
    exec(text)
    for place in ("_report_call", "send", "_try", "_is"):
        signal.signal(signal.SIGALRM, handler)
        sys.setprofile(interrupt(place))
        try:
            tf.config.set_visible_devices([], "GPU")
            print("lost at", place)
        except (TimeoutError, ValueError) as error:
            print(error)
        sys.setprofile(None)
"""
    done = forks.run(monitor, script(source), json.dumps(list(HANDLERS.values())))
    assert done[:2] == (0, "mine\n" * 4 * len(HANDLERS))


def test_no_thread_to_be_had(monitor: Monitor, script: Script, forks: Forks) -> None:
    source = """
import signal, threading
import tensorflow as tf
threading.stack_size(1 << 47)  # all that a process can address, so that no kernel grants it
print(tf.Variable(1.0).numpy(), signal.pthread_sigmask(signal.SIG_BLOCK, ()))
"""
    done = forks.run(monitor, script(source))
    assert done[:2] == (0, "1.0 set()\n") and "Traceback" not in done.err
    assert "can't start new thread" in monitor.error()["text"]


def test_code_of_ours_lies_in_no_file(monitor: Monitor, script: Script, tmp_path: Path) -> None:
    """Tools such as coverage measure code that is in files, and would count our code with the script's."""
    source = """
import sys
files = set()
def watch(frame, event, argument):
    if event == "call":
        files.add(frame.f_code.co_filename)
        files.add(str(frame.f_globals.get("__file__")))
sys.setprofile(watch)
try:
    import tensorflow
except ImportError:
    pass
sys.setprofile(None)
print([file for file in files if file.startswith(sys.argv[1])])
print({"<tfmemtop core.py>", "<tfmemtop typing.py>"} <= files)
"""
    hooked = run(monitor, script(source), str(INJECT.parent), PYTHONPATH=broken_tensorflow(tmp_path))
    assert hooked.out == "[]\nTrue\n"
