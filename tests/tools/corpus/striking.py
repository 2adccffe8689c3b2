"""One kill: start a training under tfmemtop, strike, and check what has become of it."""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from tests.tools.corpus import running
from tests.tools.corpus.box import TFMEMTOP, Box
from tests.tools.corpus.family import found_by_name, roles
from tests.tools.corpus.kill_table import Plan, expected, number_of
from tests.tools.corpus.running import wait
from tests.tools.corpus.script import Script, py
from tests.tools.terminal import Terminal
from tfmemtop.engine.sources.processes import descendants, is_alive, read_command
from tfmemtop.events import Relaunch, Stop, encode
from tfmemtop.settings import Settings

CODE = 17
_TURNS, _TURNS_OUTSIDE = 40, 400
_LIMIT_S = 120.0  # all that has to come comes much sooner, unless the machine is busy
_AGAIN_S = 4.0  # for a run that may come
_LOOK_S = 0.01
_LENGTH_S = {"start": 0.35, "silent": 0.25, "printing": 0.7, "exit": 0.12, "relaunch": 0.35, "reading": 3.0}
_STOPPED_S = 0.2
_BEFORE, _SLACK = 4, 12
"""Numbers of lines before and after the blow that may be in transit when it falls. These lines need not be kept."""

_COUNT = """
import os, sys, time
TENSORFLOW
with open("pid.new", "w") as file:
    file.write(str(os.getpid()))
os.rename("pid.new", "pid")
time.sleep(0.3)
with open("count", "a", buffering=1) as count:
    for turn in range(TURNS):
        print("line", turn, flush=True)
        count.write(f"{turn}\\n")
        STEP
        time.sleep(0.025)
    print("the end", flush=True)
    count.write("end\\n")
sys.exit(CODE)
"""


def _training(plan: Plan) -> Script:
    begins, step = ("import tensorflow as tf\ntf.zeros(1)", "tf.ones([1000])") if plan.tensorflow else ("", "pass")
    source = _COUNT.replace("TENSORFLOW", begins).replace("STEP", step).replace("CODE", str(CODE))
    source = source.replace("TURNS", str(_turns(plan)))
    return py("training", "counts", source, tensorflow=plan.tensorflow)


def _turns(plan: Plan) -> int:
    return _TURNS_OUTSIDE if plan.way == "outside" else _TURNS


@dataclass
class Struck:
    """The result of a kill."""

    plan: Plan
    role: str
    what: str = "went on"
    lost: bool = False
    troubles: list[str] = field(default_factory=list)


@contextmanager
def workshop(cache: Path | None = None) -> Iterator[Box]:
    """Provide a folder in which processes are killed. None of them outlives it. *cache* may already hold the probe."""
    running.become_init()
    root = Path(tempfile.mkdtemp(prefix="tfk-", dir="/tmp"))
    if cache is None:
        cache = root / "cache"
        cache.mkdir(mode=0o700)
    try:
        yield Box(root, cache)
    finally:
        running.end_all()
        shutil.rmtree(root, ignore_errors=True)


