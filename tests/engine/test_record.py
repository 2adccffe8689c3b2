"""Recording without a screen, as the command line does it, in a process of its own."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pexpect
import psutil
import pytest

from tests.patience import PATIENCE_S, until
from tests.starting import ran
from tfmemtop.engine.sources.processes import descendants, read_command
from tfmemtop.engine.stream.folders import sessions
from tfmemtop.engine.stream.server import connect
from tfmemtop.events import Command, HookEnd, Process, ProcessReadings, Relaunch, Run, RunEnd, Signal, Stop
from tfmemtop.events.recording import read
from tfmemtop.settings import Settings

pytestmark = pytest.mark.programs

RECORD = """
import asyncio, os, sys
from tfmemtop.engine.process.launch import Launch
from tfmemtop.cli.record import record
launch = Launch(argv=sys.argv[2:], cwd=os.getcwd(), environment=dict(os.environ))
done = asyncio.run(record(launch, sys.argv[1]))
WAIT
print("recorded", done.end.exit_code, done.end.signal, done.trouble, file=sys.stderr)
"""
UP = "import time\nprint('up', flush=True)\ntime.sleep(300)"


def recording(path: Path, *argv: str, wait: str = "pass") -> list[str]:
    """Return the command of a recorder that runs the code *wait* before it reports the end."""
    return [sys.executable, "-c", RECORD.replace("WAIT", wait), str(path), *argv]


def _heed_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def test_ctrl_c_reaches_the_script_once_and_is_waited_for(tmp_path: Path) -> None:
    program = (
        "import time\ntry:\n print('up', flush=True)\n while True: time.sleep(0.1)\n"
        "except KeyboardInterrupt:\n print('caught', flush=True)\n raise SystemExit(9)"
    )
    command, *arguments = recording(tmp_path / "r", sys.executable, "-c", program)
    # As at a prompt, no matter how the tests were started.
    with pexpect.spawn(command, arguments, timeout=PATIENCE_S, preexec_fn=_heed_interrupts) as terminal:
        terminal.expect("up\r\n")
        terminal.sendintr()
        terminal.expect("caught\r\n")
        terminal.expect("recorded 9 None None")
        terminal.expect(pexpect.EOF)


COUNTS = """
import signal, sys, time
heard, wanted = [], [int(number) for number in sys.argv[1:]]
for number in wanted:
    signal.signal(number, lambda number, _: heard.append(number))
print("up", flush=True)
while len(set(heard)) < len(wanted):
    time.sleep(0.1)
