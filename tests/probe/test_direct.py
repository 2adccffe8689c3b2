"""Pools are read in place, in a real TensorFlow on its BFC allocator for the CPU, without library and compiler."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.engines import Engines
from tests.forked import Fork
from tests.hooked import INJECT, Monitor, Script, outcome, typed
from tests.own_sessions import own_sessions
from tests.pools import check_map
from tests.probe.test_engine import POOL, TRAINING
from tfmemtop import events
from tfmemtop.agent.layouts import LAYOUTS, layout_of
from tfmemtop.engine.sources.chunk_maps import condense, read_chunks
from tfmemtop.engine.sources.window_file import file_name, read_window
from tfmemtop.events.probe import LAYOUTS as KNOWN
from tfmemtop.findings.probe import probe_text
from tfmemtop.probe.cache import checksum_of

MIB = 1 << 20
ROOT = INJECT.parents[1]


async def test_a_machine_without_a_compiler_has_pool_and_map_at_once(
    engines: Engines, script: Script, tmp_path: Path
) -> None:
    alone = {**os.environ, **POOL, "PATH": "/nowhere", "XDG_CACHE_HOME": str(tmp_path / "cache")}
    with pytest.MonkeyPatch.context() as patch:  # for the engine too, which looks for a compiler
        for name in ("PATH", "XDG_CACHE_HOME"):
            patch.setenv(name, alone[name])
        screen = await engines.run(sys.executable, script(TRAINING), environment=alone, record=str(tmp_path / "file"))
        # On a busy machine, the first event reports that the library is being built.
        told = await screen.until(
            events.Probe, lambda probe: probe.of_library and probe.state is not events.ProbeState.BUILDING
        )
        assert "no C++ compiler" in probe_text(told)
    devices = await screen.until(events.Effective)
    # The first map may be of a pool that is still empty; the next follows a second later.
    found = await screen.until(events.MemoryMap, lambda found: found.pool > 0)
    assert found.t >= devices.t and found.cells and not found.is_missing
    first = await screen.until(events.Allocator, lambda reading: bool(reading.pool))
    assert first.pool == first.peak_pool and first.pool and first.allocations and first.limit == 512 * MIB
    probes = [probe for probe in screen.all(events.Probe) if probe.state is not events.ProbeState.BUILDING]
    assert [probe.state for probe in probes] == [events.ProbeState.UNAVAILABLE, events.ProbeState.DIRECT]

    late = await engines.look(own_sessions()[0].socket)
    for probe in probes:
        assert await late.until(events.Probe, lambda one, known=probe: one == known)  # type: ignore[misc]

    await screen.client.send(events.Input(text="\n"))
    await screen.until_shown("grown")
    growth = await screen.until(events.PoolGrowth, lambda growth: growth.after - growth.before >= 64 * MIB)
    await screen.until(events.MemoryMap, lambda found: found.pool == growth.after)
    folder = Path(own_sessions()[0].socket).with_name("data")
    assert [path.name for path in folder.iterdir()] == [f"{first.pid}.CPU:0.live.chunks"]
    await screen.client.send(events.Input(text="\n"))
    assert (await screen.until(events.RunEnd)).exit_code == 0
    assert not screen.all(events.HookError) and not list(folder.iterdir())


BOTH = """
import json, os, random, sys, threading
sys.path.insert(0, sys.argv[1])
import tensorflow as tf
from tensorflow.python.eager import context
from tfmemtop.agent.direct import Direct
from tfmemtop.agent.native import Native
from tfmemtop.agent.native_windows import BY_STEP, Limits, NativeWindows
from tfmemtop.agent.memory import Sheet
from tfmemtop.agent.trust import CPU, GPU, PINNED

def public():
    from tfmemtop.agent.layouts import Reading
    info = tf.config.experimental.get_memory_info("CPU:0")
    return Reading(info["current"], info["peak"])

