"""No library that is not whole reaches a script, whatever became of the file, its disk or its builder."""

import json
import os
import random
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.hook.conftest import POOL, PYTHON
from tests.probe.test_build import command
from tfmemtop.events import Allocator, Probe
from tfmemtop.probe.build import Built
from tfmemtop.probe.cache import describe
from tfmemtop.recording import read

Script = Callable[[str], str]

PAGE = 4096


def truncate(library: Path) -> None:
    os.truncate(library, 16384)


def blank(library: Path) -> None:
    content = library.read_bytes()
    library.write_bytes(content[:PAGE] + bytes(len(content) - PAGE))


def flip(library: Path) -> None:
    """Every bit of the second page: code or what leads to it."""
    content = library.read_bytes()
    library.write_bytes(content[:PAGE] + bytes(255 - one for one in content[PAGE : 2 * PAGE]) + content[2 * PAGE :])


def empty(library: Path) -> None:
    os.truncate(library, 0)


DAMAGES = [truncate, blank, flip, empty]


class Compiler:
    """Hands out what the real one has built, after *extra* lines of shell, and counts how often."""

    def __init__(self, folder: Path, library: Path, extra: str = "") -> None:
        self.folder = folder
        self.path = folder / "compiler"
        self.log = folder / "log"
        self.log.touch()
        self.path.write_text(
            f"""#!/bin/sh
[ "$1" = --version ] && echo quick {shlex.quote(folder.name)} && exit
echo built >> {shlex.quote(str(self.log))}
while [ "$1" != -o ]; do shift; done
cp {shlex.quote(str(library))} "$2"
{extra}
"""
        )
        self.path.chmod(0o700)

    @property
    def variables(self) -> dict[str, str]:
        return {"XDG_CACHE_HOME": str(self.folder), "CXX": shlex.quote(str(self.path))}

    @property
    def built(self) -> int:
        return len(self.log.read_text().splitlines())

    @property
    def cache(self) -> Path:
        return self.folder / "tfmemtop"

    def kept(self) -> list[str]:
        """What lies in the cache, less its lock, by the end of its name."""
        names = (path.name for path in self.cache.iterdir() if path.name != "lock")
        return sorted("build" if name.startswith("build") else name.rpartition(".")[2] for name in names)


@pytest.fixture
def compiler(tmp_path: Path, library: Path) -> Compiler:
    return Compiler(tmp_path, library)


TRAINING = """
import sys, tensorflow as tf
kept = tf.zeros([1 << 20])
for line in sys.stdin:
    tf.zeros([16])
print("trained")
sys.exit(3)
"""

RECORD = """
import asyncio, os, sys
from tfmemtop.engine.launch import Launch
from tfmemtop.engine.record import record
launch = Launch(argv=sys.argv[2:], cwd=os.getcwd(), environment=dict(os.environ), interval_s=0.05)
done = asyncio.run(record(launch, sys.argv[1]))
print(done.end.exit_code, done.end.signal, file=sys.stderr)
"""


class Recorded:
    """``tfmemtop record``, and a script that trains until it is told to end."""

    def __init__(self, path: Path, *argv: str, **variables: str) -> None:
        self.path = path
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(
            [sys.executable, "-c", RECORD, str(path), *argv],
            env={**os.environ, **POOL, "TF_CPP_MIN_LOG_LEVEL": "3", **variables},
            stdin=pipe,
            stdout=pipe,
            stderr=pipe,
            text=True,
        )

    def until(self, wanted: Callable[[object], bool]) -> None:
        """Until the recording has what is *wanted*, or the run has ended."""
        end = time.monotonic() + 60
        while self.process.poll() is None and not any(wanted(event) for event in self.events()):
            assert time.monotonic() < end, self.events()
            time.sleep(0.05)  # a file tells nobody that it grows

    def events(self) -> list[object]:
        return list(read(self.path).events()) if self.path.exists() and self.path.stat().st_size else []

    def probes(self) -> list[Probe]:
        return [event for event in self.events() if isinstance(event, Probe) and event.of_library]

    def end(self) -> tuple[str, str]:
        """What the script printed, and how the recorder says it ended."""
        assert self.process.stdin is not None
        out, err = self.process.communicate(timeout=60)
        return out, err.splitlines()[-1]


