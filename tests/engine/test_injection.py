"""The hook is put into a process that runs already: by the mechanism of Python 3.14, on request, and without harm."""

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engines import Engines, Screen, ended, eventually
from tests.newer_python import Obeying, has_tensorflow, needs_it
from tfmemtop.engine.sources.outside.injection import Injection as Attempt
from tfmemtop.engine.sources.outside.injection import Unfit, unfit
from tfmemtop.events import (
    Allocator,
    Census,
    CensusNow,
    Effective,
    Functions,
    Holders,
    HoldersNow,
    Hook,
    HookError,
    Injection,
    InjectionState,
    Outside,
    OutsideState,
    Probe,
    ProbeState,
    Requested,
    RunEnd,
)
from tfmemtop.findings.probe import probe_text

pytestmark = pytest.mark.programs

S = InjectionState


@pytest.fixture
def target() -> Iterator[Obeying]:
    found = Obeying()
    yield found
    found.close()


def left_of(pid: int) -> list[Path]:
    """Return the files of tfmemtop for that process that are still in /tmp."""
    return list(Path("/tmp").glob(f"tfmemtop-inject-*-{pid}-*"))


async def state(screen: Screen, wanted: InjectionState) -> Injection:
    return await screen.until(Injection, lambda one: one.state is wanted)


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="this Python lets others in")
def test_an_older_python_is_refused() -> None:
    target = Obeying(python=sys.executable)
    try:
        assert unfit(target.pid) == Unfit(S.OLD_PYTHON, "{}.{}".format(*sys.version_info))
    finally:
        target.close()


def test_what_is_no_python_is_refused() -> None:
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdin is not None and other.stdout is not None
        other.stdin.write(b".")
        other.stdin.flush()
        assert other.stdout.read(1) == b"."
        assert unfit(other.pid) == Unfit(S.NOT_PYTHON, Path(f"/proc/{other.pid}/exe").readlink().name)
        other.stdin.close()


def test_what_a_killed_engine_left_for_a_process_that_has_ended_is_deleted() -> None:
    with subprocess.Popen(["true"]) as over:
        pass
    prefix = f"tfmemtop-inject-{Path('/proc/self/ns/pid').stat().st_ino}-"
    left, kept = (Path(tempfile.mkdtemp(prefix=f"{prefix}{pid}-", dir="/tmp")) for pid in (over.pid, os.getpid()))
    found = asyncio.run(Attempt(over.pid, {}).ask())
    assert found is not None, "that process has ended"
    assert (left.exists(), kept.exists()) == (False, True)
    kept.rmdir()


@pytest.mark.skipif(os.getuid() != 0, reason="only root can start a process of another user")
@needs_it
def test_another_user_s_process_is_refused_also_to_root(target: Obeying) -> None:
    target.do("os.setresuid(65534, 65534, 65534)")
    assert unfit(target.pid) == Unfit(S.OTHER_USER)


@needs_it
@pytest.mark.parametrize(
    ("options", "environment", "forbids"),
    [
        (("-X", "disable-remote-debug"), {}, True),
        (("-Xdisable-remote-debug",), {}, True),
        ((), {"PYTHON_DISABLE_REMOTE_DEBUG": "1"}, True),
        (("-X", "utf8"), {}, False),
    ],
)
def test_one_that_was_told_to_let_nobody_in_is_refused(
    options: tuple[str, ...], environment: dict[str, str], forbids: bool
) -> None:
    target = Obeying(*options, **environment)
    try:
        assert unfit(target.pid) == (Unfit(S.DISABLED) if forbids else None)
    finally:
        target.close()


@needs_it
async def test_it_arrives_when_a_long_call_is_over_serves_one_and_then_the_next(
    engines: Engines, target: Obeying
) -> None:
    modules = set(target.do("sorted(sys.modules)"))
    first = await engines.run(attach=target.pid, inject=True)
    await state(first, S.ASKED)
    assert not first.all(Hook) and left_of(target.pid)
    target.do("1")
    assert (await first.until(Hook)).python.startswith("3.")
    await state(first, S.ARRIVED)
    assert (await first.until(Outside, lambda one: one.state is OutsideState.HOOKED)).pid == target.pid
    await eventually(lambda: not left_of(target.pid))
    # The environment, which children inherit, and sys.modules contain nothing of tfmemtop. Only Python's own modules
    # may be new.
    assert target.do("[name for name in os.environ if 'TFMEMTOP' in name]") == []
    assert not [name for name in set(target.do("sorted(sys.modules)")) - modules if "tfm" in name or "custom" in name]

    second = await engines.run(attach=target.pid, inject=True)
    await state(second, S.ASKED)
    target.do("2")
    await state(second, S.ALREADY)

    engine = pid_of(first)
    os.kill(engine, signal.SIGKILL)
    await ended(engine)
    third = await engines.run(attach=target.pid, inject=True)
    await state(third, S.ASKED)
    target.do("3")
    await state(third, S.ARRIVED)
    assert not [error for screen in (first, second, third) for error in screen.all(HookError)]
    assert target.end() == (0, "")
    await third.until(RunEnd)


def pid_of(screen: Screen) -> int:
    """Return the pid of the engine."""
    sock = screen.client._writer.get_extra_info("socket")
    return int.from_bytes(sock.getsockopt(1, 17, 12)[:4], sys.byteorder)  # SOL_SOCKET, SO_PEERCRED