direct = Direct(os.path.dirname(tf.__file__), tf.__version__)
before = [direct.check(CPU, 0, None), direct.take(CPU, 0), direct.gpus(), direct.check(GPU, 0, None)]
before.append(direct.check(PINNED, 0, None))
untouched = context._context is None or context._context._context_handle is None

pieces = [tf.zeros([(1 + number % 97) << 8]) for number in range(3000)]
del pieces[::3]
spike = tf.zeros([4 << 20])
del spike
native = Native(sys.argv[2], int(sys.argv[3]))
checked = [direct.check(CPU, 0, public), native.check(CPU, 0, public)]
sheet = Sheet(os.path.join(sys.argv[4], f"{os.getpid()}.CPU:0.live.chunks"))

def readings():
    found = [way.take(CPU, 0) for way in (direct, native)]
    return [[one.name, *one.reading[:6]] for one in found] + [list(public()[:2])]

def cut():
    told = {"type": "chunks", "t": 0, "pid": os.getpid(), "device": "CPU:0", "cost_us": 0, "wanted": []}
    copied = direct.cut(CPU, 0, sheet)
    return copied and {**told, **copied}

def tell(**what):
    print(json.dumps(what), flush=True)
    sys.stdin.readline()

windows = NativeWindows(native.library)
limits = Limits(steps=0, seconds=60.0, allocations=1000, events=1000, size=8 << 20, pause_s=0.001)
windows.start(os.path.join(sys.argv[4], f"{os.getpid()}.1.window"), [(CPU, 0)], "", limits)
windows.end(BY_STEP)
while windows.progress().running:
    pass
tell(before=before, untouched=untouched, checked=checked, readings=readings(), chunks=cut(),
     window=windows.progress().bytes)

# Six threads allocate, this one reads: what is read is of one moment, or not told.
working = True
def work():
    held = []
    while working:
        held.append(tf.raw_ops.Empty(shape=[random.randrange(1, 1 << 16)], dtype=tf.uint8, init=False))
        if len(held) > 100:
            del held[random.randrange(len(held))]
threads = [threading.Thread(target=work) for _ in range(6)]
for thread in threads:
    thread.start()
wrong = still = 0
for number in range(5000):
    now = direct.take(CPU, 0).reading
    wrong += not 0 <= now.in_use <= now.peak <= now.limit or not now.in_use <= now.pool <= now.peak_pool
    if number % 20 == 0:
        still += cut() is not None
working = False
for thread in threads:
    thread.join()