def test_a_damaged_library_is_built_anew_and_the_training_unharmed(
    script: Script, library: Path, tmp_path: Path, tensorflow: tuple[Path, str]
) -> None:
    """The four kinds of damage and a cache that is none, each with a training of its own, all at once."""
    training, runs = script(TRAINING), {}
    for damage in DAMAGES:
        folder = tmp_path / damage.__name__
        folder.mkdir()
        compiler = Compiler(folder, library)
        built = Path(command(tensorflow, **compiler.variables).path)
        damage(built)
        runs[damage.__name__] = compiler, Recorded(folder / "run", PYTHON, training, **compiler.variables)
    nothing = tmp_path / "file"
    nothing.touch()
    without = Recorded(tmp_path / "run", PYTHON, training, XDG_CACHE_HOME=str(nothing))
    for name, (compiler, run) in runs.items():
        run.until(lambda event: isinstance(event, Allocator) and event.pool is not None)
        assert run.end() == ("trained\n", "3 None"), name
        assert run.probes()[-1].state == "loaded", name
        assert compiler.built == 2 and compiler.kept() == ["so"], name
    without.until(lambda event: isinstance(event, Probe) and event.state == "failed")
    assert without.end() == ("trained\n", "3 None")
    told = without.probes()[-1]
    assert "Not a directory" in told.text and "XDG_CACHE_HOME" in told.remedy


@pytest.mark.parametrize("damage", DAMAGES)
def test_what_is_handed_out_is_whole(
    compiler: Compiler, tensorflow: tuple[Path, str], library: Path, damage: Callable[[Path], None]
) -> None:
    first = command(tensorflow, **compiler.variables)
    damage(Path(first.path))
    again = command(tensorflow, **compiler.variables)
    assert again.state == "built" and compiler.built == 2 and compiler.kept() == ["so"]
    assert Path(again.path).read_bytes() == library.read_bytes() and again.digest == describe(library).digest


# What a linker does that ran out of disk, and did not notice.
TRUNCATES = 'truncate -s 16384 "$2"'


def test_a_library_that_fails_its_trial_is_built_anew_once(
    tmp_path: Path, library: Path, tensorflow: tuple[Path, str]
) -> None:
    log = shlex.quote(str(tmp_path / "log"))
    compiler = Compiler(tmp_path, library, f'[ "$(wc -l < {log})" -gt 1 ] || {TRUNCATES}')
    built = command(tensorflow, **compiler.variables)
    assert built.state == "built" and compiler.built == 2 and compiler.kept() == ["so"]
    assert Path(built.path).read_bytes() == library.read_bytes()


@pytest.mark.parametrize(
    ("extra", "why"),
    [
        (TRUNCATES, "the linker has not written all of it"),
        ('truncate -s -1 "$2"', "the linker has not written all of it"),
        (': > "$2"', "the linker has not written all of it"),
        ('truncate -s 16384 "$2"; truncate -s 1M "$2"', "a trial was ended by a signal: "),
        ('echo "int nothing;" | g++ -shared -fPIC -x c++ - -o "$2"', "undefined symbol: tfmemtop_version"),
    ],
)
def test_one_that_fails_twice_is_told_and_left_out(
    tmp_path: Path, library: Path, tensorflow: tuple[Path, str], extra: str, why: str
) -> None:
    compiler = Compiler(tmp_path, library, extra)
    built = command(tensorflow, **compiler.variables)
    assert built.state == "failed" and "built twice" in built.text and why in built.text and built.remedy
    assert compiler.built == 2 and compiler.kept() == []


@pytest.fixture
def mount(tmp_path: Path) -> Iterator[Callable[..., Path]]:
    """Mounts a small disk of its own, where this user may."""
    mounted: list[Path] = []

    def mount(options: str) -> Path:
        folder = tmp_path / "disk"
        folder.mkdir(exist_ok=True)
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", folder], capture_output=True)
        if done.returncode:
            pytest.skip("this user may not mount a file system")
        mounted.append(folder)
        return folder

    yield mount
    for folder in mounted:
        subprocess.run(["umount", "-l", folder], check=True)


