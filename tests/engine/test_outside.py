"""TensorFlow's pools read from outside: the figures must equal those of the real processes themselves to the byte."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engine.reporting import Reporting
from tests.engines import Engines, eventually
from tests.forked import Forking
from tfmemtop.engine.sources.outside.look import Look, cards_of
from tfmemtop.engine.sources.outside.remote import Mapped, MappedLibrary, Rights, in_the_way, version_of
from tfmemtop.events import (
    Allocator,
    Attach,
    Damage,
    Device,
    Effective,
    Hook,
    MapWanted,
    MemoryMap,
    Notice,
    NoticeKind,
    Outside,
    OutsideState,
    PoolGrowth,
    Process,
    Run,
    RunEnd,
)
from tfmemtop.events.damage import Damaged
from tfmemtop.events.recording import read

S = OutsideState
MIB = 1 << 20


@pytest.fixture(scope="module")
def trainings(tensorflow_bare: Forking) -> Iterator[list[Reporting]]:
    """Start two processes side by side, with pools of different limits. Both have made their devices."""
    found = [Reporting(limit, imported=tensorflow_bare) for limit in (96, 640)]
    for training in found:
        training.do("import")
        training.do("take 1048576")
    yield found
    for training in found:
        training.close()


def figures(look: Look) -> dict[str, int | None]:
    """Return the figures read from outside, under the names that the process itself uses."""
    [(name, found)] = look.read().values()
    assert name == "bfc_cpu_allocator_for_gpu"
    return {name: figure for name, figure in found._asdict().items() if name != "high"}


@pytest.mark.tensorflow
def test_all_figures_are_the_process_s_own_to_the_byte(trainings: list[Reporting]) -> None:
    looks = [Look(training.pid) for training in trainings]
    for look in looks:
        about = look.refresh()
        assert (about.state, about.detail) == (S.READING, "")
        assert about.tensorflow and Path(about.tensorflow_path or "").name == "tensorflow"
        assert about.python.startswith("3.")
    for step in ("take 3000000", "small 700", "free 3", "take 20000000", "free 2", "take 12345678"):
        for look, training in zip(looks, trainings, strict=True):
            training.do(step)
            assert figures(look) == training.do("figures"), step
    assert [training.do("figures")["limit"] for training in trainings] == [96 * MIB, 640 * MIB]


@pytest.mark.tensorflow
async def test_an_engine_reads_it_as_a_run_and_leaves_it_unharmed(
    engines: Engines, trainings: list[Reporting], tmp_path: Path
) -> None:
    training, path = trainings[1], tmp_path / "kept.jsonl"
    screen = await engines.run(attach=training.pid, record=str(path))
    run = await screen.until(Run)
    assert (run.pid, run.outside, Path(run.argv[1]).name) == (training.pid, True, "forking.py")
    told = await screen.until(Outside)
    assert told.state is S.READING and told.tensorflow
    now = training.do("figures")
    first = await screen.until(Allocator)
    assert {name: getattr(first, name) for name in now} == now and first.high is None
    assert (await screen.until(Process)).run == 1
    effective = await screen.until(Effective)
    assert (effective.growth, effective.limit, effective.allocator) == (True, None, "bfc")

    training.do("take 200000000")
    now = training.do("figures")
    growth = await screen.until(PoolGrowth)
    assert growth.after == now["pool"]
    await screen.until(Allocator, lambda one: one.in_use == now["in_use"] and one.peak == now["peak"])
    await screen.client.send(MapWanted(pid=training.pid, device="CPU:0", pace_s=0.2))
    found = await screen.until(MemoryMap, lambda one: one.pool == now["pool"])
    assert found.in_use == now["in_use"] and found.cells and not found.is_missing
    assert not screen.all(Hook)

    await screen.client.close()
    await eventually(lambda: not path.with_suffix(".lock").exists() and '"left"' in path.read_text())
    assert training.do("figures") == now
    events = list(read(path).events())
    assert [one.state for one in events if isinstance(one, Outside)] == [S.READING, S.LEFT]
    assert not any(isinstance(one, RunEnd) for one in events)


@pytest.mark.tensorflow
async def test_it_waits_for_devices_and_says_what_becomes_of_the_process(engines: Engines) -> None:
    training = Reporting(64)
    try:
        screen = await engines.run(attach=training.pid)
        await screen.until(Outside, lambda told: told.state is S.NO_TENSORFLOW)
        training.do("import")
        assert (await screen.until(Outside, lambda told: told.state is S.NO_DEVICES)).tensorflow
        training.do("take 1000")
        await screen.until(Outside, lambda told: told.state is S.READING)
        child = training.do("fork")["child"]
        os.kill(training.pid, signal.SIGSTOP)
        # The look that finds it stopped has found its child too.
        await screen.until(Outside, lambda told: told.state is S.STOPPED)
        os.kill(training.pid, signal.SIGCONT)
        training.close()
        gone = await screen.until(Outside, lambda told: told.state is S.GONE)
        assert gone.detail == str(child)
        end = await screen.until(RunEnd)
        assert (end.exit_code, end.signal) == (None, None)
        os.kill(child, signal.SIGKILL)
    finally:
        training.close()


async def test_a_program_that_it_becomes_is_another(engines: Engines) -> None:
    training = Reporting(64)
    screen = await engines.run(attach=training.pid)
    await screen.until(Outside, lambda told: told.state is S.NO_TENSORFLOW)
    training.do("exec")
    training.close()
    await screen.until(Outside, lambda told: told.state is S.GONE)


async def test_what_is_not_there_and_what_has_a_script_are_refused_in_one_line(engines: Engines) -> None:
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", "")
    await process.wait()
    assert (error := engines.launch(attach=process.pid).error) is not None
    assert str(process.pid) in error
    watching = await engines.run()
    await watching.client.send(Attach(pid=process.pid))
    await watching.until(Notice, lambda notice: notice.kind is NoticeKind.ATTACH_NO_PROCESS)
    running = await engines.python("input()")
    await running.client.send(Attach(pid=os.getpid()))
    await running.until(Notice, lambda notice: notice.kind is NoticeKind.ATTACH_BESIDE_SCRIPT)


async def test_a_process_that_is_read_already_begins_no_second_run(engines: Engines) -> None:
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", "")
    await process.wait()
    screen = await engines.run(attach=os.getpid())
    await screen.client.send(Attach(pid=os.getpid()))
    await screen.client.send(Attach(pid=process.pid))
    await screen.until(Notice, lambda notice: notice.kind is NoticeKind.ATTACH_NO_PROCESS)
    assert len(screen.all(Run)) == 1


@pytest.mark.programs
@pytest.mark.skipif(os.getuid() != 0, reason="only root can be another user")
def test_a_process_of_another_user_is_refused_with_what_helps() -> None:
    program = f"""
