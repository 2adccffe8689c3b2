"""What is printed without a screen: the table of --once, the list of attach, the summary of a recorded run."""

import os
import re
import subprocess
from collections.abc import Iterator

import pytest

from tfmemtop import events as ev
from tfmemtop.commands.attach import choose
from tfmemtop.commands.once import table
from tfmemtop.engine.folders import SessionInfo
from tfmemtop.options import Refusal
from tfmemtop.settings import Settings
from tfmemtop.summary import summarise

GIB = 1 << 30
H200 = ev.Device(t=0, index=0, uuid="GPU-a", name="NVIDIA H200", total=140 * GIB, reserved=GIB)


def reading(*processes: ev.DeviceProcess, missing: str | None = None, t: float = 0) -> ev.DeviceReading:
    return ev.DeviceReading(
        t=t,
        index=0,
        used=3 * GIB,
        free=137 * GIB,
        utilisation=45,
        bandwidth=None,
        power_w=269.4,
        temperature_c=42,
        processes=list(processes),
        processes_missing=missing,
    )


def process(pid: int, command: list[str], run: int | None = None) -> ev.Process:
    return ev.Process(t=0, pid=pid, ppid=1, user="ana", command=command, started=1.7e9, run=run)


def test_the_table_aligns_and_leaves_no_gap_for_what_is_unknown() -> None:
    lines = list(
        table(
            [
                H200,
                reading(ev.DeviceProcess(4242, 3 * GIB, 44, None), ev.DeviceProcess(7, None)),
                process(4242, ["python", "my train.py"]),
                ev.ProcessReadings(t=0, processes=[ev.ProcessReading(4242, 101.2, GIB)]),
            ]
        )
    )
    assert lines == [
        "GPU  NAME         USED    FREE   TOTAL  UTIL  MEM-BW  POWER  TEMP",
        "  0  NVIDIA H200  3.0G  137.0G  140.0G   45%       —   269W  42°C",
        "",
        "GPU   PID  USER  GPU-MEM  %SM  %GMBW  %CPU  HOST-MEM  COMMAND",
        "  0  4242  ana      3.0G   44      —   101      1.0G  python 'my train.py'",
        "  0     7  —           —    —      —     —         —  —",
    ]


def test_a_processs_name_cannot_steer_the_terminal() -> None:
    lines = list(table([H200, reading(ev.DeviceProcess(7, 1)), process(7, ["\x1b]0;gotcha\x07"])]))
    assert not any(character in line for line in lines for character in "\x1b\x07")


def test_the_table_says_why_processes_are_missing() -> None:
    assert list(table([H200, reading(missing="the driver does not tell")]))[-1] == "GPU 0: the driver does not tell"


@pytest.fixture
def engine() -> Iterator[int]:
    """A process without children, as the engine of a script that has ended."""
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as process:
        yield process.pid


def session(id: str, *command: str, engine: int | None = None) -> SessionInfo:
    return SessionInfo(
        id=id, pid=engine or os.getpid(), started=1.7e9, command=list(command), socket="/s", output_path=None
    )


def test_attach_takes_the_only_session_or_the_one_that_is_meant() -> None:
    one, two = session("abc12", "python", "train.py"), session("abd34")
    assert choose([one], None) is one
    assert choose([one, two], "abd34") is two
    assert choose([one, two], "abc") is one


def test_attach_lists_the_sessions_when_it_cannot_choose(engine: int, capsys: pytest.CaptureFixture[str]) -> None:
    found = [session("abc12", "python", "my train.py", engine=engine), session("abd34", engine=engine)]
    with pytest.raises(Refusal, match="several sessions go on; choose one: tfmemtop attach abc12"):
        choose(found, None)
    listed = capsys.readouterr().err.splitlines()
    assert len(listed) == 2
    assert re.fullmatch(r"  abc12  ended     started .+ ago  python 'my train.py'", listed[0])
    assert re.fullmatch(r"  abd34  watching  started .+ ago  \(watching only\)", listed[1])
    with pytest.raises(Refusal, match="several sessions begin with 'ab'"):
        choose(found, "ab")
    with pytest.raises(Refusal, match="no session is called 'x'"):
        choose(found, "x")
    with pytest.raises(Refusal, match="nothing goes on"):
        choose([], None)


def allocator(t: float, in_use: int, peak: int) -> ev.Allocator:
    return ev.Allocator(
        t=t, pid=10, device="GPU:0", allocator="GPU_0_bfc", in_use=in_use, peak=peak, pool=None, limit=None
    )


def test_the_summary_tells_how_it_went() -> None:
    events: list[ev.AnyEvent] = [
        H200,
        ev.Run(t=1, run=1, pid=10, argv=["python"], cwd="/", settings=Settings()),
        process(11, ["worker"], run=1),
        process(99, ["other"]),
        reading(ev.DeviceProcess(10, GIB), ev.DeviceProcess(11, GIB), ev.DeviceProcess(99, 9 * GIB), t=2),
        reading(ev.DeviceProcess(10, GIB), ev.DeviceProcess(99, 99 * GIB), t=3),
        allocator(2, 100 << 20, 300 << 20),
        allocator(3, 200 << 20, 300 << 20),
        ev.OutOfMemory(t=4, pid=10, message="no room"),
        ev.HookEnd(t=5, pid=10, reason="exit", dropped=3),
        ev.RunEnd(t=64, run=1, exit_code=1, signal=None),
        ev.Notice(t=99, key="late", level="info", text=""),
    ]
    assert summarise(events).lines() == [
        "00:01:03, ended with exit code 1",
        "GPU:0: peak in use 300.0 MiB",
        "GPU 0 NVIDIA H200: peak process total 2.0 GiB",
        "4 readings, 3 dropped",
        "1 out-of-memory error",
    ]


@pytest.mark.parametrize(
    ("end", "words"),
    [
        (ev.RunEnd(t=2, run=1, exit_code=None, signal=11), "ended by SIGSEGV"),
        (
            ev.RunEnd(t=2, run=1, exit_code=None, signal=9, oom_killed=True),
            "ended by SIGKILL (the kernel, for host memory)",
        ),
        (ev.RunEnd(t=2, run=1, exit_code=None, signal=64), "ended by SIGRTMAX"),
        (ev.RunEnd(t=2, run=1, exit_code=None, signal=40), "ended by signal 40"),
    ],
)
def test_the_summary_names_signals(end: ev.RunEnd, words: str) -> None:
    assert summarise([end]).lines()[0].endswith(words)


def test_a_recording_cut_short_has_no_end_to_tell() -> None:
    lines = summarise([ev.Run(t=1, run=1, pid=1, argv=[], cwd="/", settings=Settings()), allocator(9, 1, 1)]).lines()
    assert lines[0] == "00:00:08, how it ended is not known"
