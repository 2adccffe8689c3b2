"""When the engine ends, and what ends together with it or with a run."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests.engines import READS, Engines, ended
from tests.own_sessions import own_sessions
from tests.patience import PATIENCE_S
from tfmemtop.engine.process.launch import Launched
from tfmemtop.engine.sources.processes import is_alive
from tfmemtop.engine.stream.server import connect
from tfmemtop.events import Input, ProcessReadings, Run, RunEnd, Stop


async def test_it_ends_when_the_run_has_ended_and_nobody_looks(engines: Engines) -> None:
    launched = engines.launch("echo", "kept")
    (session,) = own_sessions()
    screen = await engines.look(launched.socket)
    await screen.until(RunEnd)
    await screen.client.close()
    await ended(session.pid)
    assert not _exists(Path(launched.socket).parent)
    assert own_sessions() == []
    assert _text(launched) == "kept\r\n"


async def test_a_run_that_ended_unseen_can_still_be_looked_at(engines: Engines) -> None:
    reading, writing = os.pipe()
    os.set_inheritable(writing, True)
    launched = engines.launch(sys.executable, "-c", "print('unseen')")
    os.close(writing)
    # The pipe's end is read when the script, which alone still holds the other end, has ended.
    assert await asyncio.to_thread(os.read, reading, 1) == b""
    os.close(reading)
    screen = await engines.look(launched.socket)
    await screen.until(RunEnd)
    assert screen.shown == "unseen\r\n"


async def test_quit_ends_run_engine_and_connection(engines: Engines) -> None:
    launched = engines.launch(sys.executable, "-u", "-c", READS)
    (session,) = own_sessions()
    screen = await engines.look(launched.socket)
    await screen.until_shown("up")
    run = await screen.until(Run)
    await screen.client.send(Stop(quit=True))
    await screen.until_closed()
    assert screen.all(RunEnd)[0].signal == signal.SIGTERM
    await ended(session.pid)
    assert not psutil.pid_exists(run.pid)
    with pytest.raises(OSError, match="No such file"):
        await connect(launched.socket)


async def test_term_to_the_engine_ends_the_script_too(engines: Engines) -> None:
    screen = await engines.python(READS)
    await screen.until_shown("up")
    os.kill(own_sessions()[0].pid, signal.SIGTERM)
    assert (await screen.until(RunEnd)).signal == signal.SIGTERM
    await screen.until_closed()


async def test_a_hangup_does_not_end_it(engines: Engines) -> None:
    screen = await engines.python(READS)
    await screen.until_shown("up")
    os.kill(own_sessions()[0].pid, signal.SIGHUP)
    await screen.client.send(Input(text="on\n"))
    await screen.until_shown("got on")


async def test_watching_alone_ends_with_its_last_reader(engines: Engines) -> None:
    launched = engines.launch()
    (session,) = own_sessions()
    screen = await engines.look(launched.socket)
    readings = await screen.until(ProcessReadings)
    assert readings.processes == []
    assert readings.host_used
    await screen.client.close()
    await ended(session.pid)


async def test_what_a_dead_engine_left_is_cleaned_up(engines: Engines) -> None:
    launched = engines.launch(sys.executable, "-u", "-c", READS)
    (session,) = own_sessions()
    os.kill(session.pid, signal.SIGKILL)
    await ended(session.pid)
    assert _exists(Path(launched.socket))
    assert own_sessions() == []
    assert not _exists(Path(launched.socket).parent)


def _exists(path: Path) -> bool:
    return path.exists()


def _text(launched: Launched) -> str:
    assert launched.output_path
    return Path(launched.output_path).read_bytes().decode()


PROGRAM = """
import asyncio, os, subprocess
from tfmemtop.engine.process.ending import Ending
from tfmemtop.engine.process.launch import INJECT, Launch
from tfmemtop.engine.process.run import Runs
from tfmemtop.engine.sources.host import Host
from tfmemtop.engine.stream import Stream
from pathlib import Path

async def no_gpus():
    return []

stream = Stream()
launch = Launch(argv=[], cwd="/", environment={})
runs = Runs(stream, launch, hook_socket=Path("/none"))
sleep = ["sleep", "300"]
build, daemon = (subprocess.Popen(sleep, stdout=subprocess.DEVNULL, start_new_session=True) for _ in range(2))
host = Host(os.getpid(), INJECT, b"NOTHING=here")
ending = Ending(stream, runs, host, no_gpus, {build.pid})
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
