"""The interpreter's own mechanisms: tracing, profiling, audit, collector, warnings, import machinery."""

from tests.tools.corpus.script import Script, py

SCRIPTS: tuple[Script, ...] = (
    py("interp-threads-none", "no thread of ours before TensorFlow", """
import os, sys, threading
print(threading.active_count(), len(os.listdir("/proc/self/task")), len(sys._current_frames()))
""", live=True, quick=True),
    py("interp-modules", "which modules are loaded at the start", "import sys\nprint(sorted(sys.modules))\n", quick=True),
    py("interp-tracemalloc", "which files tracemalloc sees allocate", """
import tracemalloc
tracemalloc.start(5)
import colorsys
snapshot = tracemalloc.take_snapshot()
print(sorted({stat.traceback[0].filename.rsplit("/", 1)[-1] for stat in snapshot.statistics("filename")}))
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
