"""Readers that come, go, lag and vanish; the engine's own life; what it leaves behind."""

import asyncio
import os
import resource
import signal
import socket
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.engine.conftest import Engines, ended
from tfmemtop.engine.client import Client, connect
from tfmemtop.engine.folders import sessions
from tfmemtop.engine.launch import Launched
from tfmemtop.engine.procfs import read_stat
from tfmemtop.engine.server import QUEUE, Reader
from tfmemtop.engine.stream import Stream
from tfmemtop.events import (
    Census,
    CensusNow,
    Environment,
    Functions,
    Input,
    Leave,
    Notice,
    Output,
    Process,
    ProcessReading,
    ProcessReadings,
    ReadEnvironment,
    Run,
    RunEnd,
    Session,
    Stop,
)
from tfmemtop.recording import read

READS = "print('up')\nwhile True: print('got', input())"


async def test_a_late_reader_gets_the_present_in_order(engines: Engines) -> None:
    launched = engines.launch(sys.executable, "-u", "-c", READS)
    first = await engines.look(launched.socket)
    await first.until_shown("up")
    await first.until(ProcessReadings, lambda readings: bool(readings.processes))
    await first.client.send(Input(text="hello\n"))
    await first.until_shown("got hello")
    late = await engines.look(launched.socket)
    await late.until_shown("got hello")
    assert isinstance(late.events[0], Session)
    assert late.all(Run) == first.all(Run)
    assert await late.until(Process)
    times = [event.t for event in late.events]
    assert times == sorted(times)
    await late.client.send(Input(text="again\n"))
    await first.until_shown("got again")


async def test_a_reader_that_does_not_read_holds_up_nobody(engines: Engines) -> None:
    launched = engines.launch(sys.executable, "-c", "for n in range(300): print('y' * 100_000)\nprint('over')\ninput()")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as deaf:
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        deaf.connect(launched.socket)
        quick = await engines.look(launched.socket)
        await quick.until_shown("over")
        await quick.client.send(Stop(quit=True))
        await quick.until_closed()


async def test_a_slow_reader_loses_the_oldest_samples_and_is_told() -> None:
    stream = Stream()
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    reader = Reader(stream, ours)
    stream.listen(reader.push)
    for number in range(400):
        stream.publish(ProcessReadings(t=0.0, processes=[ProcessReading(1, 0.0, 1 << 40)] * 800, host_used=number))
    stream.publish(RunEnd(t=0.0, run=1, exit_code=0, signal=None))
    writing = asyncio.ensure_future(reader.write())
    incoming, outgoing = await asyncio.open_connection(sock=theirs)
    client = Client(incoming, outgoing)
    got = []
    async for batch in client.events():
        got += batch
        if any(isinstance(event, RunEnd) for event in got):
            break
    writing.cancel()
    await client.close()
    ours.close()
    kept = [event.host_used for event in got if isinstance(event, ProcessReadings)]
    assert kept == list(range(400 - len(kept), 400))
    assert len(kept) < QUEUE / 16_000
    last_word = [event for event in got if isinstance(event, Notice)][-1]
    assert f"{400 - len(kept)} readings left out" in last_word.text


async def test_the_monitor_killed_leaves_the_script_running(engines: Engines) -> None:
    launched = engines.launch(sys.executable, "-u", "-c", READS)
    program = (
        f"import socket, time\ns = socket.socket(socket.AF_UNIX)\ns.connect({launched.socket!r})\nprint(s.recv(10))"
    )
    monitor = await asyncio.create_subprocess_exec(
        sys.executable, "-u", "-c", program + "\ntime.sleep(300)", stdout=subprocess.PIPE
    )
    assert monitor.stdout
    await monitor.stdout.readline()
    monitor.kill()
    await monitor.wait()
    screen = await engines.look(launched.socket)
    await screen.client.send(Input(text="still there\n"))
    await screen.until_shown("got still there")


