"""Run the probe at full pace in processes that allocate, fork, end and are killed at awkward moments.

``python -m tests.probe.stress [--rounds N] [--seconds S] [--asan | --valgrind] [SCENARIO…]`` prints a table. Every
round is a separate process, forked from one that has imported TensorFlow and has not yet made a device.
With ``--asan`` the library is built with AddressSanitizer, and the runtime of AddressSanitizer is preloaded. Forks are
then left out: the locks of that runtime do not support a fork while other threads allocate.
"""

import argparse
import contextlib
import ctypes
import os
import random
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tests.patience import PATIENCE_S
from tfmemtop.agent.devices import Reading
from tfmemtop.agent.native import Native
from tfmemtop.agent.trust import CPU, NotTrusted
from tfmemtop.probe.cache import checksum_of

POOL = {"TF_CPU_ALLOCATOR_USE_BFC": "true", "TF_CPU_BFC_MEM_LIMIT_IN_MB": "2048", "TF_CPP_MIN_LOG_LEVEL": "3"}
HANGS_S = PATIENCE_S
UNDER_VALGRIND = "vgpreload" in os.environ.get("LD_PRELOAD", "")
if UNDER_VALGRIND:
    HANGS_S = 4 * PATIENCE_S


class Round:
    """One process: TensorFlow with its devices made, and the probe in it."""

    def __init__(self, library: Path, seconds: float) -> None:
        import tensorflow

        self.tf: Any = tensorflow
        self.seconds = seconds
        self.kept = self.tf.zeros([1 << 18])
        self.native = Native(str(library), checksum_of(library.read_bytes()))
        assert self.native.check(CPU, 0, self.public)
        self.native.start_sampler()
        self.reads = 0
        self.failures: list[BaseException] = []

    def times(self, count: int, least: int) -> int:
        """Return the number of repetitions in this round.

        A round of five seconds has *count* repetitions, a shorter one fewer. With *least* of them a round still finds
        a fault.
        """
        return max(least, round(count * self.seconds / 5))

    def public(self) -> Reading:
        info = self.tf.config.experimental.get_memory_info("CPU:0")
        return Reading(info["current"], info["peak"])

    def read_without_pause(self, native: Native, until: float) -> None:
        """Take readings and maps one after the other. Maps of a region that may be gone are requested, too."""
        region = None
        while time.monotonic() < until:
            taken = native.take(CPU, 0)
            found = native.map(CPU, 0, region)
            assert taken is not None and found is not None
            reading = taken.reading
            assert reading.in_use is not None and reading.high is not None and reading.pool is not None
            assert 0 <= reading.in_use <= reading.high <= (reading.peak or 0) and reading.in_use <= reading.pool
            assert found["in_use"] <= found["pool"] and found["chunks_in_use"] <= found["chunks"]
            region = found["regions"][-1][0] if region is None else None
            self.reads += 1

    def ask_without_pause(self, until: float) -> None:
        """Read TensorFlow's own figures, which are used where there is no library."""
        while time.monotonic() < until:
            self.public()

    def allocate_without_pause(self, until: float) -> None:
        """Make tensors of many sizes, hold them for a while, and free them in random order."""
        held: list[Any] = []
        while time.monotonic() < until:
            held.append(self.tf.raw_ops.Empty(shape=[random.randrange(1, 1 << 20)], dtype=self.tf.uint8, init=False))
            if len(held) > 300:
                del held[random.randrange(len(held))]

    def keep_many(self, chunks: int) -> None:
        """Keep so many tensors, one chunk each. With more chunks, a reading of the map holds the pool's lock longer."""
        self.held = [self.tf.raw_ops.Empty(shape=[256], dtype=self.tf.uint8, init=False) for _ in range(chunks)]

    def background(self, count: int, work: Callable[..., None], *args: Any) -> list[threading.Thread]:
        def run() -> None:
            try:
                work(*args)
            except BaseException as error:
                self.failures.append(error)

        threads = [threading.Thread(target=run, daemon=True) for _ in range(count)]
        for thread in threads:
            thread.start()
        return threads

    def reading(self) -> None:
        """Read in the background until the process ends. Return once this has begun."""
        # One thread reads: the native object has one buffer for all readings. The agent, too, reads in one thread.
        self.background(1, self.read_without_pause, self.native, time.monotonic() + HANGS_S)
        self.background(3, self.allocate_without_pause, time.monotonic() + HANGS_S)
        while self.reads < 20 and not self.failures:
            time.sleep(0.001)
        if self.failures:
            raise self.failures[0]


