"""What hooks tell, well and badly, over a real socket from real processes."""

import sys
from typing import Any

import msgspec
import pytest

from tests.engine.conftest import Engines
from tfmemtop.engine import shutout
from tfmemtop.events import Allocator, Hook, HookEnd, HookError, Input, Process, RunEnd

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
    assert (reading.in_use, reading.peak, reading.pool, goodbye.reason) == (10, 20, None, "exit")


async def test_a_hook_that_goes_without_a_word_is_lost(engines: Engines) -> None:
    screen = await engines.python(SPEAK + "os._exit(3)")
    assert (await screen.until(HookEnd)).reason == "lost"


async def test_a_hook_is_lost_with_its_process_though_a_child_holds_its_socket(engines: Engines) -> None:
    program = SPEAK + "s.set_inheritable(True)\nif os.fork() == 0:\n input()\nos._exit(0)"
    screen = await engines.python(program)
    assert (await screen.until(HookEnd)).reason == "lost"


@pytest.mark.parametrize(
    "packet",
    [
        b"no json",
        b"[1]",
        b'{"type":"run","run":1}',
        b'{"type":"allocator","device":7}',
        b"\xff\xfe",
        b'{"type":"hook_error","text":"' + b"x" * 70_000 + b'"}',
    ],
)
async def test_a_bad_packet_is_told_once_and_the_good_ones_still_count(engines: Engines, packet: bytes) -> None:
    program = SPEAK + f"s.send({packet!r})\ns.send({packet!r})\n" + saying(**READING)
    if len(packet) > 1000:
        program = program.replace(repr(packet), 'b\'{"type":"hook_error","text":"\' + b\'x\' * 70_000 + b\'"}\'')
    screen = await engines.python(program)
    await screen.until(RunEnd)
    assert len(screen.all(HookError)) == 1
    assert len(screen.all(Allocator)) == 1


def test_every_word_of_the_hooks_can_be_spoken() -> None:
    # The agent's own tests speak to a real engine; here, that an event's own JSON is accepted.
    event = Allocator(t=1.0, pid=2, device="GPU:0", allocator=None, in_use=1, peak=2, pool=3, limit=4)
    assert msgspec.convert(msgspec.json.decode(msgspec.json.encode(event)), Allocator) == event


@pytest.mark.parametrize(
    ("command", "flag"),
    [
        (["python", "-I", "x.py"], "I"),
        (["python", "-uIs", "x.py"], "I"),
        (["python", "-X", "dev", "-E", "x.py"], "E"),
        (["python", "-Wignore", "-S", "-m", "x"], "S"),
        (["python", "-s", "-P", "x.py", "-I"], None),
        (["python", "-c", "code", "-I"], None),
        (["python", "-m", "mod", "-E"], None),
        (["python", "-W", "-I", "x.py"], None),
        (["python"], None),
    ],
)
def test_pythons_own_options_are_told_from_the_scripts(command: list[str], flag: str | None) -> None:
    assert shutout.shutting_flag(command) == flag


HAS_TENSORFLOW = "import tensorflow\nprint('loaded', flush=True)\ninput()"


@pytest.mark.parametrize(
    ("argv", "reason"),
    [
        ([sys.executable, "-Iu", "-c", HAS_TENSORFLOW], "-I"),
        (["env", "-u", "PYTHONPATH", sys.executable, "-c", HAS_TENSORFLOW], "environment was cleaned"),
    ],
)
async def test_a_process_whose_hook_was_shut_out_is_told_with_the_reason(
    engines: Engines, argv: list[str], reason: str
) -> None:
    screen = await engines.run(*argv)
    told = await screen.until(Process, lambda process: process.hooked_out is not None)
    assert reason in (told.hooked_out or "")
    await screen.client.send(Input(text="\n"))
