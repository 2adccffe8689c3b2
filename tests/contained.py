"""Runs a program as the first process of a container: PID 1 of a PID namespace, as a user whom nobody knows there.

No container runtime is needed. ``unshare`` makes the namespaces, also for ordinary users where the Linux kernel allows
it. The network and the files are those of the machine.
"""

import functools
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from tests.patience import until
from tests.starting import ran

USER = 54321
"""The number of the user in the container. No system has an entry for it."""

CHECKPOINT = """
import signal, sys
def end(*_):
    print("checkpoint", flush=True)
    sys.exit(9)
signal.signal(signal.SIGTERM, end)
print("up", flush=True)
while True:
    signal.pause()
"""
"""A program that prints ``up``, and on SIGTERM ``checkpoint``, and ends with exit code 9."""

_UNSHARE = ("unshare", "--user", f"--map-user={USER}", "--uts", "--pid", "--fork", "--mount-proc", "--kill-child")
_READ_ONLY = 'mount --bind "$1" "$1" && mount -o remount,bind,ro / && cd "$1" && shift && exec "$@"'
_HIDDEN = 'while [ "$1" != -- ]; do mount --bind /dev/null "$1" || exit; shift; done; shift; exec "$@"'


def contained(*command: str, writable: Path | None = None) -> list[str]:
    """Return the command line that runs *command* in a container. Its exit code is that of *command*.

    With *writable*, the container's root file system is read-only except for this folder, in which *command* starts.

    If namespaces cannot be made here, the test is skipped.
    """
    if refused := _refused():
        pytest.skip(f"no namespaces here: {refused}")
    if writable is None:
        return [*_UNSHARE, *command]
    outer = ("unshare", "--user", "--map-root-user", "--mount", "--kill-child")
    return [*outer, "sh", "-c", _READ_ONLY, "sh", str(writable), *_UNSHARE, *command]


def on_read_only(folder: Path, *command: str, **variables: str) -> "subprocess.CompletedProcess[str]":
    """Run *command* in a container in which only *folder* can be written to.

    Of the variables that name the user's folders, it has only *variables*.
    """
    named = ("HOME", "TMPDIR", "XDG_RUNTIME_DIR", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME")
    return ran(
        contained(*command, writable=folder),
        env={name: value for name, value in os.environ.items() if name not in named} | variables,
    )


def without(programs: Iterable[str], *command: str) -> list[str]:
    """Return the command line that runs *command* where none of *programs* can be started."""
    if refused := _refused():
        pytest.skip(f"no namespaces here: {refused}")
    hidden = {os.path.realpath(found) for name in programs if (found := shutil.which(name))}
    return ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", _HIDDEN, "sh", *hidden, "--", *command]


def first_process(started: int) -> psutil.Process:
    """Return the first process of the container that the process *started* makes. Wait until it runs the command."""
    found: list[psutil.Process] = []

    def is_there() -> bool:
        # Others are children of the shell that prepares the container, and gone in a moment.
        found[:] = [one for one in psutil.Process(started).children(recursive=True) if _numbers(one.pid)[1:] == ["1"]]
        return bool(found) and found[0].name() != "unshare"

    until(is_there)
    return found[0]


def _numbers(pid: int) -> list[str]:
    """Return the numbers of a process: its own, and one for each PID namespace within; empty if it has ended."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return []
    return next((line.split()[1:] for line in lines if line.startswith("NSpid:")), [])


@contextmanager
def running(
    *command: str, folder: Path | None = None, variables: Mapping[str, str] | None = None
) -> Iterator[tuple["subprocess.Popen[str]", psutil.Process]]:
    """Run *command* in a container during the ``with`` block, and yield it and the container's first process.

    Only *folder* can be written to, if it is given. The *variables* are added to those of the tests.
    """
    with subprocess.Popen(
        contained(*command, writable=folder),
        env={**os.environ, **(variables or {})},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process, first_process(process.pid)
        finally:
            process.kill()


@functools.cache
def _refused() -> str:
    """Return why namespaces cannot be made here; empty if they can."""
    check = "import os, sys; sys.exit(0 if (os.getpid(), os.getuid()) == (1, int(sys.argv[1])) else 3)"
    try:
        done = ran([*_UNSHARE, sys.executable, "-c", check, str(USER)])
    except OSError as error:
        return f"unshare: {error.strerror}"
    return done.stderr.strip() or f"unshare: exit code {done.returncode}" if done.returncode else ""
