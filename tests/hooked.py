"""A real listener in the place of the engine, and functions that run scripts with and without the hook."""

import json
import os
import re
import select
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import IO, Any, NamedTuple, Protocol

import pytest

from tests import sparing
from tests.forked import Forked, Forking
from tests.patience import PATIENCE_S
from tests.starting import ran
from tfmemtop.engine.process.launch import path_with_hook

INJECT = Path(__file__).parents[1] / "tfmemtop" / "inject"

PYTHON = os.environ.get("TFMEMTOP_TEST_PYTHON") or sys.executable
"""The Python that runs the scripts.

It can differ from the Python of the tests, to try the hook in another version, as ``tests/matrix.py`` does.
"""

VERSION = tuple(map(int, subprocess.check_output([PYTHON, "-c", "print(*__import__('sys').version_info[:2])"]).split()))
"""The version of that Python: major, minor."""

POOL = {"TF_CPU_ALLOCATOR_USE_BFC": "true", "TF_CPU_BFC_MEM_LIMIT_IN_MB": "512"}
"""These variables make TensorFlow use its GPU allocator on the CPU: the tests need a pool and no GPU."""


INTERVAL = "0.02"
"""Seconds between readings, as sent to hooks in ``TFMEMTOP_INTERVAL``."""

Event = dict[str, Any]


