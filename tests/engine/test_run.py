"""What a script finds when it runs under the engine, and how it ends."""

import os
import signal
import sys
from functools import partial
from pathlib import Path

import pytest

from tests.engines import Engines, Screen
from tfmemtop.engine.sources.processes import find
from tfmemtop.events import Input, Notice, Output, Process, Relaunch, Resize, Run, RunEnd, Stop, Stopping, StoppingPhase
from tfmemtop.events import Signal as SendSignal
from tfmemtop.settings import Settings

# It sleeps in short naps: Python can miss a signal that arrives just before a sleep begins, until that sleep ends.
FOREVER = "import time\nprint('up')\nwhile True: time.sleep(0.1)"

UNTIL_IT_MAY_END = """
import pathlib, signal, time
signal.signal(signal.SIGTERM, lambda *_: None)
print('up', flush=True)
while not pathlib.Path("{}").exists(): time.sleep(0.01)
"""


async def until_all_is_received(screen: Screen) -> None:
    """Wait for the engine's answer to a command that it cannot obey: it has received every command before it."""
    await screen.client.send(SendSignal(pids=[os.getpid()], signal=signal.SIGKILL))
    await screen.until(Notice, lambda notice: notice.key == "signal")


async def test_the_terminal_is_a_terminal(engines: Engines) -> None:
    screen = await engines.run("sh", "-c", "stty size; echo told >/dev/tty; read line; stty size", columns=101, rows=33)
    await screen.until_shown("told")
    assert "33 101" in screen.shown
    await screen.client.send(Resize(columns=90, rows=20))
    await screen.client.send(Input(text="\n"))
    await screen.until(RunEnd)
    assert "20 90" in screen.shown


async def test_nothing_of_the_engine_leaks_into_the_script(engines: Engines) -> None:
    program = (
        "import os, signal\n"
        "print('ignored', [s.name for s in signal.valid_signals() if isinstance(s, signal.Signals)"
        " and signal.getsignal(s) is signal.SIG_IGN])\n"
        "print('blocked', signal.pthread_sigmask(signal.SIG_BLOCK, []))\n"
        "print('open', sorted(int(n) for n in os.listdir('/proc/self/fd'))[:4])\n"
        "print('path', os.environ['PYTHONPATH'].split(':')[1:], 'XDG_RUNTIME_DIR' in os.environ)\n"
    )
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": "/one:/two::"}
    screen = await engines.python(program, environment=environment)
    await screen.until(RunEnd)
    # Python itself ignores these two.
    assert "ignored ['SIGPIPE', 'SIGXFSZ']" in screen.shown
    assert "blocked set()" in screen.shown
    assert "open [0, 1, 2, 3]" in screen.shown  # 3 is the listing itself
    # The empty parts stay: they mean the working folder.
    assert "path ['/one', '/two', '', ''] False" in screen.shown


