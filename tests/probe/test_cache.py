"""No incomplete library reaches a script, whatever happened to the file, its disk or the process that built it."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.disks import small_disk
from tests.hooked import PYTHON, Script
from tests.patience import PATIENCE_S
from tests.probe.cached import LOADING, TRAINING, UNTIL_TOLD_TO_END, Compiler, Recorded, said, speaker
from tests.probe.test_build import BUILDS, command
from tfmemtop.agent.native import VERSION
from tfmemtop.events import Allocator, Probe, ProbeState
from tfmemtop.findings.probe import probe_remedy, probe_text
from tfmemtop.probe.cache import Built, describe

PAGE = 4096


def truncate(library: Path) -> None:
    os.truncate(library, 16384)


def flip(library: Path) -> None:
    """Invert every bit of the second page. It contains code, or tables that are needed to reach the code."""
    content = library.read_bytes()
    library.write_bytes(content[:PAGE] + bytes(255 - one for one in content[PAGE : 2 * PAGE]) + content[2 * PAGE :])


DAMAGES = [truncate, flip]


def test_a_damaged_library_is_built_anew_and_the_training_unharmed(
    script: Script, library: Path, tmp_path: Path, tensorflow: tuple[Path, str]
) -> None:
    """At the same time another run has a file in the place of its cache folder."""
    training, folder = script(TRAINING), tmp_path / "flipped"
    folder.mkdir()
    compiler = Compiler(folder, library)
    flip(Path(command(tensorflow, **compiler.variables).path))
    run = Recorded(folder / "run", PYTHON, training, **compiler.variables)
    nothing = tmp_path / "file"
    nothing.touch()
    without = Recorded(tmp_path / "run", *speaker(tensorflow, UNTIL_TOLD_TO_END), XDG_CACHE_HOME=str(nothing))
    run.until(lambda event: isinstance(event, Probe) and event.state is ProbeState.LOADED)
    run.until(lambda event: isinstance(event, Allocator) and bool(event.pool))
    assert run.end() == ("trained\n", "3 None")
    assert run.probes()[-1].state is ProbeState.LOADED
    assert compiler.built == 2 and compiler.kept()[-1:] == ["so"]  # a draft may still be being removed
    without.until(lambda event: isinstance(event, Probe) and event.state is ProbeState.FAILED)
    assert without.end() == ("told []\n", "3 None")
    told = without.probes()[-1]
    assert "Not a directory" in probe_text(told) and "XDG_CACHE_HOME" in probe_remedy(told)


@pytest.mark.parametrize("damage", DAMAGES)
def test_what_is_handed_out_is_whole(
    compiler: Compiler, tensorflow: tuple[Path, str], library: Path, damage: Callable[[Path], None]
) -> None:
    first = command(tensorflow, **compiler.variables)
    damage(Path(first.path))
    again = command(tensorflow, **compiler.variables)
    assert again.state == "built" and compiler.built == 2 and compiler.kept() == ["so"]
    assert Path(again.path).read_bytes() == library.read_bytes() and again.digest == describe(library).digest


@pytest.mark.parametrize(
    ("extra", "why"),
    [
        # The effect of a linker that ran out of disk space and did not notice it.
        ('truncate -s 16384 "$2"', "ended by SIG"),
        ('echo "int nothing;" | g++ -shared -fPIC -x c++ - -o "$2"', "undefined symbol: tfmemtop_version"),
    ],
)
def test_one_that_fails_its_trial_is_told_and_left_out(
    tmp_path: Path, library: Path, tensorflow: tuple[Path, str], extra: str, why: str
) -> None:
    compiler = Compiler(tmp_path, library, extra)
    built = command(tensorflow, **compiler.variables)
    text, remedy = said(built)
    assert built.state == "failed" and "was built, and" in text and why in text and remedy
    assert compiler.built == 1 and compiler.kept() == []


def test_a_disk_without_room(tensorflow: tuple[Path, str], library: Path, tmp_path: Path) -> None:
    """The compiler reports success for a library that is not complete, as the real linker does."""
    compiler = Compiler(tmp_path, library, "true")
    with small_disk(tmp_path / "disk", "128k") as folder:
        built = command(tensorflow, **{**compiler.variables, "XDG_CACHE_HOME": str(folder)})
        text, remedy = said(built)
        assert built.state == "failed" and "no room" in text and "make room" in remedy
        assert [path.name for path in (folder / "tfmemtop").iterdir()] == ["lock"]


def test_a_disk_that_can_only_be_read(tensorflow: tuple[Path, str], library: Path, tmp_path: Path) -> None:
    compiler = Compiler(tmp_path, library)
    with small_disk(tmp_path / "disk", "2m") as folder:
        variables = {**compiler.variables, "XDG_CACHE_HOME": str(folder)}
        first = command(tensorflow, **variables)
        subprocess.run(["mount", "-o", "remount,ro", folder], check=True)
        assert command(tensorflow, **variables) == first and compiler.built == 1
        other = Compiler(tmp_path, library)
        other.path.write_text(other.path.read_text().replace("echo quick", "echo other"))
        refused = command(tensorflow, **variables)
    text, remedy = said(refused)
    assert refused.state == "failed" and "Read-only" in text and "XDG_CACHE_HOME" in remedy


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a folder away")
def test_a_cache_given_to_somebody_else(compiler: Compiler, tensorflow: tuple[Path, str]) -> None:
    compiler.cache.mkdir()
    os.chown(compiler.cache, 65534, 65534)
    built = command(tensorflow, **compiler.variables)
    text, remedy = said(built)
    assert built.state == "failed" and "another user" in text and "XDG_CACHE_HOME" in remedy
    assert compiler.built == 0


def builder(tensorflow: tuple[Path, str], compiler: Compiler) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", BUILDS, *map(str, tensorflow)],
        env={**os.environ, **compiler.variables},
        stdout=subprocess.PIPE,
        text=True,
    )


def test_two_at_once_build_one(compiler: Compiler, tensorflow: tuple[Path, str]) -> None:
    both = [builder(tensorflow, compiler) for _ in range(2)]
    first, second = (Built(**json.loads(one.communicate(timeout=PATIENCE_S)[0])) for one in both)
    assert first == second and first.state == "built" and compiler.built == 1


def test_builders_that_are_killed_leave_nothing_that_harms(
    tensorflow: tuple[Path, str], tmp_path: Path, library: Path
) -> None:
    """``TFMEMTOP_KILLS`` builders are killed at random moments. ``TFMEMTOP_SEED`` is the seed of these moments."""
    compiler = Compiler(tmp_path, library)
    began = time.monotonic()
    assert command(tensorflow, **compiler.variables).state == "built"
    whole = time.monotonic() - began
    chance = random.Random(int(os.environ.get("TFMEMTOP_SEED", "1")))
    for _ in range(int(os.environ.get("TFMEMTOP_KILLS", "6"))):
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


# A library that crashed a script crashes no other, and a library that did not crash a script is not refused.


# It works in a trial and crashes every script, like a library that fits one process and not another.
KILLER = """
#include <cstdlib>
#include <csignal>
__attribute__((constructor)) static void loaded() {
  const char* limit = getenv("TF_CPU_BFC_MEM_LIMIT_IN_MB");
  if (!limit || atoi(limit) != 64) raise(SIGSEGV);
}
extern "C" {
unsigned tfmemtop_version() { return VERSION; }
int tfmemtop_gpus() { return 0; }
int tfmemtop_stats(int, int, long* out) { for (int i = 1; i < 10; i++) out[i] = 0; return 1; }
int tfmemtop_take(int, int, long* out) { for (int i = 2; i < 11; i++) out[i] = 0; return 1; }
int tfmemtop_sampler_start(int) { return 1; }
int tfmemtop_sampler_stop() { return 1; }
int tfmemtop_keep_log_lines(const char*) { return 1; }
}
"""


def test_a_library_that_ended_a_training_ends_no_other(
    script: Script, library: Path, tmp_path: Path, tensorflow: tuple[Path, str]
) -> None:
    killer = tmp_path / "killer.so"
    subprocess.run(
        ["g++", "-shared", "-fPIC", "-x", "c++", "-", "-o", killer],
        input=KILLER.replace("VERSION", str(VERSION)).encode(),
        check=True,
    )
    compiler = Compiler(tmp_path, killer)
    training = script(TRAINING)
    first = Recorded(tmp_path / "first", PYTHON, training, **compiler.variables)
    first.until(lambda _: False)
    assert first.end() == ("", f"None {int(signal.SIGSEGV)}")  # the design accepts this once
    assert "SIGSEGV" in probe_text(first.probes()[-1]) and compiler.kept() == ["refused"]

    second = Recorded(tmp_path / "second", *speaker(tensorflow, UNTIL_TOLD_TO_END), **compiler.variables)
    second.until(lambda event: isinstance(event, Probe) and event.state is ProbeState.FAILED)
    assert second.end() == ("told []\n", "3 None"), "it is not told to load anything"
    told = second.probes()[-1]
    (mark,) = compiler.cache.glob("*.refused")
    assert "SIGSEGV" in probe_text(told) and str(mark) in probe_remedy(told) and compiler.built == 1, (
        "it is not even built, until its mark is removed"
    )
    mark.unlink()
    assert command(tensorflow, **compiler.variables).state == "built" and compiler.built == 2


@pytest.mark.parametrize(
    ("then", "refused"),
    [
        ("os.kill(os.getpid(), signal.SIGBUS)", True),
        ("os.kill(os.getpid(), signal.SIGKILL)", False),
        ("tell(type='probe', state='loaded'); os.kill(os.getpid(), signal.SIGSEGV)", False),
    ],
)
def test_only_an_end_by_loading_is_the_librarys_fault(
    compiler: Compiler, tensorflow: tuple[Path, str], then: str, refused: bool
) -> None:
    check_refusal(compiler, refused, speaker(tensorflow, LOADING + then))


def test_of_other_processes_nobody_knows_what_ended_them(compiler: Compiler, tensorflow: tuple[Path, str]) -> None:
    killed = speaker(tensorflow, LOADING + "os.kill(os.getpid(), signal.SIGILL)")
    check_refusal(compiler, True, ["sh", "-c", '"$@"; exit 0', "sh", *killed])


def check_refusal(compiler: Compiler, refused: bool, words: list[str]) -> None:
    run = Recorded(compiler.folder / "run", *words, **compiler.variables)
    run.end()
    # After the probe the library of addresses is built, and that build goes on after the run.
    assert [kept for kept in compiler.kept() if kept != "build"] == (["refused"] if refused else ["so"])
