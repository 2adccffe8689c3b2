"""``tfmemtop fit`` with real scripts, which it starts, limits and ends."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.patience import PATIENCE_S
from tests.starting import PROGRAM, tfmemtop
from tfmemtop.cli.main import main

pytestmark = pytest.mark.programs

MIB = 1 << 20

KEEPS_200_PEAKS_AT_300 = """
import tensorflow as tf
kept = tf.zeros([200, 256, 1024])
more = tf.zeros([100, 256, 1024])
del more
print("peak reached", flush=True)
@tf.function
def step(x):
    return tf.reduce_sum(x * 2.0)
while True:
    step(tf.zeros([1 << 16]))
"""


@pytest.fixture(autouse=True)
def kept_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def fit(*arguments: str) -> subprocess.CompletedProcess[str]:
    return tfmemtop("fit", *arguments)


def told(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.tensorflow
def test_the_need_of_a_real_script_is_found() -> None:
    # Steps follow the peak. A second may end before the peak on a busy machine.
    arguments = ("--steps", "20", "--tries", "3", "--no-probe", "--json")
    done = fit(*arguments, "--", sys.executable, "-c", KEEPS_200_PEAKS_AT_300)
    assert done.returncode == 0, done.stderr
    found = told(done)
    first, *limited = found["tries"]
    assert first["limit"] is None and first["passed"]
    # Without a limit, a chunk may be up to twice as large as requested. The bytes of the tensors are always needed.
    assert 300 * MIB <= first["peak_in_use"] <= 600 * MIB
    assert 300 * MIB <= found["limit"] <= 2 * first["peak_in_use"] + MIB
    assert found["failed_below"] is None or found["failed_below"] < found["limit"] < found["advice"]
    failed = [one for one in limited if not one["passed"]]
    assert failed
    assert all("out of memory" in one["how"] for one in failed)
    assert len(done.stderr.splitlines()) == len(found["tries"]) == 3
    assert all(line.startswith("tfmemtop: try ") for line in done.stderr.splitlines())
    output = Path(found["output"]).read_text()
    assert output.count("peak reached") == len(found["tries"]) - len(failed)


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("exit 3", "without a limit either (ended with exit code 3)"),
        ("kill -SEGV $$", "without a limit either (ended by SIGSEGV)"),
        ("exit 0", "proves nothing"),
    ],
)
def test_nothing_found_is_1_or_3_and_says_why(script: str, said: str) -> None:
    done = fit("--gpus", "none", "--", "sh", "-c", f"echo to stdout; {script}")
    assert done.returncode == (3 if script == "exit 0" else 1)
    assert said in " ".join(done.stdout.split())
    assert "to stdout" not in done.stdout + done.stderr
    path = Path(done.stdout.splitlines()[-1].rpartition(": ")[2])
    assert "to stdout" in path.read_text()
    assert done.stderr.count("tfmemtop: try ") == 1


def test_what_cannot_be_tried_is_said_in_one_line(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["fit", "--", "no-such-command"]) == 127
    printed, told = capfd.readouterr()
    assert printed == "" and "no-such-command: command not found" in told.splitlines()[-1]


def test_ctrl_c_ends_the_try_and_tells_what_is_known(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    script = f"trap 'exit 0' TERM; echo $$ > {pipe}; while :; do sleep 0.1; done"
    with subprocess.Popen(
        [PROGRAM, "fit", "--", "bash", "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as running:
        pid = int(pipe.read_text())
        running.send_signal(signal.SIGINT)
        out, progress = running.communicate(timeout=PATIENCE_S)
    assert running.returncode == 130
    assert not Path(f"/proc/{pid}").exists()
    assert "no limit … interrupted" in progress
    assert "interrupted" in out


# ``tfmemtop fit --largest`` with real scripts: it finds the largest value, and reports the evidence for it.


def test_tries_without_a_pool_give_no_number() -> None:
    limit = ("--gpus", "none", "--to", "400M")
    done = fit("--largest", "n=1..4096", *limit, "--json", "--", "sh", "-c", "exit 0", "{n}")
    found = json.loads(done.stdout)
    assert (done.returncode, found["value"], found["no_effect"]) == (3, None, True)
    assert [(one["passed"], one["result"]) for one in found["tries"]] == [(False, "unused")]
    assert "n=64 proves nothing" in " ".join(found["sentences"])


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("--largest", "batch=9..1", "--", "true", "{batch}"), "give a name and a range of whole numbers"),
        (("--largest", "batch=1..9", "--", "true"), "the command has no {batch}"),
        (("--largest", "batch=1..9", "--from", "1G", "--", "true", "{batch}"), "--to gives the limit of every try"),
        (("--largest", "batch=1..9", "--gpus", "none", "--", "true", "{batch}"), "--largest needs --to"),
    ],
)
def test_what_cannot_be_searched_is_refused_in_one_line(
    arguments: tuple[str, ...], why: str, capfd: pytest.CaptureFixture[str]
) -> None:
    code = main(["fit", *arguments])
    told = capfd.readouterr().err
    assert code == 2 and why in told and len(told.splitlines()) == 1, told
