"""TensorFlow's lines about an allocator that finds no room are known, whether or not anyone reads its output."""

import os
import re
import signal
import sys
from pathlib import Path

from tests import sparing
from tests.engines import Engines
from tests.hooked import Script
from tests.starting import ran
from tests.streams import fold
from tfmemtop.events import AllocatorLine, Input, Probe, ProbeState, RunEnd
from tfmemtop.probe.cache import checksum_of
from tfmemtop.state.shortages import crashes

POOL = {"TF_CPU_ALLOCATOR_USE_BFC": "true", "TF_CPU_BFC_MEM_LIMIT_IN_MB": "256", "TF_CPP_MIN_LOG_LEVEL": "0"}
MIB = 1 << 20

SCRATCH = """
import ctypes, os, sys
import tensorflow as tf
from tfmemtop.agent.native import Native
library, checksum, kept = sys.argv[1:]
tf.zeros([1 << 20])
native = Native(library, int(checksum))

class Attributes(ctypes.Structure):
    _fields_ = [("waits", ctypes.c_bool), ("logged", ctypes.c_bool), ("freed_by", ctypes.c_void_p)]

framework = ctypes.CDLL(os.path.dirname(tf.__file__) + "/libtensorflow_framework.so.2", use_errno=True)
def function(name, *arguments):
    found = getattr(framework, name)
    found.restype, found.argtypes = ctypes.c_void_p, list(arguments)
    return found
state = function("_ZN10tensorflow12ProcessState9singletonEv")()
pool = function("_ZN10tensorflow12ProcessState15GetCPUAllocatorEi", ctypes.c_void_p, ctypes.c_int)(state, 0)
allocate = function(
    "_ZN3tsl12BFCAllocator11AllocateRawEmmRKNS_20AllocationAttributesE",
    ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t, ctypes.POINTER(Attributes),
)
def request(mebibytes):
    ctypes.set_errno(77)
    assert not allocate(pool, 64, mebibytes << 20, Attributes(False, False, None))
    assert ctypes.get_errno() == 77

def requests():
    request(512)
    os.closerange(3, 256)
    with open("own", "w") as own:
        request(640)
    if os.fork() == 0:
        request(768)
        os._exit(0)
    os.wait()

requests()
os.write(2, b"kept from now on\\n")
native.keep_log_lines(kept)
requests()
"""


def test_scratch_lines_are_kept_and_tensorflows_own_output_stays(script: Script, library: Path, tmp_path: Path) -> None:
    kept = tmp_path / "7.lines"
    done = ran(
        [sys.executable, script(SCRATCH), str(library), str(checksum_of(library.read_bytes())), str(kept)],
        cwd=tmp_path,
        env={**os.environ, **POOL, **sparing.variables(SCRATCH)},
    )
    assert done.returncode == 0, done.stderr
    lines = re.sub(r"0x[0-9a-f]+|\d+", "N", done.stderr).splitlines()
    first = next(place for place, line in enumerate(lines) if "this is not a failure" in line)
    middle = lines.index("kept from now on")
    assert lines[first:middle] == lines[middle + 1 :] and len(lines[first:middle]) == 3
    lines = kept.read_text().splitlines()
    assert [line.partition(" with")[0].rpartition(" ")[2] for line in lines] == ["512.00MiB", "640.00MiB"]
    assert (tmp_path / "own").read_bytes() == b""


CRASHING = """
import numpy as np
import tensorflow as tf
tf.zeros([1])
array = np.ones([80 << 20], "float32")
print("made", flush=True)
input()
tf.constant(array)
"""


async def test_a_crash_for_want_of_room_has_its_size_and_its_time(
    engines: Engines, script: Script, library: Path
) -> None:
    screen = await engines.run(sys.executable, script(CRASHING), environment={**os.environ, **POOL})
    await screen.until_shown("made")
    await screen.until(Probe, lambda probe: probe.state is ProbeState.LOADED)
    await screen.client.send(Input(text="\n"))
    end = await screen.until(RunEnd)
    assert end.signal == signal.SIGSEGV
    (line,) = screen.all(AllocatorLine)
    assert (line.size, line.operation) == (320 * MIB, None) and end.t - 5 < line.at < line.t < end.t
    assert "requested by op" in screen.shown
    state = fold(screen.events)
    (anatomy,) = crashes(state, crashed=True)
    assert anatomy.asked == 320 * MIB
    # The line was in the terminal, too.
    assert state.run is not None and len(state.run.complaints) == 1