async def test_leaving_leaves_it_running_and_another_screen_can_attach(engines: Engines) -> None:
    launched = engines.launch(sys.executable, "-u", "-c", READS)
    screen = await engines.look(launched.socket)
    await screen.until_shown("up")
    await screen.client.send(Leave())
    await screen.until_closed()
    (session,) = sessions()
    assert (session.id, session.command[0], session.output_path) == (launched.id, sys.executable, launched.output_path)
    again = await engines.look(session.socket)
    await again.until_shown("up")


async def test_it_ends_when_the_run_has_ended_and_nobody_looks(engines: Engines) -> None:
    launched = engines.launch("echo", "kept")
    (session,) = sessions()
    screen = await engines.look(launched.socket)
    await screen.until(RunEnd)
    await screen.client.close()
    await ended(session.pid)
    assert not _exists(Path(launched.socket).parent)
    assert sessions() == []
    assert _text(launched) == "kept\r\n"


async def test_a_run_that_ended_unseen_can_still_be_looked_at(engines: Engines) -> None:
    reading, writing = os.pipe()
    os.set_inheritable(writing, True)
    launched = engines.launch(sys.executable, "-c", "print('unseen')")
    os.close(writing)
    # The pipe's end comes when the script, its only other holder, has gone.
    assert await asyncio.to_thread(os.read, reading, 1) == b""
    os.close(reading)
    screen = await engines.look(launched.socket)
    await screen.until(RunEnd)
    assert screen.shown == "unseen\r\n"


async def test_quit_ends_run_engine_and_connection(engines: Engines) -> None:
    launched = engines.launch(sys.executable, "-u", "-c", READS)
    (session,) = sessions()
    screen = await engines.look(launched.socket)
    await screen.until_shown("up")
    run = await screen.until(Run)
    await screen.client.send(Stop(quit=True))
    await screen.until_closed()
    assert screen.all(RunEnd)[0].signal == signal.SIGTERM
    await ended(session.pid)
    assert read_stat(run.pid) is None
    with pytest.raises(OSError, match="No such file"):
        await connect(launched.socket)


async def test_term_to_the_engine_ends_the_script_too(engines: Engines) -> None:
    screen = await engines.python(READS)
    await screen.until_shown("up")
    os.kill(sessions()[0].pid, signal.SIGTERM)
    assert (await screen.until(RunEnd)).signal == signal.SIGTERM
    await screen.until_closed()


async def test_a_hangup_does_not_end_it(engines: Engines) -> None:
    screen = await engines.python(READS)
    await screen.until_shown("up")
    os.kill(sessions()[0].pid, signal.SIGHUP)
    await screen.client.send(Input(text="on\n"))
    await screen.until_shown("got on")


async def test_watching_alone_ends_with_its_last_reader(engines: Engines) -> None:
    launched = engines.launch()
    (session,) = sessions()
    screen = await engines.look(launched.socket)
    readings = await screen.until(ProcessReadings)
    assert readings.processes == []
    assert readings.host_used
    await screen.client.close()
    await ended(session.pid)


async def test_what_a_dead_engine_left_is_cleaned_up(engines: Engines) -> None:
    launched = engines.launch(sys.executable, "-u", "-c", READS)
    (session,) = sessions()
    os.kill(session.pid, signal.SIGKILL)
    await ended(session.pid)
    assert _exists(Path(launched.socket))
    assert sessions() == []
    assert not _exists(Path(launched.socket).parent)


async def test_outputs_are_kept_for_a_month(engines: Engines) -> None:
    silent = engines.launch(sys.executable, "-u", "-c", READS)
    await (await engines.look(silent.socket)).until_shown("up")
    assert silent.output_path is not None
    kept = Path(silent.output_path)
    for name, days in (("old.log", 31), ("old.engine.log", 31), ("recent.log", 29), ("not-ours", 31), (kept.name, 31)):
        path = kept.parent / name
        path.touch()
        at = time.time() - days * 86400
        os.utime(path, (at, at))
    await (await engines.python("print('up')")).until_shown("up")
    assert {path.name for path in kept.parent.iterdir()} >= {"recent.log", "not-ours", kept.name}
    assert not list(kept.parent.glob("old*"))


