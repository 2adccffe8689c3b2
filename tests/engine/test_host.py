"""Which processes belong to the run."""

import os
import subprocess
from collections.abc import Iterator

import pytest

from tfmemtop.boot import KEEPER
from tfmemtop.engine.process.launch import INJECT
from tfmemtop.engine.sources.host import Host, Sweep

pytestmark = pytest.mark.programs


@pytest.fixture
def becoming() -> Iterator["subprocess.Popen[str]"]:
    """Start a process with a child. After it has read a line on its stdin, it takes the keeper's name."""
    source = f"sleep 600 & echo $!; read line; exec -a {KEEPER} sh -c 'echo named; read line'"
    pipe = subprocess.PIPE
    process = subprocess.Popen(["bash", "-c", source], stdin=pipe, stdout=pipe, text=True, start_new_session=True)
    yield process
    os.killpg(process.pid, 9)
    process.communicate()


@pytest.fixture
def other() -> Iterator["subprocess.Popen[bytes]"]:
    """Start a process that stands for a kernel."""
    process = subprocess.Popen(["sleep", "600"])
    yield process
    process.kill()
    process.wait()


def test_a_kernel_that_was_there_before_its_run_belongs_to_the_run(other: "subprocess.Popen[bytes]") -> None:
    """The GPUs are asked for before a run with a memory limit begins, and with them the processes are looked at."""
    host = Host(1 << 22, INJECT, member=other.pid)  # no process descends from this root
    assert other.pid not in host.sweep((), 0, frozenset()).shown
    found = host.sweep((), 1, frozenset()).shown
    assert found[other.pid].run == 1


def _sweep(host: Host) -> Sweep:
    return host.sweep((), 1, frozenset())


def test_a_keeper_found_before_it_had_its_name_is_dropped_with_its_engine(becoming: "subprocess.Popen[str]") -> None:
    """This happens when Jupyter is watched: it starts kernels that are sessions of their own."""
    assert becoming.stdin is not None and becoming.stdout is not None
    engine = int(becoming.stdout.readline())
    host = Host(os.getpid(), INJECT)
    assert {becoming.pid, engine} <= _sweep(host).shown.keys()
    becoming.stdin.write("\n")
    becoming.stdin.flush()
    assert becoming.stdout.readline() == "named\n"
    after = _sweep(host)
    assert {becoming.pid, engine} <= set(after.gone)
    assert not {becoming.pid, engine} & after.shown.keys()
    assert KEEPER not in {word for process in after.processes for word in process.command}
    assert not {becoming.pid, engine} & _sweep(host).shown.keys()
