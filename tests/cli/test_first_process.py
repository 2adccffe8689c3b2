"""tfmemtop as the first process of a container: it passes signals on, collects orphans, and ends with the script."""

import os
import shutil
import signal
import sys
from contextlib import suppress
from pathlib import Path

import pexpect
import psutil
import pytest

from tests.contained import USER, contained, first_process, on_read_only, running
from tests.patience import PATIENCE_S, until
from tests.starting import PROGRAM, on_pty
from tfmemtop.events import RunEnd
from tfmemtop.events.recording import read

pytestmark = pytest.mark.programs

INITS = ("tini", "dumb-init", "catatonit")
"""What ``docker run --init`` and ``podman run --init`` put before the command; dumb-init is in many images."""

ORPHANS = """
import os, sys
for _ in range(20):
    if os.fork() == 0:
        if os.fork() == 0:
            sys.stdin.close()
            os._exit(0)
        os._exit(0)
    os.wait()
print("up", flush=True)
input()
sys.exit(5)
"""


def zombies(first: psutil.Process) -> int:
    number = 0
    for one in first.children(recursive=True):
        with suppress(psutil.NoSuchProcess):  # it has been collected meanwhile
            number += one.status() == psutil.STATUS_ZOMBIE
    return number


def test_an_unknown_user_without_a_home_on_a_read_only_system_can_record(tmp_path: Path) -> None:
    """A pod with ``runAsUser`` and ``readOnlyRootFilesystem``. Sockets have to be in another place than ``/tmp``."""
    done = on_read_only(tmp_path, PROGRAM, "record", "-o", "run.jsonl", "--", "sh", "-c", "id -u; echo ${HOME-none}")
    assert (done.returncode, done.stdout) == (0, f"{USER}\nnone\n"), done.stderr
    assert done.stderr.endswith("tfmemtop: recorded in run.jsonl\n")
    assert [event.exit_code for event in read(tmp_path / "run.jsonl").events() if isinstance(event, RunEnd)] == [0]


def test_a_script_that_does_not_handle_sigterm_ends_by_it(tmp_path: Path) -> None:
    """As the first process of a container it would ignore the signal, and be killed at the end of the grace period."""
    command = ("sh", "-c", "echo up; exec sleep 300")
    with running(PROGRAM, "record", "-o", str(tmp_path / "run.jsonl"), "--", *command) as (process, first):
        assert process.stdout and process.stdout.readline() == "up\n"
        first.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 128 + signal.SIGTERM
    assert "ended by SIGTERM" in said


def test_sigterm_at_the_very_start_ends_it(tmp_path: Path) -> None:
    """It stands still at its options, which are in a pipe."""
    options = tmp_path / "tfmemtop" / "config.toml"
    options.parent.mkdir()
    os.mkfifo(options)
    command = (PROGRAM, "record", "-o", str(tmp_path / "run.jsonl"), "--", "echo", "started")
    with running(*command, variables={"XDG_CONFIG_HOME": str(tmp_path)}) as (process, first):
        with options.open("w"):  # waits until the other end is opened
            first.send_signal(signal.SIGTERM)
        printed, said = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, printed, said) == (128 + signal.SIGTERM, "", "")


def test_orphans_are_collected(tmp_path: Path) -> None:
    with running(PROGRAM, "record", "-o", str(tmp_path / "run.jsonl"), "--", sys.executable, "-c", ORPHANS) as (
        process,
        first,
    ):
        assert process.stdout and process.stdout.readline() == "up\n"
        until(lambda: not zombies(first))
        process.communicate("\n", timeout=PATIENCE_S)
    assert process.returncode == 5


@pytest.mark.parametrize("init", ["", *INITS])
def test_a_screen_collects_orphans_too_and_waits_for_the_script_when_it_is_left(tmp_path: Path, init: str) -> None:
    """The container ends with its first process, or with the program that this process, an init, has started.

    A script that was left running would be killed.
    """
    if init and not shutil.which(init):
        pytest.skip(f"{init} is not installed")
    stop = tmp_path / "stop"
    os.mkfifo(stop)
    orphans = ORPHANS.replace("input()", f"open({str(stop)!r}).read()")
    command = contained(*([init, "--"] if init else []), PROGRAM, "--", sys.executable, "-c", orphans)
    variables = {"XDG_STATE_HOME": str(tmp_path), "LANG": "C.UTF-8", "TERM": "xterm-256color"}
    with on_pty(*command, env=os.environ | variables) as screen:
        screen.expect("up")
        first = first_process(screen.pid)
        until(lambda: not zombies(first))
        screen.send("q")
        screen.expect("leave it running")
        screen.send("l")
        screen.expect("this command waits for it")
        assert first.is_running()
        stop.write_text("")
        screen.expect("recorded in")
        screen.expect(pexpect.EOF)
        screen.close()
        assert screen.exitstatus == 5
