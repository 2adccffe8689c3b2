"""What ending a run ends, in a process of its own."""

import os
import signal
import subprocess
import sys
from pathlib import Path

from tfmemtop.engine.procfs import read_stat

PROGRAM = """
import asyncio, os, subprocess
from tfmemtop.engine.ending import Ending
from tfmemtop.engine.launch import Launch
from tfmemtop.engine.run import Runs
from tfmemtop.engine.stream import Stream
from pathlib import Path

async def no_gpus():
    return []

stream = Stream()
launch = Launch(argv=[], cwd="/", environment={})
runs = Runs(stream, launch, hook_socket=Path("/none"), terminal=None)
ending = Ending(stream, runs, no_gpus)
sleep = ["sleep", "300"]
build, daemon = (subprocess.Popen(sleep, stdout=subprocess.DEVNULL, start_new_session=True) for _ in range(2))
ending.apart = {build.pid}
asyncio.run(ending.end(5.0))
print(build.pid, daemon.pid)
build.returncode = daemon.returncode = 0
"""


def test_what_is_built_beside_the_run_goes_on_and_daemons_do_not() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        stdout=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        text=True,
        check=True,
        timeout=30,
    )
    build, daemon = map(int, done.stdout.split())
    try:
        assert Path(f"/proc/{build}/comm").read_text() == "sleep\n"
        left = read_stat(daemon)
        assert left is None or left.zombie
    finally:
        os.kill(build, signal.SIGKILL)