tell(wrong=wrong, still=still, readings=readings())
"""


def test_each_figure_is_that_of_the_library_and_of_tensorflow(forked_bare: Fork, library: Path, tmp_path: Path) -> None:
    process = forked_bare(BOTH, str(ROOT), str(library), str(checksum_of(library.read_bytes())), str(tmp_path))
    told: dict[str, Any] = json.loads(process.stdout.readline())
    # Before the script has initialised its devices there is nothing, and nothing is made.
    assert told["before"] == [False, None, 0, False, False] and told["untouched"]
    assert told["checked"] == [True, True]
    direct, native, public = told["readings"]
    assert direct == native and direct[1:3] == public and direct[0] == "bfc_cpu_allocator_for_gpu"

    chunks = msgspec.convert(told["chunks"], events.Chunks)
    pieces, starts = read_chunks(tmp_path, chunks)
    window = read_window(tmp_path, file_name(process.pid, 1), told["window"])
    by_lock = sorted((chunk.address, chunk.size, chunk.requested) for chunk in window.chunks)
    assert [piece[:3] for piece in pieces if piece.in_use] == by_lock, "as copied while TensorFlow's lock was held"
    assert sum(piece.size for piece in pieces) == chunks.pool == window.pools[0].pool == direct[3]
    whole = condense(1, "CPU:0", pieces, starts)
    check_map(whole)
    assert whole.in_use == direct[1] and whole.chunks > 2000 and 0 < whole.fragmentation < 1
    largest = max(whole.regions, key=lambda region: region.size)
    zoomed = condense(1, "CPU:0", pieces, starts, only=largest.address)
    check_map(zoomed)
    assert [region.cells for region in zoomed.regions if region.cells] == [2048]
    # Chunks give no map if they are not of one moment, are cut short, or have another layout.
    for change in (
        {"in_use": chunks.in_use + 256},
        {"pool": chunks.pool - 256},
        {"chunks": (chunks.chunks[0] // 2, *chunks.chunks[1:])},
        {"chunks": (chunks.chunks[0], chunks.chunks[1], chunks.chunks[2] + 8, 0)},
        {"regions": (chunks.regions[0] - 1, *chunks.regions[1:])},
        {"regions": (1 << 40, *chunks.regions[1:])},
        {"chunk": (8, 0, 48)},
        {"chunk": (8, 16, 1 << 40)},
    ):
        with pytest.raises(ValueError):
            read_chunks(tmp_path, msgspec.structs.replace(chunks, **change))

    typed(process)
    told = json.loads(process.stdout.readline())
    direct, native, public = told["readings"]
    assert direct == native and direct[1:3] == public
    assert told["wrong"] == 0 and told["still"] > 0
    assert outcome(process, "\n").code == 0


AWKWARD = """
import ctypes, os, struct, sys
import tensorflow as tf
if "filter" in sys.argv:
    # As a sandbox does: a process that calls process_vm_readv is ended.
    number = {"x86_64": 310, "aarch64": 270}[os.uname().machine]
    code = b"".join(struct.pack("HBBI", *step) for step in (
        (0x20, 0, 0, 0), (0x15, 0, 1, number), (0x06, 0, 0, 0x80000000), (0x06, 0, 0, 0x7FFF0000)))
    class Program(ctypes.Structure):
        _fields_ = [("length", ctypes.c_ushort), ("steps", ctypes.c_char_p)]
    libc = ctypes.CDLL(None)
    assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, ctypes.byref(Program(4, code)), 0, 0) == 0
if "no room" in sys.argv:
    import resource, signal
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
kept = [tf.zeros([1 << 10]) for _ in range(2000)]
print(tf.config.experimental.get_memory_info("CPU:0")["current"], flush=True)
sys.stdin.readline()
"""


@pytest.mark.parametrize("how", ["filter", "no room"])
def test_awkward_circumstances(monitor: Monitor, forked: Fork, tmp_path: Path, how: str) -> None:
    dumps = tmp_path / "dumps"
    dumps.mkdir()
    process = forked(AWKWARD, how)
    held = int(process.stdout.readline())
    reading = monitor.wait_for(lambda event: event["type"] == "allocator" and event["in_use"] == held)
    assert reading["pool"] >= held and reading["limit"] == 512 * MIB
    monitor.say(process.pid, {"do": "maps", "wanted": [[None, None, 0.001]]})
    if how == "no room":
        told = monitor.wait_for(lambda event: event["type"] == "memory_map")
        assert (told["mapless"], told["detail"]) == ("no_room", "File too large")
        assert not list(dumps.iterdir())
    else:
        put_down = monitor.wait_for(lambda event: event["type"] == "chunks")
        pieces, _ = read_chunks(dumps, msgspec.convert({**put_down, "t": 0.0}, events.Chunks))
        assert sum(piece.size for piece in pieces if piece.in_use) == held == put_down["in_use"]
    ended = outcome(process, "\n")
    assert ended.code == 0 and ended.out == ""
    assert {event["pid"] for event in monitor.events} == {process.pid}


TABLES = {
    "no row for this version": ({}, "layout_unknown"),
    "other figures": ({"peak": 24}, "disagrees"),
    "places in no order": ({"peak": 0}, "no order"),
    "no such place": ({"name": 1 << 50}, "'name'"),
    "other regions": ({"region_bytes": 0}, "'regions'"),
}
"""Wrong layouts: the places that differ, and a part of the error message for each."""

CHECKED = """
import json, os, sys
sys.path.insert(0, sys.argv[1])
import tensorflow as tf
from tfmemtop.agent import layouts
from tfmemtop.agent.layouts import Reading
from tfmemtop.agent.direct import Direct
from tfmemtop.agent.trust import CPU, NotTrusted

