"""A TensorFlow process that executes commands and reports its own figures.

tfmemtop reads it from outside, and must report the same figures to the byte.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests import sparing
from tests.forked import Forked, Forking

PROGRAM = """
import ctypes, json, os, sys
from pathlib import Path

def told(**more):
    print(json.dumps(more), flush=True)

def figures():
    # By the allocator's own function, called in this process; and by TensorFlow's public one.
    folder = Path(tf.__file__).parent
    library = ctypes.CDLL(str(folder / "libtensorflow_framework.so.2"))
    def function(name, *arguments):
        found = getattr(library, name)
        found.restype, found.argtypes = ctypes.c_void_p, list(arguments)
        return found
    state = function("_ZN10tensorflow12ProcessState9singletonEv")()
    get = function("_ZN10tensorflow12ProcessState15GetCPUAllocatorEi", ctypes.c_void_p, ctypes.c_int)
    stats = function("_ZN3tsl12BFCAllocator8GetStatsEv", ctypes.c_void_p, ctypes.c_void_p)
    words = (ctypes.c_int64 * 64)()
    stats(ctypes.addressof(words), get(state, 0))
    from tfmemtop.agent.layouts import layout_of
    layout = layout_of(tf.__version__)
    public = tf.config.experimental.get_memory_info("CPU:0")
    places = dict(allocations=layout.allocations, limit=layout.limit_told, pool=layout.pool, peak_pool=layout.peak_pool)
    return dict(in_use=public["current"], peak=public["peak"], **{k: words[v // 8] for k, v in places.items()})

kept = []
told(ready=True)
for line in sys.stdin:
    word, _, number = line.strip().partition(" ")
    if word == "import":
        import tensorflow as tf
    elif word == "take":
        kept.append(tf.Variable(tf.zeros([int(number)], tf.uint8)))
    elif word == "small":
        kept.extend(tf.Variable(tf.zeros([256 + 8 * n], tf.uint8)) for n in range(int(number)))
    elif word == "free":
        del kept[:: int(number)]
    elif word == "fork":
        child = os.fork()
        if child == 0:
            import time
            time.sleep(600)
        told(child=child)
        continue
    elif word == "exec":
        os.execv(sys.executable, [sys.executable, "-c", "print('{}', flush=True); input()"])
    elif word == "figures":
        told(**figures())
        continue
    told(done=word)
"""


class Reporting:
    """Starts such a process. Each :meth:`do` waits for its answer."""

    def __init__(self, limit_mib: int, *, pool: bool = True, imported: Forking | None = None, **options: Any) -> None:
        """Start the process. With *imported* it is forked from a process that has TensorFlow imported, and a pool."""
        environment = {**os.environ, **sparing.variables(PROGRAM)} | {
            "TF_CPP_MIN_LOG_LEVEL": "3",
            "CUDA_VISIBLE_DEVICES": "",
        }
        if pool:
            environment |= {"TF_CPU_ALLOCATOR_USE_BFC": "true", "TF_CPU_BFC_MEM_LIMIT_IN_MB": str(limit_mib)}
        command = [sys.executable, "-u", "-c", PROGRAM]
        pipe = subprocess.PIPE
        self.process: Forked | subprocess.Popen[str]
        if imported is None:
            self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=environment, **options)
        else:
            self.folder = tempfile.TemporaryDirectory()
            script = Path(self.folder.name, "script.py")
            script.write_text(PROGRAM)
            limit = str(limit_mib)
            self.process = imported.start(str(script), folder=script.parent, TF_CPU_BFC_MEM_LIMIT_IN_MB=limit)
        self.pid = self.process.pid
        self._answer()

    def do(self, what: str) -> dict[str, Any]:
        """Send the command *what* to the process and return its answer."""
        assert self.process.stdin is not None
        self.process.stdin.write(what + "\n")
        self.process.stdin.flush()
        return self._answer()

    def close(self) -> None:
        """End the process if it has not ended."""
        self.process.kill()
        self.process.wait()
        for pipe in (
            self.process.stdin,
            self.process.stdout,
            self.process.stderr,
        ):  # a child that the process forked may still hold them
            if pipe is not None:
                pipe.close()

    def _answer(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        while True:
            line = self.process.stdout.readline()
            assert line, f"it has ended with {self.process.wait()}"
            if line.startswith("{"):
                found: dict[str, Any] = json.loads(line)
                return found