def test_a_disk_without_room(mount: Callable[[str], Path], tensorflow: tuple[Path, str]) -> None:
    """The real compiler and linker, which call well made what is not."""
    folder = mount("size=128k")
    built = command(tensorflow, XDG_CACHE_HOME=str(folder))
    assert built.state == "failed" and "no room" in built.text and "make room" in built.remedy
    assert [path.name for path in (folder / "tfmemtop").iterdir()] == ["lock"]


def test_a_disk_that_can_only_be_read(
    mount: Callable[[str], Path], tensorflow: tuple[Path, str], library: Path, tmp_path: Path
) -> None:
    folder = mount("size=2m")
    compiler = Compiler(tmp_path, library)
    variables = {**compiler.variables, "XDG_CACHE_HOME": str(folder)}
    first = command(tensorflow, **variables)
    subprocess.run(["mount", "-o", "remount,ro", folder], check=True)
    assert command(tensorflow, **variables) == first and compiler.built == 1
    other = Compiler(tmp_path, library)
    other.path.write_text(other.path.read_text().replace("echo quick", "echo other"))
    refused = command(tensorflow, **variables)
    assert refused.state == "failed" and "Read-only" in refused.text and "XDG_CACHE_HOME" in refused.remedy


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a folder away")
def test_a_cache_given_to_somebody_else(compiler: Compiler, tensorflow: tuple[Path, str]) -> None:
    compiler.cache.mkdir()
    os.chown(compiler.cache, 65534, 65534)
    built = command(tensorflow, **compiler.variables)
    assert built.state == "failed" and "somebody else" in built.text and "XDG_CACHE_HOME" in built.remedy
    assert compiler.built == 0


def builder(tensorflow: tuple[Path, str], compiler: Compiler) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tfmemtop.probe.build", *map(str, tensorflow)],
        env={**os.environ, **compiler.variables},
        stdout=subprocess.PIPE,
        text=True,
    )


def test_two_at_once_build_one(compiler: Compiler, tensorflow: tuple[Path, str]) -> None:
    both = [builder(tensorflow, compiler) for _ in range(2)]
    first, second = (Built(**json.loads(one.communicate(timeout=60)[0])) for one in both)
    assert first == second and first.state == "built" and compiler.built == 1


def test_builders_that_are_killed_leave_nothing_that_harms(
    tensorflow: tuple[Path, str], tmp_path: Path, library: Path
) -> None:
    """``TFMEMTOP_KILLS`` builders killed at random moments, each moment given by ``TFMEMTOP_SEED``."""
    compiler = Compiler(tmp_path, library)
    began = time.monotonic()
    assert command(tensorflow, **compiler.variables).state == "built"
    whole = time.monotonic() - began
    chance = random.Random(int(os.environ.get("TFMEMTOP_SEED", "1")))
    for _ in range(int(os.environ.get("TFMEMTOP_KILLS", "12"))):
        for path in compiler.cache.glob("probe-*"):
            path.unlink()
        process = builder(tensorflow, compiler)
        try:
            process.communicate(timeout=chance.uniform(0, whole))
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
        for path in compiler.cache.glob("probe-*.so"):
            assert path.read_bytes() == library.read_bytes()
    built = command(tensorflow, **compiler.variables)
    assert built.state == "built" and built.digest == describe(library).digest
    assert compiler.kept() == ["so"]


def test_what_killed_builders_left_goes_though_nothing_is_built(
    compiler: Compiler, tensorflow: tuple[Path, str]
) -> None:
    command(tensorflow, **compiler.variables)
    left = compiler.cache / "build-left"
    left.mkdir()
    (left / "probe.s").touch()
    command(tensorflow, **compiler.variables)
    assert compiler.built == 1 and compiler.kept() == ["so"]