class Monitor:
    """Accepts hooks on a SEQPACKET socket and keeps the events that they send, each with the ``pid`` of its sender."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._events: list[Event] = []
        self._arrived = threading.Condition()
        self._asked = self._answered = 0
        self._fails = True  # whether an error of a hook fails the test
        self._reading = threading.Event()
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._listener.bind(str(path))
        self._listener.listen(16)
        self._lines: dict[socket.socket, int] = {}
        self._bell, self._rope = socket.socketpair()
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._reading.set()
        self._thread.start()

    def _listen(self) -> None:
        while True:
            self._reading.wait()
            ready = select.select([self._listener, self._bell, *self._lines], [], [])[0]
            if ready == [self._bell]:  # nothing that was sent before is left
                if not self._bell.recv(1):
                    break
                with self._arrived:
                    self._answered += 1
                    self._arrived.notify_all()
            if self._listener in ready:
                line = self._listener.accept()[0]
                credentials = line.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
                self._lines[line] = struct.unpack("iII", credentials)[0]
            for line in [line for line in self._lines if line in ready]:
                self._take(line)
        for line in self._lines:
            line.close()
        self._listener.close()

    def _take(self, line: socket.socket) -> None:
        try:
            packet = line.recv(1 << 20)
        except ConnectionResetError:
            packet = b""
        event = json.loads(packet) if packet else {"type": "end of line"}
        with self._arrived:
            self._events.append({**event, "pid": self._lines[line]})
            self._arrived.notify_all()
        if not packet:
            line.close()
            del self._lines[line]

    def wait_for(self, wanted: Callable[[Event], bool]) -> Event:
        """Wait for the first event for which *wanted* returns true, and return it. It is called once for each event."""
        asked = 0

        def found() -> Event | None:
            nonlocal asked
            for event in islice(self._events, asked, None):
                asked += 1
                if wanted(event):
                    return event
            return None

        with self._arrived:
            event = self._arrived.wait_for(found, PATIENCE_S)
            assert event is not None, self._events
            return event

    def error(self) -> Event:
        """Wait for the first error of a hook, and return it. The test expects errors, so they do not fail it."""
        self._fails = False
        return self.wait_for(lambda event: event["type"] == "hook_error")

    def say(self, pid: int, message: Event) -> None:
        """Send *message* to the hook of *pid*."""
        with self._arrived:
            line = next(line for line, sender in self._lines.items() if sender == pid)
        line.send(json.dumps(message).encode())

    @property
    def events(self) -> list[Event]:
        """The events so far, with all that was sent before: what a process that has ended sent may still be unread."""
        with self._arrived:
            if self._reading.is_set() and self._thread.is_alive():
                self._asked += 1
                self._rope.send(b".")
                assert self._arrived.wait_for(lambda: self._answered >= self._asked, PATIENCE_S)
            return self._events

    def of(self, kind: str, pid: int | None = None) -> list[Event]:
        """Return the events of *kind* so far: those of *pid*, or of all processes if it is None."""
        return [event for event in list(self.events) if event["type"] == kind and pid in (None, event["pid"])]

    def stop_reading(self) -> None:
        """Stop reading. From now on, events stay in the sockets."""
        with self._arrived:
            self._reading.clear()
            self._asked += 1
            self._rope.send(b".")

    def go_on_reading(self) -> None:
        """Read again. The events that waited in the sockets come first."""
        self._reading.set()

    def die(self) -> None:
        """Close all sockets, as happens when an engine is killed."""
        self._reading.set()
        self._rope.close()
        self._thread.join(PATIENCE_S)

    def end(self) -> None:
        """Close all sockets, and check that no hook has reported an error that the test did not expect."""
        self.die()
        assert not self._fails or not self.of("hook_error")


@pytest.fixture
def monitor(tmp_path: Path) -> Iterator[Monitor]:
    monitor = Monitor(tmp_path / "hook.sock")
    yield monitor
    monitor.end()


class ProcessOutcome(NamedTuple):
    """The exit code and the output of a process, without the parts of the output that differ from start to start."""

    code: int
    out: str
    err: str


Script = Callable[[str], str]
"""Writes a script of this source, and returns its path."""


class Process(Protocol):
    """A script that was started: a forked process, or a new one."""

    @property
    def pid(self) -> int: ...
    @property
    def stdin(self) -> IO[str] | None: ...
    @property
    def stdout(self) -> IO[str] | None: ...
    @property
    def returncode(self) -> int | None: ...
    def send_signal(self, sig: int) -> None: ...
    def communicate(self, input: str | None = None, timeout: float | None = None) -> tuple[str, str]: ...


def environment(monitor: Monitor | None, **more: str) -> dict[str, str]:
    """Return an environment for a script, with the hook if there is a *monitor*."""
    variables = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "TF"))}
    variables |= {"TF_CPP_MIN_LOG_LEVEL": "3", "TF_ENABLE_ONEDNN_OPTS": "0", **POOL, **more}
    if monitor is not None:
        variables["PYTHONPATH"] = path_with_hook(variables.get("PYTHONPATH", ""))
        variables |= {"TFMEMTOP_SOCKET": str(monitor.path)}
        variables.setdefault("TFMEMTOP_INTERVAL", INTERVAL)
    return variables


def start(monitor: Monitor | None, *arguments: str, python: str = PYTHON, **more: str) -> subprocess.Popen[str]:
    """Start Python with *arguments*, with the hook if there is a *monitor*. *more* are environment variables.

    If the script imports TensorFlow, ``tests.sparing`` leaves out what most tests do not need. A test that gives a
    ``PYTHONPATH``, even an empty one, prevents that.
    """
    pipe = subprocess.PIPE
    if "PYTHONPATH" not in more:
        more |= sparing.for_command(arguments)
    return subprocess.Popen(
        [python, *arguments], env=environment(monitor, **more), stdin=pipe, stdout=pipe, stderr=pipe, text=True
    )


def line(process: Process) -> str:
    """Return the next line that *process* prints."""
    assert process.stdout is not None
    return process.stdout.readline().strip()


def typed(process: Process) -> None:
    """Type an empty line to *process*."""
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()


def outcome(process: Process, typed: str = "") -> ProcessOutcome:
    """Write *typed* to *process*, wait for its end, and return its outcome."""
    out, err = process.communicate(typed, timeout=PATIENCE_S)
    assert process.returncode is not None
    return ProcessOutcome(process.returncode, steady(out), steady(err))


def run(monitor: Monitor | None, *arguments: str, **more: str) -> ProcessOutcome:
    """Run Python with *arguments* to its end, with the hook if there is a *monitor*."""
    return outcome(start(monitor, *arguments, **more))


def both(monitor: Monitor, *arguments: str, **more: str) -> tuple[ProcessOutcome, ProcessOutcome]:
    """Run the same program without and with the hook, at the same time. Return both outcomes in that order."""
    bare, hooked = (start(each, *arguments, **more) for each in (None, monitor))
    return outcome(bare), outcome(hooked)


def steady(text: str) -> str:
    """Return *text* without the parts that change from run to run.

    These are times, process ids and addresses in TensorFlow's log, and the pid in Python's warning about forks.
    """
    text = re.sub(r"(?m)^([IWEF])\d{4} \d\d:\d\d:[\d.]+ +\d+ ", r"\1 ", text)
    text = re.sub(r"(?m)^\d{4}-\d\d-\d\d [\d:.]+: ", "", text)
    text = re.sub(r"\(pid=\d+\) is multi-threaded", "(pid=1) is multi-threaded", text)
    return re.sub(r"0x[0-9a-f]+", "0x", text)


def working_tensorflow(folder: Path) -> str:
    """Write a ``tensorflow`` package that does nothing. Return the folder to put into ``PYTHONPATH``.

    The import of this package loads the agent, like that of the real one.
    """
    package = folder / "packages" / "tensorflow"
    (package / "python").mkdir(parents=True)
    (package / "__init__.py").write_text("import tensorflow.python\n")
    # The agent could need these modules, too, and could have imported them earlier.
    (package / "python" / "__init__.py").write_text("import atexit, ctypes, fcntl, weakref, signal, re\n")
    return str(package.parent)


OPERATIONS_ELSEWHERE = """
import threading
from tensorflow.python import pywrap_tfe

