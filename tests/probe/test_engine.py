"""From a typed command to figures of the pool: the engine has the probe built and sends it to the hook."""

import asyncio
import os
import resource
import socket
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from tests.engines import Engines
from tests.hooked import Script
from tests.limited import limited
from tests.own_sessions import own_sessions
from tests.patience import PATIENCE_S
from tests.probe.cached import LOADING, Compiler, speaker
from tfmemtop import events
from tfmemtop.engine.sources.hooks import Hooks
from tfmemtop.engine.sources.probes import Probes
from tfmemtop.engine.stream import Stream
from tfmemtop.engine.stream.folders import listen
from tfmemtop.events.allocations import WindowAllocations, unpack
from tfmemtop.events.recording import read
from tfmemtop.findings.probe import probe_text

POOL = {"TF_CPU_ALLOCATOR_USE_BFC": "true", "TF_CPU_BFC_MEM_LIMIT_IN_MB": "512", "TF_CPP_MIN_LOG_LEVEL": "3"}
MIB = 1 << 20

TRAINING = """
import tensorflow as tf
kept = [tf.zeros([1 << 20])]
input()
kept.append(tf.zeros([16 << 20]))
print("grown", flush=True)
input()
"""


async def test_a_run_has_its_pools_looked_into(engines: Engines, script: Script, library: Path, tmp_path: Path) -> None:
    recording = tmp_path / "run.jsonl"
    screen = await engines.run(
        sys.executable, script(TRAINING), environment={**os.environ, **POOL}, record=str(recording)
    )
    probe = await screen.until(events.Probe, lambda probe: probe.state is events.ProbeState.LOADED)
    # The devices, and with them the pool, exist before the first tensor.
    reading = await screen.until(events.Allocator, lambda reading: reading.t > probe.t and bool(reading.allocations))
    assert reading.limit == 512 * MIB and reading.high is not None
    before = reading.t
    await screen.client.send(events.Input(text="\n"))
    await screen.until_shown("grown")
    # The pool's growth for the first tensor may have been reported, too.
    growth = await screen.until(events.PoolGrowth, _is_large)
    assert before <= growth.at <= growth.t
    # Without a request, a map is recorded once a second; on request, more often.
    found = await screen.until(events.MemoryMap, lambda found: found.pool == growth.after)
    assert found.pace_s is not None and found.pace_s >= 1.0 and found.cells
    await screen.client.send(
        events.MapWanted(pid=reading.pid, device="CPU:0", pace_s=0.1, region=found.regions[0].address)
    )
    zoomed = await screen.until(events.MemoryMap, lambda found: found.region is not None)
    assert zoomed.pace_s is not None and zoomed.pace_s < 1.0

    late = await engines.look(own_sessions()[0].socket)
    assert (await late.until(events.Probe, lambda probe: probe.of_library)) == probe
    assert (await late.until(events.PoolGrowth, _is_large)) == growth
    await late.until(events.MemoryMap)

    # The processes of the build and the trial are not processes of the script. The script's own is a copy of the engine
    # until it has become the script.
    shown = {process.pid: process.command for process in screen.all(events.Process)}
    assert screen.all(events.Hook)[-1].pid in shown
    assert not [command for command in shown.values() if any(word.startswith("tfmemtop.") for word in command)]
    await screen.client.send(events.Stop(quit=True))
    await screen.until_closed()
    assert not screen.all(events.HookError)
    kept = list(read(recording).events())
    assert any(isinstance(event, events.MemoryMap) and event.cells for event in kept)
    assert growth in kept


def _is_large(growth: events.PoolGrowth) -> bool:
    return growth.after - growth.before >= 64 * MIB


async def test_a_build_is_told_and_waited_for_by_nobody(
    engines: Engines, script: Script, library: Path, tmp_path: Path, tensorflow: tuple[Path, str]
) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    compiler = Compiler(tmp_path, library, gate=gate)
    os.environ["CXX"] = compiler.variables["CXX"]
    try:
        screen = await engines.run(sys.executable, script(TRAINING), environment={**os.environ, **POOL})
        other = await engines.run(*speaker(tensorflow, LOADING + "tell(type='probe', state='loaded')"))
    finally:
        del os.environ["CXX"]
    assert "being built" in probe_text(await screen.until(events.Probe))
    began = await screen.until(
        events.Allocator, lambda reading: bool(reading.pool)
    )  # meanwhile the pool is read in place
    await screen.client.send(events.Input(text="\n"))
    await screen.until_shown("grown")
    gate.write_text("on\n")
    loaded = await screen.until(events.Probe, lambda probe: probe.state is events.ProbeState.LOADED)
    await other.until(events.Probe, lambda probe: probe.state is events.ProbeState.LOADED)
    lost = await screen.until(events.Notice, lambda notice: notice.kind is events.NoticeKind.NO_ADDRESSES)
    assert "Tensor has no data" in lost.detail
    await screen.client.send(events.Input(text="\n"))
    assert (await screen.until(events.RunEnd)).exit_code == 0
    (found,) = [
        found for found in screen.all(events.Holders) if found.opened is events.Opened.START and not found.phase
    ]
    assert found.peak >= 68 * MIB
    if loaded.t - began.t < 20:  # TensorFlow keeps its records for 30 s
        kinds = unpack(found.packed, WindowAllocations).kinds
        assert all(kind.operation is not None for kind in kinds if kind.size >= MIB), "what was made during the build"
        assert found.before == 0


async def test_a_build_that_could_not_be_started_is_told_and_tried_again(tmp_path: Path) -> None:
    stream, told = Stream(), asyncio.Queue[events.Probe]()
    with closing(listen(tmp_path / "hook.sock", socket.SOCK_SEQPACKET)) as listener:
        probes = Probes(stream, Hooks(stream, listener), set())
        probes.begin()
        stream.listen(lambda event: told.put_nowait(event) if isinstance(event, events.Probe) else None)
        with closing(probes):
            with no_more_files():
                stream.publish(_hook(os.getpid()))
                first = await asyncio.wait_for(told.get(), PATIENCE_S)
            assert probe_text(first) == "the probe could not be built: Too many open files"
            stream.publish(_hook(os.getppid()))
            while (second := await asyncio.wait_for(told.get(), PATIENCE_S)).state is events.ProbeState.BUILDING:
                pass
            assert second.unbuilt is not None and second.unbuilt.why is events.Unbuildable.NO_FRAMEWORK


def _hook(pid: int) -> events.Hook:
    return events.Hook(t=0.0, pid=pid, ppid=1, argv=[], python="3.12", executable="python", tensorflow_path="/nowhere")


@contextmanager
def no_more_files() -> Iterator[None]:
    """During the ``with`` block, this process can open no file, and so start no process."""
    free = os.dup(0)
    os.close(free)
    with limited(resource.RLIMIT_NOFILE, free):
        yield