# Well behaved in a trial, and the end of every script: as a library is that fits one process and not another.
KILLER = """
#include <cstdlib>
#include <csignal>
__attribute__((constructor)) static void loaded() {
  const char* limit = getenv("TF_CPU_BFC_MEM_LIMIT_IN_MB");
  if (!limit || atoi(limit) != 64) raise(SIGSEGV);
}
extern "C" {
unsigned tfmemtop_version() { return 1; }
int tfmemtop_gpus() { return 0; }
int tfmemtop_stats(int, int, long* out) { for (int i = 1; i < 10; i++) out[i] = 0; return 1; }
int tfmemtop_take(int, int, long* out) { for (int i = 2; i < 11; i++) out[i] = 0; return 1; }
int tfmemtop_map(int, int, void*) { return -3; }
int tfmemtop_sampler_start(int) { return 1; }
int tfmemtop_sampler_stop() { return 1; }
}
"""


def test_a_library_that_ended_a_training_ends_no_other(
    script: Script, library: Path, tmp_path: Path, tensorflow: tuple[Path, str]
) -> None:
    killer = tmp_path / "killer.so"
    subprocess.run(["g++", "-shared", "-fPIC", "-x", "c++", "-", "-o", killer], input=KILLER.encode(), check=True)
    compiler = Compiler(tmp_path, killer)
    training = script(TRAINING)
    first = Recorded(tmp_path / "first", PYTHON, training, **compiler.variables)
    first.until(lambda _: False)
    assert first.end() == ("", f"None {int(signal.SIGSEGV)}")  # what the design gives up, once
    assert "SIGSEGV" in first.probes()[-1].text and compiler.kept() == ["refused"]

    second = Recorded(tmp_path / "second", PYTHON, training, **compiler.variables)
    second.until(lambda event: isinstance(event, Probe) and event.state == "failed")
    assert second.end() == ("trained\n", "3 None")
    told = second.probes()[-1]
    (mark,) = compiler.cache.glob("*.refused")
    assert "SIGSEGV" in told.text and str(mark) in told.remedy and compiler.built == 2

    # Built anew it was the same: from now on it is not even built. The mark removed, it is.
    assert command(tensorflow, **compiler.variables).state == "failed" and compiler.built == 2
    mark.unlink()
    assert command(tensorflow, **compiler.variables).state == "built" and compiler.built == 3


# A process that speaks as the hook does while it loads, and then does as it is told.
SPEAKER = """
import json, os, signal, socket, sys
line = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
line.connect(os.environ["TFMEMTOP_SOCKET"])
tell = lambda **fields: line.send(json.dumps(fields).encode())
tell(type="hook", ppid=1, argv=[], python="3.11.0", executable="", tensorflow=sys.argv[1], tensorflow_path=sys.argv[2])
assert json.loads(line.recv(65536))["do"] == "load"
tell(type="probe", state="loading")
exec(sys.argv[3])
"""


@pytest.mark.parametrize(
    ("then", "refused"),
    [
        ("os.kill(os.getpid(), signal.SIGBUS)", True),
        ("os.kill(os.getpid(), signal.SIGKILL)", False),
        ("os._exit(1)", False),
        ("os.execv('/bin/true', ['true'])", False),
        ("tell(type='probe', state='loaded'); os.kill(os.getpid(), signal.SIGSEGV)", False),
        ("tell(type='probe', state='failed'); os.kill(os.getpid(), signal.SIGSEGV)", False),
    ],
)
def test_only_an_end_by_loading_is_the_librarys_fault(
    compiler: Compiler, tensorflow: tuple[Path, str], then: str, refused: bool
) -> None:
    check_refusal(compiler, tensorflow, refused, [sys.executable, "-I", "-S", "-c", SPEAKER], then)


def test_of_other_processes_nobody_knows_what_ended_them(compiler: Compiler, tensorflow: tuple[Path, str]) -> None:
    shell = ["sh", "-c", '"$@"; exit 0', "sh", sys.executable, "-I", "-S", "-c", SPEAKER]
    check_refusal(compiler, tensorflow, True, shell, "os.kill(os.getpid(), signal.SIGILL)")


def check_refusal(
    compiler: Compiler, tensorflow: tuple[Path, str], refused: bool, speaker: list[str], then: str
) -> None:
    words = [*speaker, tensorflow[1], str(tensorflow[0]), then]
    run = Recorded(compiler.folder / "run", *words, **compiler.variables)
    run.end()
    assert compiler.kept() == (["refused"] if refused else ["so"])