elsewhere = []

def watched(function):
    def call(*args):
        if threading.current_thread() is not threading.main_thread():
            elsewhere.append(args)
        return function(*args)
    return call

for name in ("TFE_Py_FastPathExecute", "TFE_Py_Execute", "TFE_Py_ExecuteCancelable"):
    setattr(pywrap_tfe, name, watched(getattr(pywrap_tfe, name)))
"""
"""Code that stores in ``elsewhere`` every operation that runs in a thread other than the script's main thread."""


@pytest.fixture
def script(tmp_path: Path) -> Callable[[str], str]:
    """Return a function that writes a script and returns its path."""

    def write(source: str) -> str:
        path = tmp_path / "train.py"
        path.write_text(source)
        return str(path)

    return write


@pytest.fixture(scope="session")
def tensorflow() -> tuple[Path, str]:
    """Return folder and version of the package, as the Python that runs the scripts finds it."""
    program = """
from importlib.metadata import version
from importlib.util import find_spec
print(find_spec("tensorflow").origin)
print(version("tensorflow"))
"""
    done = ran([PYTHON, "-c", program], check=True)
    origin, version = done.stdout.splitlines()
    return Path(origin).parent, version.replace("rc", "-rc")  # as TensorFlow itself spells it


@pytest.fixture(scope="session")
def tensorflow_folder(tensorflow: tuple[Path, str]) -> Path:
    return tensorflow[0]


class Forks:
    """Starts scripts in which TensorFlow is already imported, with the hook and without it.

    In each script the hook starts again, as it does in the workers of ``multiprocessing``.
    """

    def __init__(self, hooked: Forking, bare: Forking, folder: Path) -> None:
        self._hooked, self._bare, self._folder = hooked, bare, folder
        self._started: list[Forked] = []

    def start(self, monitor: Monitor | None, *arguments: str, **more: str) -> Process:
        """Start a script like the function ``start``. The first of *arguments* is the path of the script.

        *monitor* is None, for no hook, or the monitor of the test. Of *more*, the hook heeds nothing: it has started.
        """
        forking = self._bare if monitor is None else self._hooked
        self._started.append(forking.start(*arguments, folder=self._folder, **more))
        return self._started[-1]

    def up(self, monitor: Monitor, *arguments: str) -> Process:
        """Start a script that prints ``up`` and then waits; return it once it waits."""
        process = self.start(monitor, *arguments)
        assert line(process) == "up"
        return process

    def run(self, monitor: Monitor | None, *arguments: str, **more: str) -> ProcessOutcome:
        """Run a script like the function ``run``."""
        return outcome(self.start(monitor, *arguments, **more))

    def both(self, monitor: Monitor, *arguments: str) -> tuple[ProcessOutcome, ProcessOutcome]:
        """Run a script without and with the hook, like the function ``both``."""
        bare, hooked = self.start(None, *arguments), self.start(monitor, *arguments)
        return outcome(bare), outcome(hooked)

    def close(self) -> None:
        """End all scripts that still run."""
        for script in self._started:
            script.close()


@pytest.fixture(scope="session")
def tensorflow_bare(shared: Path) -> Iterator[Forking]:
    """A process that has imported TensorFlow without the hook."""
    forking = Forking(shared, "bare", [PYTHON], environment(None, **sparing.variables("")))
    yield forking
    forking.close()


@pytest.fixture(scope="session")
def tensorflow_hooked(shared: Path) -> Iterator[Forking]:
    """A process that has imported TensorFlow with the hook.

    The hook of each script sends to the monitor of the test. It writes windows and maps to ``dumps`` in the test's
    folder, once that exists.
    """
    hook = {"TFMEMTOP_SOCKET": "hook.sock", "TFMEMTOP_DATA": "dumps", "TFMEMTOP_INTERVAL": INTERVAL}
    variables = environment(None, **sparing.variables(""), **hook)
    variables["PYTHONPATH"] = path_with_hook(variables["PYTHONPATH"])
    forking = Forking(shared, "hooked", [PYTHON], variables)
    yield forking
    forking.close()


@pytest.fixture
def forks(tensorflow_hooked: Forking, tensorflow_bare: Forking, tmp_path: Path) -> Iterator[Forks]:
    forks = Forks(tensorflow_hooked, tensorflow_bare, tmp_path)
    yield forks
    forks.close()
