"""A library that crashed a script crashes no other, and a library that did not crash a script is not refused."""

import signal
import subprocess
from pathlib import Path

import pytest

from tests.hooked import PYTHON
from tests.probe.cached import LOADING, TRAINING, UNTIL_TOLD_TO_END, Compiler, Recorded, Script, speaker
from tests.probe.test_build import command
from tfmemtop.events import Probe, ProbeState
from tfmemtop.findings.probe_text import probe_remedy, probe_text

# It works in a trial and crashes every script, like a library that fits one process and not another.
KILLER = """
#include <cstdlib>
#include <csignal>
__attribute__((constructor)) static void loaded() {
  const char* limit = getenv("TF_CPU_BFC_MEM_LIMIT_IN_MB");
  if (!limit || atoi(limit) != 64) raise(SIGSEGV);
}
extern "C" {
unsigned tfmemtop_version() { return 2; }
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
    assert first.end() == ("", f"None {int(signal.SIGSEGV)}")  # the design accepts this once
    assert "SIGSEGV" in probe_text(first.probes()[-1]) and compiler.kept() == ["refused"]

    second = Recorded(tmp_path / "second", *speaker(tensorflow, UNTIL_TOLD_TO_END), **compiler.variables)
    second.until(lambda event: isinstance(event, Probe) and event.state is ProbeState.FAILED)
    assert second.end() == ("told []\n", "3 None"), "it is not told to load anything"
    told = second.probes()[-1]
    (mark,) = compiler.cache.glob("*.refused")
    assert "SIGSEGV" in probe_text(told) and str(mark) in probe_remedy(told) and compiler.built == 2

    # The new build gave the same library. From now on it is not even built, until its mark is removed.
    assert command(tensorflow, **compiler.variables).state == "failed" and compiler.built == 2
    mark.unlink()
    assert command(tensorflow, **compiler.variables).state == "built" and compiler.built == 3


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
    check_refusal(compiler, refused, speaker(tensorflow, LOADING + then))


def test_of_other_processes_nobody_knows_what_ended_them(compiler: Compiler, tensorflow: tuple[Path, str]) -> None:
    killed = speaker(tensorflow, LOADING + "os.kill(os.getpid(), signal.SIGILL)")
    check_refusal(compiler, True, ["sh", "-c", '"$@"; exit 0', "sh", *killed])


def check_refusal(compiler: Compiler, refused: bool, words: list[str]) -> None:
    run = Recorded(compiler.folder / "run", *words, **compiler.variables)
    run.end()
    assert compiler.kept() == (["refused"] if refused else ["so"])
