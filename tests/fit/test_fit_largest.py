"""``tfmemtop fit --largest`` with real scripts: it finds the largest value, and reports the evidence for it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.patience import PATIENCE_S
from tfmemtop.cli.main import main

pytestmark = pytest.mark.programs

PROGRAM = str(Path(sys.executable).with_name("tfmemtop"))
MIB = 1 << 20

FIXED_AND_BATCH = """
import sys
import tensorflow as tf
batch = int(sys.argv[1])
fixed = tf.zeros([100, 256, 1024])
rows = [fixed[0] + number for number in range(batch)]
"""


def fit(*arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([PROGRAM, "fit", *arguments], capture_output=True, text=True, check=False, timeout=PATIENCE_S)


@pytest.mark.tensorflow
def test_the_largest_number_of_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    script = tmp_path / "rows.py"
    script.write_text(FIXED_AND_BATCH)
    limit = ("--to", "400M", "--no-probe", "--json")
    done = fit("--largest", "rows=240..300", "--tries", "3", *limit, "--", sys.executable, str(script), "{rows}")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    value, failed = found["value"], found["failed_above"]
    # 100 MiB are always in use. Some of the rest is lost, because regions never merge and chunks are larger than
    # requested.
    assert 240 <= value < failed <= 300
    assert [one["value"] for one in found["tries"]][:2] == [240, 300] and len(found["tries"]) == 3
    assert failed - value <= max(1, value // 50) or not found["settled"]
    assert found["limit"] == 400 * MIB
    assert found["bytes_each"] == pytest.approx(MIB, rel=0.1)
    assert all("out of memory" in one["how"] for one in found["tries"] if not one["passed"])


def test_tries_without_a_pool_give_no_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    limit = ("--gpus", "none", "--to", "400M")
    done = fit("--largest", "n=1..4096", *limit, "--json", "--", "sh", "-c", "exit 0", "{n}")
    found = json.loads(done.stdout)
    assert (done.returncode, found["value"], found["no_effect"]) == (3, None, True)
    assert [(one["passed"], one["result"]) for one in found["tries"]] == [(False, "unused")]
    said = " ".join(found["sentences"])
    assert "the try with n=64 proves nothing. tfmemtop did not see TensorFlow use CPU memory." in said


@pytest.mark.tensorflow
def test_a_script_with_a_limit_of_its_own_gives_no_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    script = tmp_path / "own.py"
    script.write_text(f"import os\nos.environ['TF_CPU_BFC_MEM_LIMIT_IN_MB'] = '900'\n{FIXED_AND_BATCH}")
    limit = ("--gpus", "none", "--to", "400M", "--no-probe")
    done = fit("--largest", "rows=64..400", *limit, "--", sys.executable, str(script), "{rows}")
    assert done.returncode == 3, done.stderr
    said = " ".join(done.stdout.split())
    assert "Nothing was found: the try with rows=128 proves nothing." in said
    assert "The limit had no effect: TensorFlow's pool had a limit of 900.0 MiB." in said


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