OUTLIVES = """
import os, select, signal
told = []
for number in (signal.SIGHUP, signal.SIGTERM, signal.SIGCONT):
    signal.signal(number, lambda number, _: told.append(number))
engine = os.pidfd_open(os.getppid())
print("up", flush=True)
select.select([engine], [], [])
for _ in range(100):
    print("." * 4000)  # more than a terminal holds, unless somebody reads it
print("told of", told, "in the foreground", os.tcgetpgrp(0) == os.getpgrp(), flush=True)
"""


async def test_the_engines_death_is_not_the_scripts(engines: Engines) -> None:
    launched = engines.launch(sys.executable, "-u", "-c", OUTLIVES)
    screen = await engines.look(launched.socket)
    run = await screen.until(Run)
    await screen.until_shown("up")
    (session,) = sessions()
    engine = read_stat(session.pid)
    assert engine is not None
    script, keeper = asyncio.create_task(ended(run.pid)), asyncio.create_task(ended(engine.ppid))
    await asyncio.sleep(0)  # so that both are being waited for
    os.kill(session.pid, signal.SIGKILL)
    await asyncio.gather(script, keeper)
    output = _read(Path(launched.output_path or ""))
    assert "[tfmemtop was ended by SIGKILL; the script goes on]" in output
    assert output.count("." * 4000) == 100 and output.endswith("told of [] in the foreground True\n")


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
    (session,) = sessions()
    engine = read_stat(session.pid)
    assert engine is not None
    script, keeper = asyncio.create_task(ended(run.pid)), asyncio.create_task(ended(engine.ppid))
    await asyncio.sleep(0)
    os.kill(session.pid, signal.SIGKILL)
    await asyncio.gather(script, keeper)
    assert _read(Path(launched.output_path or "")).endswith("first words\n")


async def test_who_ends_all_that_is_called_tfmemtop_does_not_end_the_script(engines: Engines) -> None:
    launched = engines.launch("sh", "-c", "sleep 0.2 & echo up; read line; echo read $line")
    screen = await engines.look(launched.socket)
    run = await screen.until(Run)
    await screen.until_shown("up")
    (session,) = sessions()
    engine = read_stat(session.pid)
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
    await asyncio.gather(script, keeper)  # which waits for no more than the script


async def test_orphans_have_the_parent_that_they_have_without_us(engines: Engines) -> None:
    """And are the run's all the same: they are shown, and end with it."""
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


async def test_only_the_user_can_enter(engines: Engines) -> None:
    launched = engines.launch(sys.executable, "-u", "-c", READS)
    folder = Path(launched.socket).parent
    screen = await engines.look(launched.socket)
    await screen.until_shown("up")
    assert _mode(folder) == _mode(folder.parent) == 0o700
    assert _mode(folder / "hook.sock") == _mode(folder / "engine.sock") == 0o600
    assert _mode(Path(launched.output_path or "")) == 0o600


async def test_a_command_that_cannot_be_read_is_told_and_does_no_harm(engines: Engines) -> None:
    launched = engines.launch(sys.executable, "-u", "-c", READS)
    screen = await engines.look(launched.socket)
    _, writer = await asyncio.open_unix_connection(launched.socket)
    hostile = [b'{"do":"fly"}', b"\xff\xfe", b"[" * 100_000, b'{"do":"resize","columns":%d,"rows":1}' % 10**310]
    hostile += [b'{"do":"signal","pids":[%s],"signal":15}' % b",".join([b"0"] * 200_000)]
    hostile += [b'{"do":"stop","grace_s":1e300}', b'{"do":"map_wanted","pid":1,"device":"x","pace_s":-1}']
    writer.write(b"".join(line + b"\n" for line in hostile))

    def all_told(_: Notice) -> bool:
        return len({notice.text for notice in screen.all(Notice) if notice.key == "command"}) == len(hostile)

    await screen.until(Notice, all_told)
    writer.write(b'{"do":"input","text":"after\\n"}\n')
    await screen.until_shown("got after")
    writer.close()