def threads(round: Round) -> None:
    """Six threads allocate, one reads. At the end the figures equal TensorFlow's own."""
    until = time.monotonic() + round.seconds
    running = round.background(1, round.read_without_pause, round.native, until)
    running += round.background(6, round.allocate_without_pause, until)
    for thread in running:
        thread.join()
    if round.failures:
        raise round.failures[0]
    taken = round.native.take(CPU, 0)
    assert taken is not None and taken.reading[:2] == round.public()[:2]


def ends(round: Round) -> None:
    """The script ends while a thread reads and the sampler runs, without stopping them."""
    round.reading()


def fails(round: Round) -> None:
    """The script ends with an exception during a read."""
    round.reading()
    sys.stderr = open(os.devnull, "w")  # noqa: SIM115, PTH123 (as long as the process)
    raise SystemExit("failed")


def exits_at_once(round: Round) -> None:
    """The script calls os._exit during a read."""
    round.reading()
    os._exit(0)


def is_killed(round: Round) -> None:
    """The script is killed with SIGKILL during a read."""
    round.reading()
    os.kill(os.getpid(), signal.SIGKILL)


def is_terminated(round: Round) -> None:
    """The script is ended with SIGTERM during a read. No thread of ours handles that signal."""
    round.reading()
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(HANGS_S)


def exits_from_c(round: Round) -> None:
    """The script calls the C library's own exit during a read.

    The static objects of C++ are destroyed, but Python's own exit code does not run.
    """
    round.reading()
    ctypes.CDLL(None).exit(0)


def execs(round: Round) -> None:
    """The script calls exec during a read: another program replaces it."""
    round.reading()
    os.execv("/bin/true", ["true"])