@needs_it
async def test_where_the_engine_has_gone_first_nothing_is_done_and_nothing_left(
    engines: Engines, target: Obeying
) -> None:
    screen = await engines.run(attach=target.pid, inject=True)
    await state(screen, S.ASKED)
    engine = pid_of(screen)
    os.kill(engine, signal.SIGKILL)
    await ended(engine)
    finders = target.do("len(sys.meta_path)")
    await eventually(lambda: target.do("1") == 1 and not left_of(target.pid))
    assert target.do("len(sys.meta_path)") == finders
    assert target.end() == (0, "")


@needs_it
async def test_what_the_script_has_replaced_is_not_called(engines: Engines, target: Obeying) -> None:
    target.do("import time; time.monotonic = lambda: 1 / 0")
    screen = await engines.run(attach=target.pid, inject=True)
    await state(screen, S.ASKED)
    target.do("1")
    assert (await state(screen, S.REPLACED)).detail == "time.monotonic"
    assert not screen.all(Hook)
    assert target.end() == (0, "")


@needs_it
async def test_no_thread_is_started_as_the_script_does_it(engines: Engines, target: Obeying) -> None:
    """gevent's own function would run it in the main thread, and the signals of that thread would stay blocked."""
    target.do("import _thread, signal; _thread.start_new_thread = lambda function, given: function(*given)")
    screen = await engines.run(attach=target.pid, inject=True)
    await state(screen, S.ASKED)
    target.do("1")
    assert (await state(screen, S.REPLACED)).detail == "_thread.start_new_thread"
    assert target.do("len(signal.pthread_sigmask(signal.SIG_BLOCK, []))") == 0
    assert not screen.all(Hook) and target.end() == (0, "")


@needs_it
async def test_a_script_that_forbids_it_goes_on(engines: Engines, target: Obeying) -> None:
    target.do("def forbid(event, _): assert event != 'cpython.remote_debugger_script', 'not here'")
    target.do("sys.addaudithook(forbid)")
    screen = await engines.run(attach=target.pid, inject=True)
    await state(screen, S.ASKED)
    assert target.do("1") == 1
    code, said = target.end()
    await screen.until(RunEnd)
    assert not screen.all(Hook) and code == 0 and "not here" in said  # Python itself prints this
    await eventually(lambda: not left_of(target.pid))


SETUP = (
    "import tensorflow as tf",
    "tf.config.set_logical_device_configuration(tf.config.list_physical_devices('CPU')[0], "
    "[tf.config.LogicalDeviceConfiguration()])",
    "weights, rate = tf.Variable(tf.ones([256, 1024]), name='weights'), tf.Variable(0.5, name='rate')",
    "def step(): weights.assign_sub(rate * tf.matmul(tf.ones([256, 256]), weights))",
    "step = tf.function(step)",
    "[step() for _ in range(3)] and None",
    "kept = tf.ones([300, 300])",
)


@needs_it
@pytest.mark.tensorflow
@pytest.mark.skipif(not has_tensorflow(), reason="that Python has no TensorFlow")
async def test_what_was_made_before_is_known_and_figures_are_the_script_s_own(engines: Engines) -> None:
    target = Obeying(TF_CPU_ALLOCATOR_USE_BFC="true", TF_CPU_BFC_MEM_LIMIT_IN_MB="256")
    try:
        for line in SETUP:
            target.do(line)
        screen = await engines.run(attach=target.pid, inject=True)
        await state(screen, S.ASKED)
        assert not screen.all(Hook) and (await screen.until(Allocator)).in_use  # from outside, until the hook arrives
        target.do("1")
        await state(screen, S.ARRIVED)
        assert (await screen.until(Effective, lambda one: one.limit is not None)).limit == 256 << 20
        assert (await screen.until(Requested)).devices == ["CPU:0"]
        census = await screen.until(Census)
        assert {("weights", 1 << 20), ("rate", 4)} <= {(one.name, one.bytes) for one in census.largest}
        counted = await screen.until(Functions)
        assert [(one.name, one.calls) for one in counted.functions if one.name == "step"] == [("step", 3)]

        figures = target.do("tf.config.experimental.get_memory_info('CPU:0')")
        now = len(screen.all(Allocator))
        reading = await screen.until(Allocator, lambda one: one in screen.all(Allocator)[now:])
        assert (reading.in_use, reading.peak) == (figures["current"], figures["peak"])

        await screen.client.send(CensusNow(pid=target.pid, tensors=True))
        look = await screen.until(Census, lambda one: bool(one.tensors))
        assert ("tensors", 360_000) in {(one.kind, one.bytes) for one in look.largest}

        probe = await screen.until(
            Probe, lambda one: one.state in (ProbeState.LOADED, ProbeState.UNAVAILABLE, ProbeState.FAILED)
        )
        if probe.state is not ProbeState.LOADED:
            pytest.skip(f"windows need the probe: {probe_text(probe)}")
        await screen.client.send(HoldersNow(pid=target.pid))
        window = asyncio.ensure_future(screen.until(Holders))
        while not window.done():
            await asyncio.to_thread(target.do, "[step() for _ in range(20)] and None")
            await asyncio.sleep(0.01)
        assert not (await window).is_missing and (await window).peak
        assert not screen.all(HookError)
        code, said = target.end()
        assert code == 0 and "Exception" not in said
        await screen.until(RunEnd)
        states = [one.state for one in screen.all(Outside)]
        assert states[states.index(OutsideState.HOOKED) :] == [OutsideState.HOOKED, OutsideState.GONE]
    finally:
        target.close()