async def test_the_environment_of_a_process(engines: Engines) -> None:
    screen = await engines.python(READS, environment=dict(os.environ) | {"TF_SOMETHING": "set"})
    run = await screen.until(Run)
    await screen.until_shown("up")
    await screen.client.send(ReadEnvironment(pid=run.pid))
    found = await screen.until(Environment)
    assert (found.variables["TF_SOMETHING"], found.error) == ("set", None)
    await screen.client.send(ReadEnvironment(pid=2**22 + 1))
    gone = await screen.until(Environment, lambda environment: environment.pid != run.pid)
    assert gone.error


async def test_a_full_disk_costs_the_recording_and_not_the_run(engines: Engines) -> None:
    screen = await engines.python(READS, record="/dev/full")
    notice = await screen.until(Notice, lambda notice: notice.key == "recording")
    assert "No space left" in notice.text
    await screen.client.send(Input(text="on\n"))
    await screen.until_shown("got on")


async def test_a_full_disk_costs_the_output_file_and_not_the_output(engines: Engines) -> None:
    screen = await engines.python("input()\nprint('x' * 3_000_000)\nprint('on')\ninput()")
    # A limit on files' sizes is met as a full disk is.
    resource.prlimit(sessions()[0].pid, resource.RLIMIT_FSIZE, (1_000_000, 1_000_000))
    await screen.client.send(Input(text="\n"))
    notice = await screen.until(Notice, lambda notice: notice.key == "output_file")
    assert "File too large" in notice.text
    await screen.until_shown("on\r\n")


async def test_a_recording_that_cannot_be_made_is_refused_before_the_start(engines: Engines) -> None:
    launched = engines.launch("touch", "started", record="/no/such/folder/file")
    assert launched.exit_code == 2
    assert "/no/such/folder/file" in (launched.error or "")
    assert not _exists(engines.folder / "started")


async def test_the_recording_is_the_stream(engines: Engines) -> None:
    path = engines.folder / "run.tfm"
    screen = await engines.run("sh", "-c", "echo recorded; exit 4", record=str(path))
    await screen.until(RunEnd)
    await screen.client.send(Stop(quit=True))
    await screen.until_closed()
    recorded = list(read(path).events())
    assert isinstance(recorded[0], Session)
    assert any(isinstance(event, RunEnd) and event.exit_code == 4 for event in recorded)
    assert "".join(event.text for event in recorded if isinstance(event, Output)) == "recorded\r\n"


def _exists(path: Path) -> bool:
    return path.exists()


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def _text(launched: Launched) -> str:
    assert launched.output_path
    return Path(launched.output_path).read_bytes().decode()


COUNTED = """
import sys
import tensorflow as tf
kept = tf.Variable(tf.zeros([1000]), name="kept")
step = tf.function(lambda x: x + 1)
result = step(step(step(kept)))
print("up", flush=True)
sys.stdin.readline()
"""


async def test_functions_and_a_census_when_asked(engines: Engines) -> None:
    screen = await engines.python(COUNTED)
    run = await screen.until(Run)
    await screen.until_shown("up")
    counted = await screen.until(Functions, lambda counted: counted.functions[0].calls == 3)
    assert [(f.name, f.traces, f.steps) for f in counted.functions] == [("<lambda>", 2, 1)]
    await screen.client.send(CensusNow(pid=run.pid))
    census = await screen.until(Census, lambda census: bool(census.kinds))
    assert census.kinds == {"CPU:0": {"variables": 4000}} and census.largest[0].name == "kept"
    await screen.client.send(CensusNow(pid=run.pid, tensors=True))
    looked = await screen.until(Census, lambda census: census.looked)
    assert [one.name for one in looked.largest if one.kind == "tensors"][:1] == ["result"] and not looked.unseen


def _read(path: Path) -> str:
    return path.read_text()