class _Run:
    """A training that runs under tfmemtop."""

    def __init__(self, plan: Plan, box: Box) -> None:
        self.plan = plan
        self.box = box
        self.script = _training(plan)
        box.prepare(self.script)
        self.environment = box.environment(self.script)
        if plan.role == "builder":
            empty = box.path.parent / "empty"
            shutil.rmtree(empty, ignore_errors=True)
            empty.mkdir(mode=0o700)
            self.environment["XDG_CACHE_HOME"] = str(empty)
        self.cwd = box.path / "cwd"
        self.second: Terminal | None = None
        self.screen: Terminal | None = None
        self.process: subprocess.Popen[bytes] | None = None
        command = [sys.executable, "script.py"]
        if plan.way in ("record", "outside"):
            ours = [*TFMEMTOP, "record", "-o", str(box.recording), "--"] if plan.way == "record" else []
            with (self.cwd / "stdout").open("wb") as stdout:
                self.process = subprocess.Popen(
                    [*ours, *command], cwd=self.cwd, env=self.environment, stdin=subprocess.DEVNULL, stdout=stdout,
                    stderr=subprocess.DEVNULL, start_new_session=True,
                )  # fmt: skip
        if plan.way == "outside":
            wait(lambda: len(self.counted) > 1, _LIMIT_S)
            self.before = self.belongings()
            self.screen = Terminal([*TFMEMTOP, "attach", str(self.training), "--no-record"], self.environment, self.cwd)
        elif plan.way != "record":
            limits = ("--seconds", "1", "--tries", "2", "--from", "256M", "--to", "512M")
            ours = ["fit", *limits] if plan.way == "fit" else []
            self.screen = Terminal([*TFMEMTOP, *ours, "--", *command], self.environment, self.cwd)
        self.command = self.screen.pid if self.screen else self.process.pid if self.process else 0

    @property
    def training(self) -> int | None:
        """The pid of the training; ``None`` until the training has written it to its file."""
        try:
            return int((self.cwd / "pid").read_text())
        except (OSError, ValueError):
            return None

    @property
    def counted(self) -> list[str]:
        """The lines that the training has written to its own file."""
        try:
            return (self.cwd / "count").read_text().split()
        except OSError:
            return []

    @property
    def printed(self) -> str:
        """The part of the training's output that is kept."""
        if self.process is not None:
            return (self.cwd / "stdout").read_text(errors="replace")
        return "".join(path.read_text(errors="replace") for path in (self.box.path / "state").glob("tfmemtop/*.log"))

    @property
    def code(self) -> int | None:
        """The exit code of the command; ``None`` until it has ended."""
        if self.screen is not None:
            return self.screen.code
        assert self.process is not None
        code = self.process.poll()
        return code if code is None or code >= 0 else 128 - code

    def belongings(self) -> tuple[str, int, set[str]]:
        """Return who traces the training, the number of its descriptors, and the files that are mapped."""
        process = psutil.Process(self.training)
        (tracer,) = re.findall(r"^TracerPid:\s+(\d+)$", Path(f"/proc/{process.pid}/status").read_text(), re.MULTILINE)
        return tracer, process.num_fds(), {mapped.path for mapped in process.memory_maps()}

    def send(self, command: Relaunch | Stop) -> bool:
        """Send a command to the engine, as a screen does. Return False if no engine could be reached."""
        for path in (self.box.path / "run").glob("tfmemtop/*/engine.sock"):
            with suppress(OSError), running.connected(path) as line:
                line.sendall(encode(command) + b"\n")
                time.sleep(_LOOK_S)
                return True
        return False

    def close(self) -> None:
        """Kill every process that is left."""
        for screen in (self.screen, self.second):
            if screen is not None:
                screen.close()
        running.end_all()
        if self.process is not None:
            self.process.returncode = 0  # collected with the others


def strike(plan: Plan, box: Box) -> Struck:
    """Carry out *plan* and return the result."""
    run = _Run(plan, box)
    struck = Struck(plan, plan.role)
    try:
        _until_the_moment(run)
        first = run.training
        at = len(run.counted)
        struck.role = _hit(run)
        _see(run, struck, first, at)
    finally:
        run.close()
    return struck


def _until_the_moment(run: _Run) -> None:
    plan = run.plan
    if plan.moment != "start":
        wait(lambda: run.training, _LIMIT_S)
    if plan.way == "attached":
        run.second = Terminal([*TFMEMTOP, "attach"], run.environment, run.cwd)
    if plan.moment == "printing" or plan.way == "attached":
        wait(lambda: len(run.counted) > 1, _LIMIT_S)
    if plan.moment == "exit":
        wait(lambda: len(run.counted) >= _TURNS, _LIMIT_S)
    if plan.moment == "relaunch":
        run.send(Relaunch(argv=[sys.executable, "script.py"], settings=Settings(), grace_s=1.0))
    time.sleep(plan.after * _LENGTH_S[plan.moment])


def _hit(run: _Run) -> str:
    """Strike. Return the role that was really hit."""
    plan = run.plan
    if plan.blow == "PKILL":
        for pid in found_by_name("tfmemtop"):
            _send(pid, signal.SIGKILL)
        return "all"
    if plan.role == "builder":
        wait(lambda: "builder" in roles(run.command, run.training), 5)
    found = roles(run.command, run.training, run.second.pid if run.second else None)
    role = plan.role if plan.role in found else "command"
    struck = found.get(role)
    if struck is None:
        return "nobody"
    _send(struck, number_of(plan.blow))
    if plan.blow == "STOP":
        time.sleep(_STOPPED_S)
        _send(struck, signal.SIGCONT)
    return role


