"""Kills while a process is read from outside: ``python -m tests.tools.corpus.kills_outside [--seed N] [--count 300]``.

One training, started without tfmemtop, is attached to again and again: by an engine alone that records and makes maps,
by the whole screen, by ``--once --json``. At a random moment one of our processes, or all of them, get SIGKILL. After
each blow the training must go on. It must not be stopped or traced, and must have no descriptor or mapping more than
before. At its end it must have computed what it computes alone.
"""

import argparse
import collections
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from tests.tools.corpus.terminals import Screen
from tests.tools.corpus.trial import TFMEMTOP
from tfmemtop.engine.process.launch import Launch, start
from tfmemtop.engine.sources.processes import all_pids, carries, find

_GOES_ON_S = 60.0
_LENGTH_S = {"engine": 1.5, "screen": 4.0, "once": 1.2}
_WAYS = ("engine", "engine", "engine", "engine", "screen", "once")
_CODE = 17

_TRAINING = f"""
import os, sys, time
import tensorflow as tf
tf.keras.utils.set_random_seed(1)
weights = tf.Variable(tf.ones([64, 64], tf.int64))
total, turn = 0, 0
with open("turns", "a", buffering=1) as turns:
    while not os.path.exists("stop"):
        kept = [tf.fill([64 * (1 + (turn + n) % 7), 64], turn % 97 + n) for n in range(8)]
        found = sum(int(tf.reduce_sum(tf.cast(one, tf.int64) @ weights)) for one in kept)
        expected = sum(64 * (1 + (turn + n) % 7) * 64 * 64 * (turn % 97 + n) for n in range(8))
        if found != expected:
            sys.exit(f"turn {{turn}}: {{found}} and not {{expected}}")
        info = tf.config.experimental.get_memory_info("CPU:0")
        if not 0 < info["current"] <= info["peak"]:
            sys.exit(f"turn {{turn}}: {{info}}")
        turn += 1
        turns.write(f"{{turn}}\\n")
        time.sleep(0.01)
sys.exit({_CODE})
"""


class _Training:
    """A training that runs in *folder* until the file ``stop`` is there."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        pool = {"TF_CPU_ALLOCATOR_USE_BFC": "true", "TF_CPU_BFC_MEM_LIMIT_IN_MB": "256", "TF_CPP_MIN_LOG_LEVEL": "3"}
        environment = {name: value for name, value in os.environ.items() if not name.startswith("TFMEMTOP_")} | pool
        self._said = (folder / "said").open("wb")
        self.process = subprocess.Popen(
            [sys.executable, "-c", _TRAINING], cwd=folder, env=environment, stdout=self._said, stderr=self._said
        )
        self.wait_for_turn(1)
        self._before = self._belongings()

    @property
    def turns(self) -> int:
        """Return how many turns the training has completed."""
        try:
            return (self._folder / "turns").read_bytes().count(b"\n")
        except OSError:
            return 0

    def wait_for_turn(self, turn: int) -> bool:
        """Wait until the training has completed *turn* turns. Return False if it does not."""
        until = time.monotonic() + _GOES_ON_S
        while self.turns < turn:
            if self.process.poll() is not None or time.monotonic() > until:
                return False
            time.sleep(0.01)
        return True

    def troubles(self) -> list[str]:
        """Return what is wrong with the training now."""
        if not self.wait_for_turn(self.turns + 2):
            return [f"it does not go on: {self.process.poll()}, {(self._folder / 'said').read_text()[-300:]}"]
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        found = [] if "TracerPid:\t0\n" in status else ["it is traced"]
        found_now = find(self.process.pid)
        found += ["it is stopped"] if found_now is None or found_now.stopped else []
        after = self._belongings()
        return found + ([f"it has {after}, and had {self._before}"] if after != self._before else [])

    def end(self) -> list[str]:
        """Let the training end. Return what is wrong at its end."""
        (self._folder / "stop").touch()
        code = self.process.wait(_GOES_ON_S)
        return [] if code == _CODE else [f"it has ended with {code}: {(self._folder / 'said').read_text()[-300:]}"]

    def _belongings(self) -> tuple[int, frozenset[str]]:
        """Return the number of its descriptors, and the files that are mapped."""
        pid = self.process.pid
        maps = Path(f"/proc/{pid}/maps").read_text().splitlines()
        files = frozenset(line.split(None, 5)[5] for line in maps if len(line.split(None, 5)) > 5 and "/" in line)
        return len(os.listdir(f"/proc/{pid}/fd")), files  # noqa: PTH208 (names only)


def _strike(way: str, after_s: float, whom: float, training: _Training, folder: Path, mark: bytes) -> str:
    """Attach in the way *way*, kill after *after_s* seconds, and return in words what was killed.

    *whom*, from 0 to 1, chooses among our processes; from 0.7 on all of them are killed.
    """
    environment = {**os.environ, **dict([os.fsdecode(mark).split("=", 1)])}
    pid = training.process.pid
    screen: Screen | None = None
    if way == "engine":
        start(Launch(argv=[], cwd=str(folder), environment=environment, attach=pid, record=str(folder / "kept")))
    elif way == "screen":
        screen = Screen([*TFMEMTOP, "attach", str(pid), "--no-record"], environment, folder)
    else:
        once = subprocess.Popen([*TFMEMTOP, "--once", "--json"], env=environment, stdout=subprocess.DEVNULL)
    until = time.monotonic() + after_s
    while (left := until - time.monotonic()) > 0:
        if screen is not None:
            screen.draw(left)
        else:
            time.sleep(left)
    ours = sorted(one for one in all_pids() if carries(one, mark) and one != os.getpid())
    struck = ours if whom >= 0.7 or not ours else [ours[int(whom / 0.7 * len(ours))]]
    for one in struck:
        with suppress(ProcessLookupError):
            os.kill(one, signal.SIGKILL)
    if way == "once":
        once.wait()
    if screen is not None:
        screen.draw(0.05)
        screen.close()
    # The processes that are left are killed too.
    for one in all_pids():
        if carries(one, mark) and one != os.getpid():
            with suppress(ProcessLookupError):
                os.kill(one, signal.SIGKILL)
    return "all of ours" if len(struck) > 1 else "one of ours" if struck else "nobody, it had ended"


def main() -> int:
    """Carry out the kills and report. Return 1 if one went wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.tools.corpus.kills_outside", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=300)
    arguments = parser.parse_args()
    chance = random.Random(arguments.seed)
    total: collections.Counter[str] = collections.Counter()
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="tfo-", dir="/tmp") as name:
        folder = Path(name)
        mark = f"XDG_RUNTIME_DIR={folder}".encode()
        training = _Training(folder)
        os.environ |= {"XDG_RUNTIME_DIR": name, "XDG_STATE_HOME": name, "TERM": "xterm-256color"}
        try:
            for number in range(arguments.count):
                way = chance.choice(_WAYS)
                after_s = chance.random() * _LENGTH_S[way]
                who = _strike(way, after_s, chance.random(), training, folder, mark)
                troubles = training.troubles()
                total.update([way, who, *(["troubles"] if troubles else [])])
                if troubles:
                    print(f"{number:4} {way} after {after_s:.2f} s, {who}: {'; '.join(troubles)}", flush=True)
            troubles = training.end()
        finally:
            training.process.kill()
    print("\n".join(troubles))
    turns = f"{arguments.count} blows in {time.monotonic() - began:.0f} s: "
    print(turns + ", ".join(f"{count} {what}" for what, count in sorted(total.items())))
    return int(bool(total["troubles"] or troubles))


if __name__ == "__main__":
    sys.exit(main())