kept = tf.zeros([1 << 20])

def public():
    info = tf.config.experimental.get_memory_info("CPU:0")
    return Reading(info["current"], info["peak"])

for name, (places, _) in json.loads(sys.argv[2]).items():
    row = ".".join(tf.__version__.split(".")[:2])
    right = layouts.LAYOUTS.pop(row)
    if places:
        layouts.LAYOUTS[row] = right._replace(**places)
    try:
        direct = Direct(os.path.dirname(tf.__file__), tf.__version__)
        direct.check(CPU, 0, public) or direct.check(CPU, 0, public)
        print(name, direct.check(CPU, 0, public), sep=": ")
    except NotTrusted as error:
        print(name, error, sep=": ")
    layouts.LAYOUTS[row] = right
for place, further in (("name", 0), ("environment", 8), ("limit", 8), ("retries", 1)):
    layouts.LAYOUTS[row] = right._replace(**{place: getattr(right, place) + further})
    print(Direct(os.path.dirname(tf.__file__), tf.__version__).shows_waits(CPU, 0))
layouts.LAYOUTS[row] = right._replace(region_bytes=0)
direct = Direct(os.path.dirname(tf.__file__), tf.__version__)
print(direct.check(CPU, 0, public), end=" ")  # as if the pool just became larger
direct._layout = direct._allocators._layout = layouts.LAYOUTS[row] = right
print(direct.check(CPU, 0, public))
print(Direct(os.path.dirname(tf.__file__), tf.__version__).check(CPU, 0, public))
"""


CHANGING = """
import json, os, sys
sys.path.insert(0, sys.argv[1])
import tensorflow as tf
from tfmemtop.agent.direct import Direct
from tfmemtop.agent.trust import CPU

kept, left = [tf.zeros([1 << 20])], 0

def copy(*where):
    global left
    copied = plain(*where)
    if left:
        left -= 1
        kept.append(tf.zeros([1 << 20]))
    return copied

direct = Direct(os.path.dirname(tf.__file__), tf.__version__)
plain, direct._memory.copy = direct._memory.copy, copy
direct.take(CPU, 0)  # finds the pool; after that, each copy is one of the figures
found = []
for changes in (0, 1, 2):
    left = changes
    reading = direct.take(CPU, 0).reading
    public = tf.config.experimental.get_memory_info("CPU:0")
    found.append([left, reading.in_use, public["current"]])
print(json.dumps(found))
"""


def test_a_pool_that_changes_while_it_is_read_is_read_again(forked_bare: Fork) -> None:
    done = outcome(forked_bare(CHANGING, str(ROOT)))
    assert done.code == 0, done.err
    found = json.loads(done.out)
    assert [left for left, _, _ in found] == [0, 0, 0]
    assert all(in_use == public for _, in_use, public in found), found
    assert found[0][1] < found[1][1] < found[2][1]


def test_tables_that_do_not_fit_are_not_believed(forked_bare: Fork) -> None:
    done = outcome(forked_bare(CHECKED, str(ROOT), json.dumps(TABLES)))
    assert done.code == 0, done.err
    *told, waits, environment_elsewhere, limit_elsewhere, retries_elsewhere, later, right = done.out.splitlines()
    assert right == waits == "True" and later == "False True" and len(told) == len(TABLES)
    assert environment_elsewhere == limit_elsewhere == retries_elsewhere == "False"
    for (name, (_, expected)), line in zip(TABLES.items(), told, strict=True):
        assert line.startswith(f"{name}: ") and expected in line, line


def test_the_user_is_told_the_versions_that_the_table_has() -> None:
    first, *_, last = LAYOUTS
    assert f"{first} to {last}" == KNOWN
    assert layout_of("2.22.0-rc0") is not None
    assert [layout_of(version) for version in ("2.15.1", "2.23.0", "2.2.0", "unknown")] == [None] * 4