async def test_what_is_no_utf8_is_passed_on(engines: Engines, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = engines.folder / os.fsdecode(b"f\xfe")
    folder.mkdir()
    monkeypatch.chdir(folder)
    odd = os.fsdecode(b"a\xffb")
    program = "import os, sys; print(os.environb[b'ODD'], os.fsencode(sys.argv[1]), os.getcwdb()[-2:]); input()"
    argv = [sys.executable, "-c", program, odd]
    screen = await engines.run(*argv, cwd=str(folder), environment=dict(os.environ) | {"ODD": odd})
    await screen.until_shown("b'a\\xffb' b'a\\xffb' b'f\\xfe'")
    run = await screen.until(Run)
    assert (run.argv[-1], run.cwd[-5:]) == ("a\\xffb", "f\\xfe")
    # The screen sends back the text that it shows. That text stands for the same bytes.
    await screen.client.send(Relaunch(argv=run.argv, settings=Settings()))
    await screen.until_shown("b'a\\xffb' b'a\\xffb' b'f\\xfe'", run=2)


async def test_ctrl_c_typed_interrupts(engines: Engines) -> None:
    screen = await engines.python(FOREVER)
    await screen.until_shown("up")
    await screen.client.send(Input(text="\x03"))
    end = await screen.until(RunEnd)
    assert end.signal == signal.SIGINT or end.exit_code == 1
    assert "KeyboardInterrupt" in screen.shown


async def test_children_left_behind_live_on_as_they_would_in_a_shell(engines: Engines) -> None:
    screen = await engines.run("sh", "-c", "sleep 300 & echo child $!")
    end = await screen.until(RunEnd)
    child = int(screen.shown.split()[1])
    assert end.exit_code == 0
    process = await screen.until(Process, lambda process: process.command == ["sleep", "300"])
    assert process.pid == child
    assert find(child) is not None


async def test_stop_ends_group_daemons_and_grandchildren(engines: Engines) -> None:
    # A shell that waits ends with 0 where its children end before the signal reaches it. So the script is a sleep.
    command = "setsid sleep 301 & (sh -c 'sleep 302 & exec setsid sleep 303' &) ; sleep 304 & exec sleep 305"
    screen = await engines.run("sh", "-c", command)
    for name in ("301", "302", "303", "304", "305"):
        await screen.until(Process, partial(_is_sleep, name))
    await screen.client.send(Stop(grace_s=5.0))
    await screen.until(Stopping, lambda stopping: stopping.phase is StoppingPhase.RELEASED)
    assert (await screen.until(RunEnd)).signal == signal.SIGTERM
    for process in screen.all(Process):
        found = find(process.pid)
        assert found is None or found.name != "sleep"


async def test_one_that_ignores_term_is_killed_after_the_grace(engines: Engines) -> None:
    screen = await engines.python("import signal\nsignal.signal(15, signal.SIG_IGN)\n" + FOREVER)
    await screen.until_shown("up")
    await screen.client.send(Stop(grace_s=0.3))
    end = await screen.until(RunEnd)
    await screen.until(Stopping, lambda stopping: stopping.phase is StoppingPhase.RELEASED)
    phases = [stopping.phase for stopping in screen.all(Stopping)]
    assert (end.signal, end.oom_killed) == (signal.SIGKILL, False)
    assert phases == [StoppingPhase.TERM, StoppingPhase.KILL, StoppingPhase.RELEASED]
    told = screen.all(Stopping)[0]
    assert told.deadline is not None and told.deadline >= 0.3


async def test_a_stopped_script_can_be_ended(engines: Engines) -> None:
    screen = await engines.python(FOREVER)
    await screen.until_shown("up")
    run = await screen.until(Run)
    os.kill(run.pid, signal.SIGSTOP)
    await screen.client.send(Stop(grace_s=10.0))
    assert (await screen.until(RunEnd)).signal == signal.SIGTERM


async def test_an_impatient_second_stop_shortens_the_grace(engines: Engines) -> None:
    screen = await engines.python("import signal\nsignal.signal(15, signal.SIG_IGN)\n" + FOREVER)
    await screen.until_shown("up")
    await screen.client.send(Stop(grace_s=300.0))
    await screen.until(Stopping)
    await screen.client.send(Stop(grace_s=0.0))
    assert (await screen.until(RunEnd)).signal == signal.SIGKILL


async def test_relaunch_ends_the_run_and_starts_the_next_with_its_settings(engines: Engines) -> None:
    program = "import os, sys, time\nprint(sys.argv[1], os.environ.get('TF_FORCE_GPU_ALLOW_GROWTH'))\ntime.sleep(300)"
    argv = [sys.executable, "-u", "-c", program]
    screen = await engines.run(*argv, "first")
    await screen.until_shown("first None")
    settings = Settings(growth="on", environment={"EXTRA": "1"})
    await screen.client.send(Relaunch(argv=[*argv, "second"], settings=settings))
    await screen.until_shown("second true")
    first, second = screen.all(Run)
    (end,) = screen.all(RunEnd)
    released = next(s for s in screen.all(Stopping) if s.phase is StoppingPhase.RELEASED)
    assert (first.run, end.run, second.run, second.settings) == (1, 1, 2, settings)
    assert end.t <= released.t <= second.t
    assert {event.run for event in screen.all(Output) if "second" in event.text} == {2}


async def test_the_next_run_waits_for_every_thread_of_the_one_before(engines: Engines) -> None:
    program = """
import ctypes, platform, threading, time
def stay():
    while ") Z " not in open("/proc/self/stat").read():
        pass
    print("main thread gone")
    time.sleep(300)
threading.Thread(target=stay).start()
ctypes.CDLL(None).syscall({"x86_64": 60, "aarch64": 93}[platform.machine()], 0)
"""
    screen = await engines.python(program)
    await screen.until_shown("main thread gone")
    await screen.client.send(Relaunch(argv=[sys.executable, "-c", "print('second')"], settings=Settings()))
    await screen.until_shown("second")
    end = await screen.until(RunEnd, lambda end: end.run == 1)
    second = await screen.until(Run, lambda run: run.run == 2)
    assert end.signal == signal.SIGTERM and end.t <= second.t


async def test_a_stop_takes_back_the_relaunch_before_it(engines: Engines, tmp_path: Path) -> None:
    may_end = tmp_path / "may end"
    screen = await engines.python(UNTIL_IT_MAY_END.format(may_end))
    await screen.until_shown("up")
    await screen.client.send(Relaunch(argv=["echo", "taken back"], settings=Settings(gpus=())))
    await screen.client.send(Stop())
    await until_all_is_received(screen)
    may_end.touch()
    await screen.until(Stopping, lambda stopping: stopping.phase is StoppingPhase.RELEASED)
    await screen.client.send(Relaunch(argv=["echo", "the next"], settings=Settings()))
    await screen.until_shown("the next")
    assert [run.argv[-1] for run in screen.all(Run)][1:] == ["the next"]


async def test_relaunch_that_cannot_start_leaves_the_run_alone(engines: Engines) -> None:
    screen = await engines.python(FOREVER)
    run = await screen.until(Run)
    await screen.client.send(Relaunch(argv=["no-such-command-anywhere"], settings=Settings()))
    notice = await screen.until(Notice, lambda notice: notice.key == "relaunch")
    assert notice.detail == "no-such-command-anywhere: command not found"
    assert find(run.pid) is not None
    assert not screen.all(Stopping)


async def test_signals_go_to_shown_processes_only(engines: Engines) -> None:
    screen = await engines.python(FOREVER)
    run = await screen.until(Run)
    await screen.until(Process, lambda process: process.pid == run.pid)
    await screen.client.send(SendSignal(pids=[os.getpid()], signal=signal.SIGKILL))
    notice = await screen.until(Notice, lambda notice: notice.key == "signal")
    assert str(os.getpid()) in notice.detail
    await screen.client.send(SendSignal(pids=[run.pid], signal=signal.SIGUSR1))
    assert (await screen.until(RunEnd)).signal == signal.SIGUSR1


async def test_a_burst_comes_through_whole_and_characters_are_not_torn(engines: Engines) -> None:
    screen = await engines.python("print('é🚀' * 15_000)\nprint('done')")
    await screen.until(RunEnd)
    assert screen.shown == "é🚀" * 15_000 + "\r\ndone\r\n"
    assert not any(event.skipped for event in screen.all(Output))


def _is_sleep(seconds: str, process: Process) -> bool:
    return process.command == ["sleep", seconds]
