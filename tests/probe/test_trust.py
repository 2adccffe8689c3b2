"""While its pools are read at full pace, a script does, and ends, just as it would without that."""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from tests.forked import Fork, Forked
from tests.hooked import Monitor, outcome, typed
from tests.patience import until
from tests.probe.test_inside import load

Begin = Callable[[str], Forked]

MAPS = {"do": "maps", "wanted": [[None, None, 0.001]]}

BEGINNING = """
import os, sys, threading
import tensorflow as tf
kept = [tf.zeros([1 << 10]) for _ in range(2000)]
working = threading.Lock()
print("begun", flush=True)

def train(seconds):
    import time
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        with working:
            kept.append(tf.zeros([1 << 10]) + 1)
            del kept[0]
        time.sleep(0)  # another thread that waits for the lock may have it
"""


@pytest.fixture
def looked_into(monitor: Monitor, forked: Fork, library: Path, tmp_path: Path) -> Begin:
    """Return a function that starts a script. The script runs the given code once its pool is read at full pace."""
    (tmp_path / "dumps").mkdir()

    def begin(rest: str) -> Forked:
        process = forked(BEGINNING + rest)
        assert process.stdout.readline() == "begun\n"
        read(monitor, process.pid, library)
        return process

    return begin


def read(monitor: Monitor, pid: int, library: Path) -> None:
    assert load(monitor, pid, library)["state"] == "loaded"
    monitor.say(pid, MAPS)
    monitor.wait_for(lambda event: event["type"] == "chunks" and event["pid"] == pid)


def native_threads(pid: int) -> list[Path]:
    """Return the library's threads in a process. A thread gets its name a moment after its start."""
    found = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        with suppress(FileNotFoundError, ProcessLookupError):  # it ends at this moment
            if (task / "comm").read_text() == "tfmemtop\n":
                found.append(task)
    return found


def test_a_script_that_starts_itself_over(looked_into: Begin, monitor: Monitor, library: Path) -> None:
    process = looked_into(
        """
sys.stdin.readline()
train(0.2)
if len(sys.argv) == 1:
    os.execv(sys.executable, [sys.executable, __file__, "again"])
"""
    )
    typed(process)
    assert process.stdout.readline() == "begun\n"
    assert len(monitor.of("hook_end")) == 0  # exec gives no notice
    monitor.wait_for(lambda event: event["type"] == "end of line")
    monitor.events.clear()
    read(monitor, process.pid, library)
    until(lambda: bool(native_threads(process.pid)))
    assert outcome(process, "\n").code == 0
    assert monitor.of("hook_end")


def test_a_monitor_that_dies_leaves_no_thread_behind(looked_into: Begin, monitor: Monitor) -> None:
    process = looked_into('train(0.2)\nprint("on", flush=True)\nsys.stdin.readline()\ntrain(0.2)\n')
    until(lambda: bool(native_threads(process.pid)))
    monitor.die()
    assert process.stdout.readline() == "on\n"
    until(lambda: not native_threads(process.pid))
    assert outcome(process, "\n").code == 0


def test_a_child_that_trains_on_is_left_alone(looked_into: Begin, monitor: Monitor) -> None:
    process = looked_into(
        """
sys.stdin.readline()
threading.Thread(target=train, args=(60,), daemon=True).start()
ends = []
for number in range(2):
    with working:  # else the child may have locks of TensorFlow's that the other thread held
        child = os.fork()
    if child == 0:
        train(0.1)
        print(os.getpid(), flush=True)
        os._exit(0) if number % 2 else sys.exit(0)
    ends.append(os.waitpid(child, 0)[1])
train(0.1)
print("ends", ends, flush=True)
"""
    )
    ended = outcome(process, "\n")
    assert ended.code == 0, ended.err
    *children, ends = ended.out.splitlines()
    assert ends == "ends [0, 0]" and len(children) == 2
    assert {event["pid"] for event in monitor.events} == {process.pid}
    assert monitor.of("hook_end")


@pytest.mark.parametrize(
    ("end", "code", "said"),
    [
        ("os._exit(3)", 3, False),
        ("threading.Thread(target=train, args=(60,), daemon=True).start()", 0, True),
    ],
)
def test_an_end_amid_readings(looked_into: Begin, monitor: Monitor, end: str, code: int, said: bool) -> None:
    process = looked_into(f"sys.stdin.readline()\ntrain(0.1)\n{end}\n")
    ended = outcome(process, "\n")
    assert ended.code == code and "Traceback" not in ended.err, ended.err
    monitor.wait_for(lambda event: event["type"] == "end of line")
    assert bool(monitor.of("hook_end")) == said
