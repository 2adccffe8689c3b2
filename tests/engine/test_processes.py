"""Processes: their figures are those that the programs are known to have, and those that belong to the run are found.

Processes of tfmemtop beside the script, such as the replay of its allocations, end in time.
"""

import asyncio
import hashlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from tfmemtop.engine.process.launch import INJECT
from tfmemtop.engine.sources.host import Host
from tfmemtop.engine.sources.processes import HostProcess, busy_percent, exit_code, find, is_alive, read_command
from tfmemtop.engine.sources.source import helper_output
from tfmemtop.units import MIB


def _compute(seconds: float) -> None:
    until = time.process_time() + seconds
    while time.process_time() < until:
        hashlib.sha256(bytes(100_000))


def test_processors_that_are_kept_busy_are() -> None:
    busy_percent()
    _compute(0.3)
    assert 0 < busy_percent() <= 100


def test_a_process_uses_the_cpu_and_the_memory_that_it_takes() -> None:
    process = find(os.getpid())
    assert process is not None and process.cpu is None
    before = process.rss
    taken = b"x" * (64 * MIB)
    _compute(0.3)
    assert process.refresh()
    assert process.cpu is not None and process.cpu > 0
    assert len(taken) <= process.rss - before <= len(taken) + 8 * MIB


@pytest.mark.programs
def test_a_zombie_has_ended_with_a_code_that_can_be_read() -> None:
    with subprocess.Popen([sys.executable, "-S", "-c", "raise SystemExit(7)"]) as program:
        process = HostProcess(program.pid)
        os.waitid(os.P_PID, program.pid, os.WEXITED | os.WNOWAIT)
        assert exit_code(program.pid) == 7
        assert not is_alive(program.pid) and not process.is_alive() and not process.refresh()
        assert find(program.pid) is None
    assert exit_code(program.pid) is None and not is_alive(program.pid)


@pytest.mark.programs
def test_a_command_line_is_text_whatever_bytes_it_has() -> None:
    words = [b"sh", b"-c", b"echo up; read line", b"1\xff"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout is not None and program.stdout.readline() == "up\n"
        assert read_command(program.pid) == ["sh", "-c", "echo up; read line", "1\ufffd"]
        program.kill()


@pytest.mark.programs
async def test_a_helper_that_nobody_waits_for_is_killed_even_before_it_is_read() -> None:
    for turns in range(4):  # of the event loop: the first start the process and open its pipe
        sessions: set[int] = set()
        waiting = asyncio.create_task(helper_output(["sleep", "600"], 600.0, sessions))
        await asyncio.sleep(0)
        for _ in range(turns):
            await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.wait([waiting])
        (pid,) = sessions
        _, status = await asyncio.to_thread(os.waitpid, pid, 0)
        assert os.WTERMSIG(status) == signal.SIGKILL and waiting.cancelled()


@pytest.mark.programs
async def test_helpers_that_have_ended_are_forgotten() -> None:
    sessions: set[int] = set()
    for _ in range(3):
        assert await helper_output(["echo", "done"], 600.0, sessions) == b"done\n"
        (pid,) = sessions
        await asyncio.to_thread(os.waitpid, pid, 0)


@pytest.fixture
def other() -> Iterator["subprocess.Popen[bytes]"]:
    """Start a process that stands for a kernel."""
    process = subprocess.Popen(["sleep", "600"])
    yield process
    process.kill()
    process.wait()


@pytest.mark.programs
def test_a_kernel_that_was_there_before_its_run_belongs_to_the_run(other: "subprocess.Popen[bytes]") -> None:
    """The GPUs are asked for before a run with a memory limit begins, and with them the processes are looked at."""
    host = Host(1 << 22, INJECT, member=other.pid)  # no process descends from this root
    assert other.pid not in host.sweep((), 0, frozenset()).shown
    found = host.sweep((), 1, frozenset()).shown
    assert found[other.pid].run == 1
