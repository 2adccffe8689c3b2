"""``tfmemtop fit`` builds the probe and the replay before its first try, so that the first try can be replayed."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.probe.cached import Compiler
from tests.starting import tfmemtop
from tfmemtop.probe.build import REPLAY, build

pytestmark = [pytest.mark.programs, pytest.mark.tensorflow]

SCRIPT = "import tensorflow as tf\nrows = [tf.zeros([256, 1024]) for _ in range(50)]\n"


def fit(script: str, *options: str, **variables: str) -> "subprocess.CompletedProcess[str]":
    limits = ("--tries", "1", "--gpus", "none", "--to", "400M")
    return tfmemtop("fit", *limits, *options, "--", sys.executable, "-c", script, variables=variables)


def test_the_first_search_of_a_machine_is_predicted(tensorflow: tuple[Path, str], tmp_path: Path) -> None:
    library, replay = (Path(build(tensorflow[0], *product).path) for product in ((), (REPLAY,)))
    compiler = Compiler(tmp_path, library, replay=replay)
    variables = {**compiler.variables, "XDG_STATE_HOME": str(tmp_path / "state")}
    done = fit(SCRIPT, "--json", **variables)
    begins = [line.partition(" \N{HORIZONTAL ELLIPSIS} ") for line in done.stderr.splitlines()]
    version, _, result = tensorflow[1], *begins[0][1:]
    assert [begin for begin, _, _ in begins] == [
        f"tfmemtop: building the probe for TensorFlow {version}; this happens once",
        f"tfmemtop: building the replay for TensorFlow {version}; this happens once",
        "tfmemtop: try 1 of at most 1: limit 400.0 MiB",
    ]
    assert result.startswith("done (") and compiler.built == 2
    (tried,) = json.loads(done.stdout)["tries"]
    assert tried["passed"] and tried["at_least"] <= tried["surely"] < 400 << 20


def test_a_search_without_a_compiler_says_that_nothing_is_predicted(tmp_path: Path) -> None:
    for name in ("bash", "sh", "readlink", "env"):  # what starts tfmemtop
        (tmp_path / name).symlink_to(str(shutil.which(name)))
    variables = {"XDG_CACHE_HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path), "CXX": "", "PATH": str(tmp_path)}
    done = fit("pass", **variables)
    first, second, *_ = done.stderr.splitlines()
    assert first.startswith("tfmemtop: no limit or value can be predicted: there is no C++ compiler; "), done.stderr
    assert second.startswith("tfmemtop: try 1 of at most 1")
