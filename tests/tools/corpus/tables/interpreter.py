"""The interpreter's own mechanisms: tracing, profiling, audit, collector, warnings, import machinery."""

from tests.tools.corpus.script import Script, py

SCRIPTS: tuple[Script, ...] = (
    py("interp-settrace", "every line and call that a tracer sees", """
import sys, json
seen = []
def trace(frame, event, arg):
    seen.append((event, frame.f_code.co_name, frame.f_code.co_filename.rsplit("/", 1)[-1]))
    return trace
sys.settrace(trace)
json.dumps([1])
import colorsys
sys.settrace(None)
print(len(seen), sorted(set(seen))[:40])
""", differs={"stdout": "tracers see the one finder more"}),
    py("interp-audit", "what an audit hook hears of a plain import and a file", """
import sys
heard = []
on = True
sys.addaudithook(lambda event, args: heard.append(event) if on else None)
open("/etc/hostname").read()
import colorsys
on = False
print(sorted(set(heard)))
"""),
    py("interp-audit-forbids", "an audit hook that forbids sockets and threads", """
import sys
def forbid(event, args):
    if event.startswith("socket.") or event in ("_thread.start_new_thread", "subprocess.Popen", "ctypes.dlopen"):
        raise PermissionError(event)
sys.addaudithook(forbid)
import colorsys
print("end")
"""),
    py("interp-gc", "collector: callbacks, counts, freeze, disabled", """
import gc
gc.disable()
heard = []
gc.callbacks.append(lambda phase, info: heard.append(phase))
print(len(gc.callbacks), gc.isenabled(), gc.get_threshold())
gc.collect()
gc.freeze()
print(heard, gc.get_freeze_count() > 0, gc.garbage)
"""),
    py("interp-threads-none", "no thread of ours before TensorFlow", """
import os, sys, threading
print(threading.active_count(), len(os.listdir("/proc/self/task")), len(sys._current_frames()))
""", live=True, quick=True),
    py("interp-modules", "which modules are loaded at the start", "import sys\nprint(sorted(sys.modules))\n", quick=True),
    py("interp-maps", "which files are mapped", """
print(sorted({line.split()[-1].rsplit("/", 1)[-1] for line in open("/proc/self/maps") if "/" in line}))
""", differs={"stdout": "the hook keeps C modules of Python's own"}),
    py("interp-meta-path", "finders, in order", "import sys\nprint([getattr(f, '__name__', type(f).__name__) for f in sys.meta_path])\n",
       differs={"stdout": "one more finder on sys.meta_path"}),
    py("interp-meta-path-cleared", "a script that clears and restores the finders", """
import sys
kept = sys.meta_path[:]
sys.meta_path.clear()
try:
    import colorsys
except ImportError as error:
    print(error)
sys.meta_path[:] = kept[-3:]
import colorsys
print(colorsys.__name__)
"""),
    py("interp-find-spec", "searching for TensorFlow is no import", """
import importlib.util, sys
importlib.util.find_spec("tensorflow")
print("tensorflow" in sys.modules)
""", quick=True),
    py("interp-tracemalloc", "which files tracemalloc sees allocate", """
import tracemalloc
tracemalloc.start(5)
import colorsys
snapshot = tracemalloc.take_snapshot()
print(sorted({stat.traceback[0].filename.rsplit("/", 1)[-1] for stat in snapshot.statistics("filename")}))
"""),
    py("interp-clears-environment", "a script that clears its environment", """
import os, subprocess
os.environ.clear()
print(subprocess.run(["/usr/bin/env"], capture_output=True).stdout)
"""),
    py("interp-mocked", "mocked time, pid, signals: nobody but the script calls them", """
import os, signal, time
from unittest import mock
with mock.patch("time.monotonic", side_effect=[1, 2, 3]), mock.patch("os.getpid", return_value=7) as pid, \\
        mock.patch("signal.signal") as handler, mock.patch("os.putenv") as put:
    import colorsys
    print(time.monotonic(), os.getpid(), pid.call_count, handler.call_count, put.call_count)
""", quick=True),
    py("interp-builtins-broken", "open, print and len replaced by what raises", """
import builtins, sys
def broken(*_, **__):
    raise RuntimeError("broken")
for name in ("open", "len", "isinstance", "getattr", "print", "sorted", "hasattr"):
    setattr(builtins, name, broken)
sys.exit(9)
"""),
    py("interp-subinterpreter", "another interpreter in the process", """
try:
    import _xxsubinterpreters as sub
except ImportError:
    import _interpreters as sub
id = sub.create()
sub.run_string(id, "print('inside', flush=True)") if hasattr(sub, "run_string") else sub.exec(id, "print('inside', flush=True)")
sub.destroy(id)
""", filters=("numbers",)),
)  # fmt: skip
