"""What happens to the script when its engine is killed, and which parents its processes have."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

from tests.engines import Engines, ended
from tests.own_sessions import own_sessions
from tfmemtop.engine.sources.processes import find
from tfmemtop.events import Process, Run, Stop


async def killed(run: int) -> None:
    """Kill the only engine. Wait until its parent, the keeper, has ended, and the script *run*."""
    (session,) = own_sessions()
    engine = find(session.pid)
    assert engine is not None
    script, keeper = asyncio.create_task(ended(run)), asyncio.create_task(ended(engine.ppid))
    await asyncio.sleep(0)  # so that both waits have begun
    os.kill(session.pid, signal.SIGKILL)
    await asyncio.gather(script, keeper)


OUTLIVES = """
import os, select, signal
told = []
for number in (signal.SIGHUP, signal.SIGTERM, signal.SIGCONT):
    signal.signal(number, lambda number, _: told.append(number))
parent = os.getppid()
engine = os.pidfd_open(parent)
print("up", flush=True)
select.select([engine], [], [])
while os.path.exists(f"/proc/{parent}"):
    pass  # until its keeper knows: nothing is said of an engine that a script has outlived unnoticed
for _ in range(100):
    print("." * 4000)  # more than a terminal holds, unless somebody reads it
print("told of", told, "in the foreground", os.tcgetpgrp(0) == os.getpgrp(), flush=True)
"""


async def test_the_engines_death_is_not_the_scripts(engines: Engines) -> None:
    launched = engines.launch(sys.executable, "-u", "-c", OUTLIVES)
    screen = await engines.look(launched.socket)
    run = await screen.until(Run)
    await screen.until_shown("up")
    await killed(run.pid)
    output = _read(Path(launched.output_path or ""))
    assert "[tfmemtop was ended by SIGKILL; the script goes on]" in output
    # Not one dot is lost, though the note may stand between some.
    assert output.count(".") == 400_000 and output.endswith("told of [] in the foreground True\n")


LATE = """
import os, select
engine = os.pidfd_open(os.getppid())
open("ready", "w").close()
select.select([engine], [], [])
print("first words", flush=True)
"""


async def test_what_is_printed_after_the_engines_death_is_kept_though_nothing_was_before(engines: Engines) -> None:
    os.mkfifo(engines.folder / "ready")
    launched = engines.launch(sys.executable, "-u", "-c", LATE)
    await asyncio.to_thread((engines.folder / "ready").read_bytes)
    screen = await engines.look(launched.socket)
    run = await screen.until(Run)
    await killed(run.pid)
    # Either may come first: the note of the engine's death, or what the script prints upon it.
    assert "first words\n" in _read(Path(launched.output_path or ""))


async def test_who_ends_all_that_is_called_tfmemtop_does_not_end_the_script(engines: Engines) -> None:
    launched = engines.launch("sh", "-c", "sleep 0.2 & echo up; read line; echo read $line")
    screen = await engines.look(launched.socket)
    run = await screen.until(Run)
    await screen.until_shown("up")
    (session,) = own_sessions()
    engine = find(session.pid)
    assert engine is not None
    for pid in (engine.ppid, run.pid):
        names = _read(Path(f"/proc/{pid}/cmdline")) + _read(Path(f"/proc/{pid}/comm"))
        assert "tfmemtop" not in names, names
    assert "pty-keeper" in _read(Path(f"/proc/{engine.ppid}/cmdline"))
    # pkill would end the tests' own processes too.
    os.kill(session.pid, signal.SIGKILL)
    await ended(session.pid)
    script, keeper = asyncio.create_task(ended(run.pid)), asyncio.create_task(ended(engine.ppid))
    await asyncio.sleep(0)
    os.kill(run.pid, signal.SIGTERM)
    await asyncio.gather(script, keeper)  # the keeper waits only for the script


async def test_orphans_have_the_parent_that_they_have_without_us(engines: Engines) -> None:
    """Orphans belong to the run all the same: they are shown, and end with it."""
    program = """
import os, time
if os.fork() == 0:
    parent = os.getpid()
    if os.fork() == 0:
        os.setsid()
        while os.getppid() == parent:
            time.sleep(0.001)
        print("adopted by", os.getppid(), flush=True)
        os.read(0, 1)
    os._exit(0)
os.wait()
time.sleep(300)
"""
    bare = await asyncio.create_subprocess_exec(
        sys.executable, "-c", program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
    )
    assert bare.stdin and bare.stdout
    said = (await bare.stdout.readline()).decode().strip()
    bare.kill()
    bare.stdin.close()
    await bare.wait()
    screen = await engines.python(program)
    await screen.until_shown(said)
    run = await screen.until(Run)
    orphan = await screen.until(Process, lambda process: process.run == 1 and process.pid != run.pid)
    await screen.client.send(Stop())
    await ended(orphan.pid)


def _read(path: Path) -> str:
    return path.read_text()
