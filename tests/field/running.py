"""Runs a case, or what mends it, under ``tfmemtop record``, with folders of its own."""

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from tests.field.cases import Case
from tests.patience import PATIENCE_S

SCRIPTS = Path(__file__).parent / "scripts"
OURS = [sys.executable, "-m", "tfmemtop"]


def run(case: Case, recording: Path, *, mended: bool = False) -> bool:
    """Run *case*, or with *mended* what mends it. Write the recording, and beside it the output; return if it passed.

    A notebook passes if no cell raises.
    """
    words = shlex.split(case.mended or "" if mended else case.command)
    environment = dict(word.split("=", 1) for word in words if re.match(r"[A-Z_]+=", word))
    script, *arguments = words[len(environment) :]
    # Not in the recording's folder: a socket's path has to be short.
    with tempfile.TemporaryDirectory(prefix="tfm", dir="/tmp") as home:
        variables = {name: value for name, value in os.environ.items() if not name.startswith("TF_")} | {
            "XDG_RUNTIME_DIR": home,
            "XDG_STATE_HOME": f"{home}/state",
            "XDG_CONFIG_HOME": f"{home}/config",
            "TF_CPP_MIN_LOG_LEVEL": "1",
            **environment,
        }
        with recording.with_suffix(".txt").open("w") as output:
            if script.endswith(".ipynb"):
                return _notebook(
                    SCRIPTS / script, case.options.split(), recording, Path(home), variables, output.fileno()
                )
            words = [*case.options.split(), "-o", str(recording), "--", "python", script, *arguments]
            return _passes([*OURS, "record", *words], variables, output.fileno())


def _notebook(
    path: Path, options: list[str], recording: Path, home: Path, variables: Mapping[str, str], output: int
) -> bool:
    folders = {f"JUPYTER_{name}_DIR": str(home / name) for name in ("DATA", "RUNTIME", "CONFIG")}
    variables = {**variables, **folders, "IPYTHONDIR": str(home / "ipython")}
    assert _passes([*OURS, "kernel", "install", *options], variables, output)
    copy = str(shutil.copy(path, home))
    passed = _passes([str(Path(sys.executable).with_name("jupyter-execute")), copy], variables, output)
    (kept,) = (home / "state").rglob("*.jsonl*")
    size = -1
    while size != kept.stat().st_size:  # the engine ends a moment after the kernel
        size = kept.stat().st_size
        time.sleep(1)
    shutil.copy(kept, recording)
    return passed


def _passes(command: list[str], variables: Mapping[str, str], output: int) -> bool:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    try:
        done = subprocess.run(
            command, cwd=SCRIPTS, env={**variables, "PATH": path}, stdin=subprocess.DEVNULL, stdout=output,
            stderr=output, timeout=PATIENCE_S,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return False  # on a GPU, XLA may try hundreds of algorithms for which there is no room, 10 s each
    return done.returncode == 0