def _see(run: _Run, struck: Struck, first: int | None, at: int) -> None:
    plan, wanted = run.plan, expected(run.plan, struck.role)
    if plan.way == "outside":
        wait(lambda: len(run.counted) > at + 2, _LIMIT_S)
        after = run.belongings()
        if after != run.before:
            struck.troubles.append(f"the training has {after}, and had {run.before}")
    # Wait for the end of the training, or of every process.
    wait(lambda: run.training is not None or not _left(), _LIMIT_S)
    wait(lambda: not _is_alive(run.training), _LIMIT_S)
    if plan.moment == "relaunch":
        wait(lambda: run.training != first or not _left(), _AGAIN_S)
        wait(lambda: not _is_alive(run.training), _LIMIT_S)
    ended = run.counted[-1:] == ["end"]
    if wanted == "goes on":
        struck.lost = not ended
        if not ended:
            struck.troubles.append(f"the training stopped at line {len(run.counted)}, struck at {at}")
    elif wanted == "passed on":
        struck.what = "passed on"
        if ended:
            struck.troubles.append("the signal was not passed on")
        elif wait(lambda: run.code is not None, _LIMIT_S) and run.code != 128 + number_of(plan.blow):
            struck.troubles.append(f"exit code {run.code}, not {128 + number_of(plan.blow)}")
    else:
        struck.what = "went on" if ended else "ended by design"
    if ended and plan.way != "fit" and plan.moment != "relaunch":
        _see_output(run, struck, at)
    _see_code(run, struck, ended)
    _see_left(run, struck)


def _see_output(run: _Run, struck: Struck, at: int) -> None:
    def missing() -> list[str]:
        kept = set(re.findall(r"^(line \d+|the end)\r?$", run.printed, re.MULTILINE))
        later = [f"line {number}" for number in range(_turns(run.plan)) if not at - _BEFORE <= number < at + _SLACK]
        return [line for line in (*later, "the end") if line not in kept]

    if not wait(lambda: not missing(), _LIMIT_S):
        lines = missing()
        struck.troubles.append(f"{len(lines)} lines are not kept, such as {lines[0]!r}")


def _see_code(run: _Run, struck: Struck, ended: bool) -> None:
    """Check that the front process, if it is still there, ends with the training's own code."""
    if run.screen is not None:
        for _ in range(3):
            for screen in (run.screen, run.second):
                if screen is not None:
                    screen.press(b"q")
            if wait(lambda: run.code is not None and (run.second is None or run.second.code is not None), 3):
                break
            for each in (run.screen, run.second):
                if each is not None:
                    each.press(b"\x03" if run.plan.way == "fit" else b"s")
    untouched = struck.role not in ("command", "recorder", "engine", "keeper", "all")
    if not wait(lambda: run.code is not None, _LIMIT_S):
        struck.troubles.append("the command does not end")
    elif untouched and ended and run.plan.way == "record" and run.code != CODE:
        struck.troubles.append(f"exit code {run.code}, not {CODE}")
    if run.plan.way == "outside" and run.process and run.process.wait() != CODE:
        struck.troubles.append(f"the training's exit code is {run.process.returncode}, not {CODE}")


def _see_left(run: _Run, struck: Struck) -> None:
    run.send(Stop(grace_s=0.5, quit=True))
    if not wait(lambda: not _left(), _LIMIT_S):  # a build goes on to its end
        struck.troubles.append("left running: " + ", ".join(_left()))
        running.end_all()
    # Killed processes cannot clean up after themselves. The next start does that for them.
    if _folders(run):
        subprocess.run(
            [*TFMEMTOP, "record", "-o", os.devnull, "--", "true"],
            cwd=run.cwd,
            env=run.environment,
            capture_output=True,
            timeout=30,
        )
        if folders := _folders(run):
            struck.troubles.append("left behind: " + ", ".join(folders))


def _is_alive(pid: int | None) -> bool:
    # This does not use the tree of processes: while a parent ends, its children are in no tree for a moment.
    return pid is not None and is_alive(pid)


def _left() -> list[str]:
    # No process is collected here: the exit code of the command still has to be read.
    return [" ".join(words)[:80] for pid in descendants(os.getpid()) if (words := read_command(pid))]


def _folders(run: _Run) -> list[str]:
    return [path for path in run.box.left() if path.startswith(("tmp/", "run/"))]


def _send(pid: int, number: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, number)
