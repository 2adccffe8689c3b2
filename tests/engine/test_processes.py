"""The figures of processes and of the machine are those that the programs are known to have."""

import hashlib
import os
import subprocess
import sys
import time

import pytest

from tfmemtop.engine.sources.processes import HostProcess, busy_percent, exit_code, find, is_alive, read_command
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