import os
from tfmemtop.engine.sources.outside.look import Look, cards_of
look = Look({os.getpid()})
os.setgroups([])
os.setresgid(65534, 65534, 65534)
os.setresuid(65534, 65534, 65534)
print(look.refresh().state.value)
"""
    done = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, check=True)
    assert done.stdout == "other_user\n"


@pytest.mark.parametrize(
    ("rights", "state"),
    [
        (Rights(1000, False, 0, 1001, False, True), S.OTHER_USER),
        (Rights(0, False, 0, 1001, False, True), S.NO_CAPABILITY),
        (Rights(1000, False, 1, 1000, False, True), S.ONLY_ANCESTORS),
        (Rights(1000, False, 2, 1000, True, True), S.ONLY_ROOT),
        (Rights(0, True, 3, 1000, False, True), S.NOBODY_MAY),
        (Rights(1000, False, 0, 1000, False, False), S.PROTECTED),
        (Rights(1000, False, 1, 1000, True, True), S.REFUSED),
    ],
)
def test_what_stands_in_the_way_is_named(rights: Rights, state: OutsideState) -> None:
    assert in_the_way(rights) is state


def test_a_version_is_read_from_the_package_that_installed_the_library(tmp_path: Path) -> None:
    file = tmp_path / "site-packages" / "tensorflow" / "libtensorflow_framework.so.2"
    file.parent.mkdir(parents=True)
    file.write_bytes(b"")
    versions = [version_of(file)]
    for name in ("tensorflow_datasets-4.9.9", "tensorflow-2.21.0", "tensorflow_cpu_aws-2.21.0", "tf_nightly-2.22.0"):
        (file.parents[1] / f"{name}.dist-info").mkdir()
        versions.append(version_of(file))
    assert versions == [None, None, "2.21.0", "2.21.0", None], "two versions are none"
    here = Mapped(0, str(file), file.stat().st_ino, False)
    assert here.file(os.getpid()) == Path(f"/proc/{os.getpid()}/root{file}")
    assert here._replace(inode=1).file(os.getpid()) is None
    assert here._replace(deleted=True).file(os.getpid()) is None


@pytest.mark.parametrize(
    ("content", "damage"),
    [
        (b"\x7fELF\1\1" + bytes(99), Damage.NOT_A_LIBRARY),
        (b"\x7fELF\2\1" + b"\xff" * 99, Damage.NO_SYMBOLS),
    ],
)
def test_what_is_no_library_is_refused(tmp_path: Path, content: bytes, damage: Damage) -> None:
    (tmp_path / "library.so").write_bytes(content)
    with pytest.raises(Damaged) as raised:
        MappedLibrary(tmp_path / "library.so", 0)
    assert raised.value.damage is damage


def card(index: int, name: str = "NVIDIA H100") -> Device:
    return Device(t=0.0, index=index, uuid=f"GPU-{index}", name=name, total=None, reserved=None)


@pytest.mark.parametrize(
    ("count", "held", "environment", "expected"),
    [
        (2, [1], {}, ["GPU-1", "GPU-1"]),
        (2, [0, 2], {"CUDA_VISIBLE_DEVICES": "2,0"}, ["GPU-2", "GPU-0"]),
        (2, [], {"CUDA_VISIBLE_DEVICES": "GPU-1,GPU-0"}, ["GPU-1", "GPU-0"]),
        (3, [0, 1], {"CUDA_VISIBLE_DEVICES": "0,1"}, []),
    ],
)
def test_an_allocator_s_card_is_told_only_where_there_is_no_doubt(
    count: int, held: list[int], environment: dict[str, str], expected: list[str]
) -> None:
    assert cards_of(count, [card(0), card(1), card(2)], held, environment) == expected


def test_of_unlike_cards_cuda_s_order_is_not_known() -> None:
    assert cards_of(2, [card(0), card(1, "NVIDIA T4")], [], {}) == []
    assert cards_of(2, [card(0), card(1, "NVIDIA T4")], [], {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}) == ["GPU-0", "GPU-1"]
