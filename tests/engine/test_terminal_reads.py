"""A script that waits for input is reported as waiting, whatever it reads with. Any other script is not."""

import platform
from pathlib import Path

import pytest

from tests.engines import Engines
from tfmemtop.events import Input, ProcessReadings, RunEnd, TerminalRead


def _kernel_tells() -> bool:
    try:
        return bool(Path("/proc/self/syscall").read_bytes()) and platform.machine() in ("x86_64", "aarch64")
    except OSError:
        return False


pytestmark = pytest.mark.skipif(not _kernel_tells(), reason="the kernel does not tell in which call a process is")


@pytest.mark.parametrize(
    "asks",
    [
        "import getpass; answer = getpass.getpass('name? ')",
        "import subprocess; answer = subprocess.check_output(['sh', '-c', 'printf name?\\ >&2; read x; echo $x'])",
    ],
    ids=["getpass", "child"],
)
async def test_a_script_that_waits_for_input_is_said_to_until_it_has_it(engines: Engines, asks: str) -> None:
    screen = await engines.python(f"import time; {asks}; print('got', answer, flush=True); time.sleep(600)")
    await screen.until_shown("name? ")
    waits = await screen.until(TerminalRead, lambda event: event.pid is not None)
    assert waits.run == 1
    await screen.client.send(Input(text="Ada\r"))
    await screen.until_shown("got")
    await screen.until(TerminalRead, lambda event: event.pid is None)


async def test_one_that_sleeps_or_reads_a_pipe_is_not_said_to_wait_for_input(engines: Engines) -> None:
    screen = await engines.python(
        "import os, threading, time\nprint('up')\nif not os.fork():\n    os.read(os.pipe()[0], 1)\ntime.sleep(600)"
    )
    await screen.until_shown("up")
    before = len(screen.all(ProcessReadings))
    await screen.until(ProcessReadings, lambda _: len(screen.all(ProcessReadings)) >= before + 3)
    assert screen.all(TerminalRead) == [] and screen.all(RunEnd) == []
