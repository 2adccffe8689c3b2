"""Fixtures that start the program on a real terminal, with folders of the test's own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import pexpect
import pytest

from tests import sparing
from tests.own_sessions import own_sessions
from tests.patience import PATIENCE_S, end

PROGRAM = str(Path(sys.executable).with_name("tfmemtop"))

Start = Callable[..., "pexpect.spawn[str]"]


def ran(
    command: Sequence[str | Path],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    stdin: str | None = None,
    check: bool = False,
) -> subprocess.CompletedProcess[str]:
    """Run *command* to its end, without a terminal."""
    return subprocess.run(
        command, input=stdin, capture_output=True, text=True, check=check, timeout=PATIENCE_S, cwd=cwd, env=env
    )


def tfmemtop(
    *words: str, stdin: str = "", cwd: Path | None = None, variables: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run the installed program to its end, without a terminal."""
    environment = {**os.environ, **sparing.for_command(words, cwd or Path()), **(variables or {})}
    return ran([PROGRAM, *words], stdin=stdin, cwd=cwd, env=environment)


def on_pty(
    *command: str, size: tuple[int, int] = (100, 30), cwd: Path | None = None, env: dict[str, str] | None = None
) -> pexpect.spawn[str]:
    """Start *command* on a pty of its own."""
    return pexpect.spawn(
        command[0],
        list(command[1:]),
        dimensions=size[::-1],
        env=dict(os.environ) if env is None else env,
        encoding="utf-8",
        timeout=PATIENCE_S,
        cwd=None if cwd is None else str(cwd),
    )


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """Give the test folders of its own for sessions and outputs. After the test, end the engines that still run."""
    # Not tmp_path: a socket's path has to be short.
    with tempfile.TemporaryDirectory(prefix="tfm", dir="/tmp") as runtime:
        monkeypatch.setenv("XDG_RUNTIME_DIR", runtime)
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
        monkeypatch.setenv("TERM", "xterm-256color")
        yield tmp_path
        for session in own_sessions():
            os.kill(session.pid, signal.SIGTERM)


@pytest.fixture
def start(home: Path) -> Iterator[Start]:
    """A function that starts tfmemtop on a pty. The ``before`` of its result is the output before the last match."""
    started: list[pexpect.spawn[str]] = []

    def start(*arguments: str, size: tuple[int, int] = (100, 30), **environment: str) -> pexpect.spawn[str]:
        started.append(on_pty(PROGRAM, *arguments, size=size, env=os.environ | environment, cwd=home))
        return started[-1]

    yield start
    for child in started:
        if child.child_fd >= 0:
            end(child)


def ended(child: pexpect.spawn[str]) -> tuple[int | None, str]:
    """Wait for the end. Return the exit code, and the text that was printed since the last match."""
    child.expect(pexpect.EOF)
    child.close()
    return child.exitstatus, child.before or ""