def forks(round: Round) -> None:
    """In children forked during reads, the library refuses every call. The children end as usual."""
    round.reading()
    for number in range(round.times(6, least=2)):
        child = os.fork()
        if child == 0:
            native = round.native
            refused = native.take(CPU, 0) is None and native.map(CPU, 0, None) is None and native.gpus() == 0
            native.stop_sampler()
            if number % 2:
                os._exit(0 if refused else 1)
            raise SystemExit(0 if refused else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert round.native.take(CPU, 0) is not None


def forks_and_goes_on(round: Round) -> None:
    """Children forked during reads allocate, as a script's own children that load its data may."""
    round.keep_many(int(40_000 * round.seconds))
    until = time.monotonic() + HANGS_S
    round.background(1, round.read_without_pause, round.native, until)
    round.background(1, round.ask_without_pause, until)
    while round.reads < 20 and not round.failures:
        time.sleep(0.001)
    for _ in range(20):
        child = os.fork()
        if child == 0:
            made = round.tf.zeros([1 << 10])
            os._exit(0 if float(made[0]) == 0 else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    if round.failures:
        raise round.failures[0]


def stops_and_starts(round: Round) -> None:
    """The sampler's thread is stopped and started again and again during reads."""
    round.reading()
    for _ in range(round.times(100, least=10)):
        started = False
        while not started:
            round.native.stop_sampler()
            # The start is refused until the old thread has ended, which may still wait for a lock or the processor.
            with contextlib.suppress(NotTrusted):
                round.native.start_sampler()
                started = True


SCENARIOS: dict[str, tuple[Callable[[Round], None], int]] = {
    "threads": (threads, 0),
    "ends": (ends, 0),
    "fails": (fails, 1),
    "exits_at_once": (exits_at_once, 0),
    "exits_from_c": (exits_from_c, 0),
    "is_killed": (is_killed, -signal.SIGKILL),
    "is_terminated": (is_terminated, -signal.SIGTERM),
    "execs": (execs, 0),
    "forks": (forks, 0),
    "forks_and_goes_on": (forks_and_goes_on, 0),
    "stops_and_starts": (stops_and_starts, 0),
}


def play(name: str, library: Path, seconds: float) -> str:
    """Play one round in a child process. Return ``""`` if it ended as expected, and otherwise how it ended."""
    scenario, expected = SCENARIOS[name]
    # The pipe becomes readable when the child and the last of its children have closed the other end.
    # It is used instead of pidfd_open, which valgrind does not support.
    end, held = os.pipe()
    child = os.fork()
    if child == 0:
        os.setpgid(0, 0)
        scenario(Round(library, seconds))
        sys.exit(0)
    os.close(held)
    ended = select.select([end], [], [], HANGS_S)[0]
    os.close(end)
    if not ended:
        os.killpg(child, signal.SIGKILL)  # with its own children, which hang as well
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return "hung" if not ended else "" if code == expected else f"ended with {code}"


def with_address_sanitizer(folder: Path) -> Path:
    """Build the library with checks of its own memory accesses. TensorFlow's code, which it calls, is not checked."""
    compiler = folder / "g++-asan"
    compiler.write_text('#!/bin/sh\nexec g++ "$@" -fsanitize=address -fno-omit-frame-pointer -g\n')
    compiler.chmod(0o700)
    return build_with(CXX=str(compiler), XDG_CACHE_HOME=str(folder))


def library_file(name: str) -> Path:
    """Return the path where the compiler has its library *name*."""
    done = subprocess.run(["g++", f"-print-file-name={name}"], capture_output=True, text=True, check=True)
    return Path(done.stdout.strip()).resolve()


def under_valgrind() -> int:
    """Run all of it again under valgrind. Print only valgrind's reports about the probe.

    Those about TensorFlow and Python are left out. Return 1 if the run fails or a report is about the probe, else 0.
    """
    with tempfile.TemporaryDirectory(prefix="tfmemtop-valgrind-") as folder:
        options = ["--error-limit=no", "--num-callers=40", "--fair-sched=yes", f"--log-file={folder}/%p"]
        command = ["valgrind", *options, sys.executable, "-m", "tests.probe.stress", *sys.argv[1:]]
        code = subprocess.run(command, env={**os.environ, "PYTHONMALLOC": "malloc"}).returncode
        said = "\n".join(path.read_text(errors="replace") for path in Path(folder).iterdir())
    blocks = re.split(r"(?m)^==\d+== *\n", said)
    ours = [block for block in blocks if re.search(r"memfd:tfmemtop-probe", block)]
    print("\n\n".join(ours) or f"of {len(blocks)} paragraphs of valgrind's none is of the probe")
    return int(code != 0 or bool(ours))


def build_with(**variables: str) -> Path:
    os.environ.update(variables)
    from tfmemtop.probe.build import build

    spec = find_spec("tensorflow")
    assert spec is not None and spec.origin is not None
    built = build(Path(spec.origin).parent, version("tensorflow"))
    assert built.state == "built", built
    return Path(built.path)


def main() -> int:
    """Play the scenarios named on the command line, or all. Return 1 if a round does not end as expected, else 0."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--asan", action="store_true")
    parser.add_argument("--valgrind", action="store_true")
    parser.add_argument("scenarios", nargs="*", default=list(SCENARIOS))
    options = parser.parse_args()
    if options.asan and "libasan" not in os.environ.get("LD_PRELOAD", ""):
        # The C++ library too: the runtime looks for its functions when it starts.
        os.environ["LD_PRELOAD"] = ":".join(str(library_file(name)) for name in ("libasan.so", "libstdc++.so.6"))
        os.environ["ASAN_OPTIONS"] = "detect_leaks=0"
        os.execv(sys.executable, [sys.executable, "-m", "tests.probe.stress", *sys.argv[1:]])
    if options.valgrind and not UNDER_VALGRIND:
        return under_valgrind()
    os.environ.update(POOL)
    bad = False
    # Without a context manager: the rounds are forked from here, and would delete the folder, too.
    folder = Path(tempfile.mkdtemp(prefix="tfmemtop-stress-"))
    library = with_address_sanitizer(folder) if options.asan else build_with()
    import tensorflow  # noqa: F401 (once for all rounds)

    for name in options.scenarios:
        if options.asan and name.startswith("forks"):
            continue
        rounds = 1 if name == "threads" else options.rounds
        began = time.monotonic()
        troubles = [trouble for trouble in (play(name, library, options.seconds) for _ in range(rounds)) if trouble]
        bad |= bool(troubles)
        took = time.monotonic() - began
        print(f"{name:18} {rounds:5} rounds {took:7.1f} s  {'; '.join(troubles) or 'as it should'}", flush=True)
    shutil.rmtree(folder)
    return int(bad)


if __name__ == "__main__":
    sys.exit(main())
