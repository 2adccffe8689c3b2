"""Good and bad messages of hooks, sent over a real socket by real processes."""

import asyncio
import json
import os
import resource
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.engines import Engines
from tests.limited import limited
from tests.patience import PATIENCE_S
from tfmemtop.engine.process.launch import INJECT, mark
from tfmemtop.engine.sources.hooks import Hooks
from tfmemtop.engine.sources.host import find_absence, shutting_flag
from tfmemtop.engine.stream import Stream
from tfmemtop.engine.stream.folders import listen, peer
from tfmemtop.events import (
    Absence,
    Allocator,
    Event,
    Hook,
    HookAbsence,
    HookEnd,
    HookEnding,
    Input,
    Notice,
    Probe,
    ProbeState,
    Process,
    RunEnd,
)

SPEAK = """
import json, os, socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
s.connect(os.environ["TFMEMTOP_SOCKET"])
def say(**fields): s.send(json.dumps(fields).encode())
say(type="hook", ppid=os.getppid(), argv=sys.argv, python="3.11", executable=sys.executable)
"""
READING: dict[str, Any] = {"type": "allocator", "device": "GPU:0", "allocator": "bfc"}
READING |= {"in_use": 10, "peak": 20, "pool": None, "limit": None}


def saying(**fields: Any) -> str:
    return f"say(**{fields!r})\n"


async def test_readings_arrive_with_the_pid_the_kernel_knows(engines: Engines) -> None:
    screen = await engines.python(SPEAK + saying(**READING, pid=1, t=99.0) + saying(type="hook_end", reason="exit"))
    end = await screen.until(RunEnd)
    (hook,) = screen.all(Hook)
    (reading,) = screen.all(Allocator)
    (goodbye,) = screen.all(HookEnd)
    assert reading.pid == hook.pid == goodbye.pid != 1
    assert hook.t <= reading.t <= goodbye.t <= end.t < 90
    assert (reading.in_use, reading.peak, reading.pool, goodbye.reason) == (10, 20, None, HookEnding.EXIT)


async def test_a_hook_is_lost_with_its_process_though_a_child_holds_its_socket(engines: Engines) -> None:
    program = SPEAK + "s.set_inheritable(True)\nif os.fork() == 0:\n input()\nos._exit(0)"
    screen = await engines.python(program)
    assert (await screen.until(HookEnd)).reason is HookEnding.LOST


@contextmanager
def connected(folder: Path) -> Iterator[tuple[Hooks, socket.socket, list[Event]]]:
    """Yield the engine's end, a hook's end, and the events that were published. The hook's end is closed first."""
    stream, told = Stream(), list[Event]()
    stream.listen(told.append)
    hooks = Hooks(stream, listen(folder / "hook.sock", socket.SOCK_SEQPACKET))
    hooks.begin()
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as hook:
        hook.connect(str(folder / "hook.sock"))
        yield hooks, hook, told


async def test_last_words_count_though_what_was_said_to_the_hook_is_unread(tmp_path: Path) -> None:
    with connected(tmp_path) as (hooks, hook, told):
        hooks.drain()
        assert hooks.send(os.getpid(), {"do": "census"})
        hook.send(b'{"type":"probe","state":"loading"}')
    hooks.drain()
    hooks.close()
    assert [event.state for event in told if isinstance(event, Probe)] == [ProbeState.LOADING]


BAD_PACKETS = [
    b"no json",
    b"[1]",
    b'{"type":"run","run":1}',
    b'{"type":"allocator","device":7}',
    b"\xff\xfe",
    b'{"type":"hook_error","text":"' + b"x" * 70_000 + b'"}',
    b'{"type":"hook_end","reason":"exit","more":' + b"[" * 30_000 + b"]" * 30_000 + b"}",
    b"[" * 60_000,
    json.dumps(READING | {"peak": 10**310}).encode(),
    json.dumps(READING | {"pool": -1}).encode(),
    json.dumps(READING | {"device": "G" * 5000}).encode(),
    json.dumps({"type": "memory_map", "device": "GPU:0", "fragmentation": 1e308}).encode(),
    json.dumps({"type": "pool_growth", "device": "GPU:0", "at": -1e9, "before": 1, "after": 2}).encode(),
    json.dumps({"type": "functions", "functions": [["f", 1, 1, "a.py", 1]] * 300}).encode(),
]


async def test_a_bad_packet_is_told_once_and_the_good_ones_still_count(engines: Engines, tmp_path: Path) -> None:
    """Each bad packet is sent twice, by a process of its own."""
    for number, packet in enumerate(BAD_PACKETS):
        (tmp_path / f"packet-{number}").write_bytes(packet)  # too long for a command line
    speak = f"{SPEAK}\npacket = open(name, 'rb').read()\ns.send(packet)\ns.send(packet)\n{saying(**READING)}"
    program = f"""
import os
for number in range({len(BAD_PACKETS)}):
    if os.fork() == 0:
        name = f"packet-{{number}}"
        exec({speak!r})
        os._exit(0)
    os.wait()
"""
    screen = await engines.python(program)
    await screen.until(RunEnd)
    for pids in (
        [notice.about for notice in screen.all(Notice) if notice.key.startswith("hook-error")],
        [reading.pid for reading in screen.all(Allocator)],
    ):
        assert len(pids) == len(set(pids)) == len(BAD_PACKETS)


