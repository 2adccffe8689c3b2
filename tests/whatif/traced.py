"""Traces of real scripts, taken on the CPU's BFC by TensorFlow's own recorder, independently of tfmemtop's."""

import fcntl
import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

import msgspec

from tests import streams
from tests.hooked import PYTHON
from tfmemtop.events import Allocator, Event, Trace, encode
from tfmemtop.events.allocations import MOST_OF_PART, Call, TraceAllocations, pack
from tfmemtop.probe.build import find_compiler
from tfmemtop.units import MIB

_SOURCE = Path(__file__).with_name("recorder.cc")

_RUN = """
import atexit, ctypes, os, runpy, sys
library, events, records = sys.argv[1:4]
sys.argv = sys.argv[4:]
sys.path[0] = os.path.dirname(os.path.abspath(sys.argv[0]))
import tensorflow
recorder = ctypes.CDLL(library)
if records == "yes":
    recorder.recorder_start()
atexit.register(recorder.recorder_stop, events.encode())
runpy.run_path(sys.argv[0], run_name="__main__")
"""

EVENTS = "events.txt"


@dataclass(frozen=True, slots=True)
class Measured:
    """What the allocator itself reported at the end; sizes in bytes."""

    in_use: int
    peak: int
    pool: int
    peak_pool: int
    allocations: int
    largest_free: int


def recorder(tensorflow: Path, folder: Path) -> Path:
    """Return the recorder in *folder*. The first process that needs it builds it, against *tensorflow*."""
    library = folder / "recorder.so"
    with (folder / "recorder.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not library.exists():
            _compile(library, tensorflow)
    return library


def _compile(library: Path, tensorflow: Path) -> None:
    draft = library.with_suffix(".draft")
    abi = "1" if b"_ZNSt7__cxx1112basic_string" in (tensorflow / "libtensorflow_framework.so.2").read_bytes() else "0"
    subprocess.run(
        [
            *find_compiler()[0],
            *("-std=c++17", "-O0", "-fPIC", "-shared", "-w", "-DNDEBUG", f"-D_GLIBCXX_USE_CXX11_ABI={abi}"),
            *("-DEIGEN_MAX_ALIGN_BYTES=64", "-DGOOGLE_CUDA=1", f"-I{tensorflow / 'include'}", str(_SOURCE)),
            *("-o", str(draft), f"-L{tensorflow}", "-l:libtensorflow_framework.so.2"),
            # Symbols that are not in this library are in other libraries, which TensorFlow itself has loaded.
            "-Wl,--unresolved-symbols=ignore-all",
        ],
        check=True,
    )
    draft.rename(library)


def environment(limit: int) -> dict[str, str]:
    """Return the environment variables that give the CPU a BFC pool of at most *limit* MiB."""
    return {**os.environ, "TF_CPU_ALLOCATOR_USE_BFC": "true", "TF_CPU_BFC_MEM_LIMIT_IN_MB": str(limit)}


def trace(command: list[str], library: Path, folder: Path, limit: int = 4096) -> tuple[list[Trace], Measured]:
    """Run *command*, a script and its arguments, with a pool of *limit* MiB. Return its trace and what was measured."""
    lines = _run(command, library, folder, limit, records=True)
    assert lines is not None
    return told(lines)


def told(lines: list[str]) -> tuple[list[Trace], Measured]:
    """Return the trace and the measured figures in the *lines* of the recorder's file."""
    return parts(lines[:-1]), _measured(lines)


def _measured(lines: list[str]) -> Measured:
    return Measured(*map(int, lines[-1].split()[1:]))


def attempt(command: list[str], library: Path, folder: Path, limit: int) -> Measured | None:
    """Do the same without a trace. Return what was measured; ``None`` if the script failed."""
    lines = _run(command, library, folder, limit, records=False)
    return None if lines is None else _measured(lines)


def _run(command: list[str], library: Path, folder: Path, limit: int, *, records: bool) -> list[str] | None:
    events = folder / EVENTS
    events.unlink(missing_ok=True)
    done = subprocess.run(
        [PYTHON, "-c", _RUN, str(library), str(events), "yes" if records else "no", *command],
        env=environment(limit) | {"TF_CPP_MIN_LOG_LEVEL": "3"},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0 and records:
        raise RuntimeError(done.stderr[-2000:])
    return events.read_text().splitlines() if done.returncode == 0 else None


def parts(lines: list[str]) -> list[Trace]:
    """Return the recorder's *lines* as the events of a tfmemtop recording."""
    split = sorted((line.split(" ", 2) for line in lines), key=lambda line: int(line[1]))
    found: list[tuple[int, int]] = []
    operations: list[int] = []
    numbers: dict[str, int] = {}
    names: dict[str, int] = {}
    threads: dict[str, int] = {}
    calls: dict[str, Call] = {}
    made_in: list[str] = []
    for identity, _, text in split:
        thread = threads.setdefault(identity, len(threads))
        figures = dict(re.findall(r"(requested_bytes|addr|tf_op|id)=([^,#]*)", text))
        if not text.startswith("Memory"):
            calls.setdefault(figures["id"], Call(thread, len(found)))
        elif text.startswith("MemoryAllocation"):
            found.append((thread << 1, int(figures["requested_bytes"])))
            numbers[figures["addr"]] = len(operations)
            operations.append(names.setdefault(figures["tf_op"], len(names)) if figures.get("tf_op") else -1)
            made_in.append(figures.get("id", ""))
        elif figures["addr"] in numbers:
            found.append((thread << 1 | 1, numbers.pop(figures["addr"])))
    order = {run: number for number, run in enumerate(calls)}
    told, before = [], 0
    for part, first in enumerate(range(0, len(found), MOST_OF_PART)):
        piece = found[first : first + MOST_OF_PART]
        after = before + sum(not who & 1 for who, _ in piece)
        content = TraceAllocations(
            names=list(names) if part == 0 else [],
            events=piece,
            operations=operations[before:after],
            runs=[order.get(run, -1) for run in made_in[before:after]],
            calls=list(calls.values()) if part == 0 else [],
        )
        told.append(
            Trace(
                t=1.0,
                pid=1,
                device="CPU:0",
                part=part,
                last=first + MOST_OF_PART >= len(found),
                whole=True,
                events=len(piece),
                packed=pack(content),
            )
        )
        before = after
    return told


def session(parts: list[Trace], measured: Measured, tensorflow: Path, version: str, limit: int = 4096) -> list[Event]:
    """Return a small session whose process has that trace and those figures, in a CPU pool of *limit* MiB."""
    pid = 100
    hook = msgspec.structs.replace(streams.hook(0.4, pid, version), tensorflow_path=str(tensorflow))
    reading = Allocator(
        t=2.0,
        pid=pid,
        device="CPU:0",
        allocator="bfc_cpu_allocator_for_gpu",
        in_use=measured.in_use,
        peak=measured.peak,
        pool=measured.pool,
        limit=limit * MIB,
        peak_pool=measured.peak_pool,
        allocations=measured.allocations,
    )
    told = [msgspec.structs.replace(part, pid=pid) for part in parts]
    return [streams.session(), streams.run(), streams.process(0.2, pid), hook, *told, reading]


def write(path: Path, events: list[Event]) -> Path:
    """Write a recording of *events* to *path*, and return the path."""
    path.write_bytes(b"\n".join(map(encode, events)) + b"\n")
    return path
