"""What else ends when a run is ended; the test runs in a process of its own."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.patience import PATIENCE_S
from tfmemtop.engine.sources.processes import is_alive

PROGRAM = """
import asyncio, os, subprocess
from tfmemtop.engine.process.ending import Ending
from tfmemtop.engine.process.launch import Launch
from tfmemtop.engine.process.run import Runs
from tfmemtop.engine.stream import Stream
from pathlib import Path

async def no_gpus():
    return []

stream = Stream()
launch = Launch(argv=[], cwd="/", environment={})
runs = Runs(stream, launch, hook_socket=Path("/none"))
sleep = ["sleep", "300"]
build, daemon = (subprocess.Popen(sleep, stdout=subprocess.DEVNULL, start_new_session=True) for _ in range(2))
ending = Ending(stream, runs, b"NOTHING=here", no_gpus, {build.pid})
asyncio.run(ending.end(5.0))
print(build.pid, daemon.pid)
build.returncode = daemon.returncode = 0
"""


@pytest.mark.programs
def test_what_is_built_beside_the_run_goes_on_and_daemons_do_not() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        stdout=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        text=True,
        check=True,
        timeout=PATIENCE_S,
    )
    build, daemon = map(int, done.stdout.split())
    try:
        assert Path(f"/proc/{build}/comm").read_text() == "sleep\n"
        assert not is_alive(daemon)
    finally:
        os.kill(build, signal.SIGKILL)