def most_memory(engine: str) -> int:
    """Return the most bytes that the *engine* with this socket has held until now."""
    with socket.socket(socket.AF_UNIX) as line:
        line.connect(engine)
        status = Path(f"/proc/{peer(line)[0]}/status").read_text().split()
    return int(status[status.index("VmHWM:") + 1]) << 10


async def test_a_flood_of_large_messages_takes_no_memory_and_is_told(engines: Engines) -> None:
    flood = "for _ in range(8_000): say(type='hook_error', text='x' * 20_000)\n"
    launched = engines.launch(sys.executable, "-c", SPEAK + flood + saying(**READING), keep=True)
    screen = await engines.look(launched.socket)
    await screen.until(RunEnd)
    assert any(notice.key == "left-out-messages" for notice in screen.all(Notice))
    assert len(screen.all(Allocator)) == 1  # the flood is of another kind
    assert most_memory(launched.socket) < 120 << 20


async def test_where_no_descriptor_is_left_hooks_wait(tmp_path: Path) -> None:
    address = str(tmp_path / "hook.sock")
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(address)
        listener.listen()
        listener.setblocking(False)
        stream = Stream()
        told: asyncio.Queue[Event] = asyncio.Queue()
        stream.listen(told.put_nowait)
        hooks = Hooks(stream, listener)
        hooks.begin()
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as agent:
            with limited(resource.RLIMIT_NOFILE, agent.fileno() + 1):
                agent.connect(address)
                hooks.drain()
                assert not asyncio.get_running_loop().remove_reader(listener), "the loop does not spin"
            agent.send(json.dumps(READING).encode())
            assert isinstance(await asyncio.wait_for(told.get(), PATIENCE_S), Allocator)
        hooks.close()


@pytest.mark.parametrize(
    ("command", "flag"),
    [
        (["python", "-I", "x.py"], "I"),
        (["python", "-uIs", "x.py"], "I"),
        (["python", "-Wignore", "-S", "-m", "x"], "S"),
        (["python", "-s", "-P", "x.py", "-I"], None),
        (["python", "-c", "code", "-I"], None),
        (["python", "-W", "-I", "x.py"], None),
    ],
)
def test_pythons_own_options_are_told_from_the_scripts(command: list[str], flag: str | None) -> None:
    assert shutting_flag(command) == flag


@pytest.mark.programs
def test_a_process_that_another_session_watches_is_told_with_that_session() -> None:
    other = Path("/tmp/nobody/qzpx9/hook.sock")
    environment = dict(os.environ) | {"PYTHONPATH": str(INJECT), "TFMEMTOP_SOCKET": str(other)}
    waits, pipe = [sys.executable, "-c", "print(flush=True); input()"], subprocess.PIPE
    with subprocess.Popen(waits, stdin=pipe, stdout=pipe, env=environment) as process:
        assert process.stdout is not None
        process.stdout.readline()  # before this, its environment may not be readable yet
        ours = mark(Path("/tmp/nobody/fj83t/hook.sock"))
        found = find_absence(process.pid, INJECT, ours)
        same = find_absence(process.pid, INJECT, mark(other))
        process.communicate(b"\n")
    assert found == HookAbsence(Absence.OTHER_SESSION, session="qzpx9")
    assert found.remedy == "See it there: tfmemtop attach qzpx9."
    assert same == HookAbsence(Absence.UNEXPLAINED)


# Everything of TensorFlow that is visible from outside: its library, and a process that is not small.
HAS_ITS_LIBRARY = """
import ctypes, importlib.util, os
folder = os.path.dirname(importlib.util.find_spec("tensorflow").origin)
library, ballast = ctypes.CDLL(folder + "/libtensorflow_framework.so.2"), b"x" * (128 << 20)
input()
"""


@pytest.mark.tensorflow
@pytest.mark.parametrize(
    ("argv", "reason"),
    [
        ([sys.executable, "-Iu", "-c", HAS_ITS_LIBRARY], Absence.ISOLATED),
        (["env", "-u", "PYTHONPATH", sys.executable, "-c", HAS_ITS_LIBRARY], Absence.ENVIRONMENT_CLEANED),
    ],
)
async def test_a_process_whose_hook_was_shut_out_is_told_with_the_reason(
    engines: Engines, argv: list[str], reason: Absence
) -> None:
    screen = await engines.run(*argv)
    told = await screen.until(Process, lambda process: process.hook_absence is not None)
    assert told.hook_absence == HookAbsence(reason)
    await screen.client.send(Input(text="\n"))