time.sleep(0.5)  # for what should not come
print(sorted(heard), flush=True)
"""


@pytest.mark.parametrize(
    "whom", ["the group", "the group, of which the second does not run", "all that descend from us"]
)
def test_a_signal_to_all_of_us_reaches_the_script_once(tmp_path: Path, whom: str) -> None:
    """Slurm sends signals to all that descend from us: it follows the parents of processes (``proctrack/linuxproc``).

    The second process of a recorder tells of signals to the group. Under heavy load it may not run for a while.
    """
    late = whom.endswith("does not run")  # SIGCONT would let it run
    numbers = [signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, *([] if late else [signal.SIGCONT])]
    command = recording(tmp_path / "r", sys.executable, "-c", COUNTS, *(str(int(number)) for number in numbers))
    with subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True) as recorder:
        assert recorder.stdout and recorder.stdout.readline() == b"up\n"
        if late:
            (second,) = (child for child in psutil.Process(recorder.pid).children() if child.cmdline() == command)
            second.suspend()
        everybody = (recorder.pid, *descendants(recorder.pid))
        for number in numbers:
            if whom.startswith("the group"):
                os.killpg(recorder.pid, number)
            else:
                for pid in everybody:
                    os.kill(pid, number)
        assert recorder.stdout.read() == f"{sorted(map(int, numbers))}\n".encode()
        assert recorder.wait(PATIENCE_S) == 0


def test_what_listens_for_us_is_no_process_of_the_run(tmp_path: Path) -> None:
    path = tmp_path / "r"

    def readings() -> int:
        there = path.exists() and path.stat().st_size
        return sum(isinstance(event, ProcessReadings) for event in read(path).events()) if there else 0

    with subprocess.Popen(recording(path, "cat"), stdin=subprocess.PIPE) as recorder:
        until(lambda: readings() > 1)
        recorder.communicate(timeout=PATIENCE_S)
    assert recorder.returncode == 0
    events = list(read(path).events())
    (script,) = {event.pid for event in events if isinstance(event, Run)}
    assert {event.pid for event in events if isinstance(event, Process) and event.run} == {script}


def test_an_interrupt_for_us_alone_reaches_the_script(tmp_path: Path) -> None:
    program = (
        "import time\nprint('up', flush=True)\ntry:\n while True: time.sleep(0.1)\n"
        "except KeyboardInterrupt: print('caught')"
    )
    with subprocess.Popen(
        recording(tmp_path / "r", sys.executable, "-c", program), stdout=subprocess.PIPE, start_new_session=True
    ) as recorder:
        assert recorder.stdout and recorder.stdout.readline() == b"up\n"
        os.kill(recorder.pid, signal.SIGINT)
        assert recorder.stdout.read() == b"caught\n"
        assert recorder.wait(PATIENCE_S) == 0


def test_what_a_screen_asks_for_neither_ends_nor_changes_the_recorded_run(tmp_path: Path) -> None:
    """Also where the screen is of a release that does not know that the session is recorded."""
    program = "import sys\nprint('up', flush=True)\nsys.exit(len(sys.stdin.readline()))"

    async def ask(address: str, *commands: Command) -> None:
        screen = await connect(address)
        for command in commands:
            await screen.send(command)
        async for _ in screen.events():
            pass  # until it is disconnected
        await screen.close()

    with subprocess.Popen(
        recording(tmp_path / "r", sys.executable, "-c", program), stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as recorder:
        assert recorder.stdin and recorder.stdout and recorder.stdout.readline() == b"up\n"
        (session,) = [each for each in sessions() if each.pid == recorder.pid]
        (script,) = [each for each in descendants(recorder.pid) if "readline" in read_command(each)[2]]
        kill = Signal(pids=[script], signal=signal.SIGKILL)
        again = Relaunch(argv=[sys.executable, "-c", "print('again')"], settings=Settings())
        asyncio.run(ask(session.socket, kill, again, Stop(quit=True)))
        assert recorder.communicate(b"four\n", timeout=PATIENCE_S)[0] == b""
    (end,) = [event for event in read(tmp_path / "r").events() if isinstance(event, RunEnd)]
    assert (end.exit_code, end.signal) == (5, None)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGRTMIN])
def test_a_second_signal_after_the_end_costs_no_summary(tmp_path: Path, number: int) -> None:
    """The signal comes while the recording is read again for the summary. A pipe delays that read for so long."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with subprocess.Popen(
        recording(tmp_path / "r", sys.executable, "-c", UP, wait=f"open({str(pipe)!r})"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as recorder:
        assert recorder.stdout and recorder.stdout.readline() == b"up\n"
        os.killpg(recorder.pid, number)
        with pipe.open("w"):
            os.kill(recorder.pid, number)
        assert recorder.stderr and recorder.stderr.read() == f"recorded None {int(number)} None\n".encode()
        assert recorder.wait(PATIENCE_S) == 0


def test_what_fails_at_the_end_does_not_hide_the_end(tmp_path: Path) -> None:
    """A pipe without a writer is in place of a pool's copy, and the hook's messages are nested too deep."""
    program = """
import os, socket
os.mkfifo(os.environ["TFMEMTOP_DATA"] + f"/{os.getpid()}.GPU:0.live.chunks")
for _ in range(3):
    hook = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    hook.connect(os.environ["TFMEMTOP_SOCKET"])
    for _ in range(20):
        hook.send(b'{"type":' + b"[" * 30_000)
        hook.send(b"[" * 30_000 + b"]" * 30_000)
"""
    path = tmp_path / "r"
    done = ran(recording(path, sys.executable, "-c", program), check=True)
    assert "recorded 0 None None" in done.stderr
    assert isinstance(list(read(path).events())[-1], RunEnd | HookEnd)
