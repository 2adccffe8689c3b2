"""Runs what people claim about TensorFlow's GPU memory: ``python -m tests.gpu.seeds FOLDER [NAME…]``.

It runs a script for every example of the five documents under ``tfmemtop record`` and keeps the recordings in FOLDER.
For each it prints whether the figures that tfmemtop read are the script's own. What is found in the recordings is
tested by ``tests/findings/test_seeds.py``. Without a GPU the scripts run too, but there is little to compare.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tfmemtop.events import Allocator, DeviceReading, recording

SCRIPTS = Path(__file__).parents[1] / "scripts" / "seeds"
TIMEOUT_S = 300


@dataclass(frozen=True)
class Case:
    """One example: the number of its document and what it shows, its script, and how the script is run."""

    name: str
    shows: str
    script: str
    arguments: tuple[str, ...] = ()
    environment: dict[str, str] = field(default_factory=dict)
    options: tuple[str, ...] = ()  # of tfmemtop record
    beside: tuple[str, ...] = ()  # another script that runs at the same time, with its arguments


CASES = (
    Case("default", "nothing set", "warm_function"),
    Case("growth-all", "002-1, 003-1, 004-2: growth on every GPU", "growth_all"),
    Case("growth-one", "003-2: growth on the first GPU only", "growth_one"),
    Case("growth-no-device", "003-3: growth without a device", "growth_no_device"),
    Case("growth-too-late", "000: growth after the first operation", "growth_too_late"),
    Case("growth-then-limit", "003: growth, then a limit", "growth_then_limit"),
    Case("small-tensor", "000-1: one visible GPU, a small tensor", "small_tensor"),
    Case("gradient", "000-2: a gradient tape", "gradient"),
    Case("kernel-again", "000-3: kernels used, tensors deleted", "kernel_again"),
    Case("warm-function", "001-1: tf.function, warmed up", "warm_function", options=("--growth", "on")),
    Case("batch-sizes", "001-2: growing batches", "batch_sizes"),
    Case("visible-first", "001-3: the first GPU visible", "visible_first"),
    Case("limit-1g", "001-3: a limit of 1 GiB", "limit", ("1024",)),
    Case("limit-4g", "002-2: a virtual device of 4 GiB", "limit", ("4096",)),
    Case("two-logical", "002: two logical devices", "two_logical"),
    Case("beyond-card", "002: a limit beyond the card", "limit", ("900000",)),
    Case("cuda-beside", "002-3: CUDA memory beside TensorFlow", "cuda_beside"),
    Case("deleted", "004-1: a large tensor made and deleted", "made_and_deleted"),
    Case("nvidia-smi", "004-3: what nvidia-smi says", "nvidia_smi"),
    Case(
        "variable-false",
        "TF_FORCE_GPU_ALLOW_GROWTH=false against the script",
        "growth_all",
        environment={"TF_FORCE_GPU_ALLOW_GROWTH": "false"},
    ),
    Case(
        "variable-1",
        "TF_FORCE_GPU_ALLOW_GROWTH=1, which is ignored",
        "warm_function",
        environment={"TF_FORCE_GPU_ALLOW_GROWTH": "1"},
    ),
    Case("full-but-idle", "001: full, and nothing computed", "full_but_idle"),
    Case("input-bound", "001: full, and waiting for the host", "input_bound"),
    Case("leaking", "tensors kept step after step", "leaking"),
    Case("cut-up", "small pieces, every other gone, then a large tensor", "cut_up"),
    Case("retraced", "001-1: a tf.function without a warm-up that lasts", "retraced"),
    Case(
        "others",
        "another process holds 40% of the card",
        "growth_all",
        beside=("hold_card", "40", "60"),
    ),
    Case(
        "twins",
        "two runs of one script, neither with growth",
        "visible_first",
        beside=("visible_first", "60"),
    ),
)


@contextmanager
def running_beside(script: str, *arguments: str) -> Iterator[None]:
    """Run another *script* during the ``with`` block, which begins when this script holds its memory."""
    command = [sys.executable, str(SCRIPTS / f"{script}.py"), *arguments]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as other:
        assert other.stderr is not None
        try:
            for line in other.stderr:
                if "holding still" in line:
                    break
            yield
        finally:
            other.kill()


def run(case: Case, folder: Path) -> str:
    """Run *case*, and write its recording to *folder*. Return what went wrong; empty if nothing did."""
    path = folder / f"seed-{case.name}.jsonl"
    script = [sys.executable, str(SCRIPTS / f"{case.script}.py"), *case.arguments]
    command = [sys.executable, "-m", "tfmemtop", "record", "-o", str(path), *case.options, "--", *script]
    try:
        with running_beside(*case.beside) if case.beside else nullcontext():
            done = subprocess.run(
                command,
                capture_output=True,
                text=True,
                check=False,
                timeout=TIMEOUT_S,
                env=os.environ | case.environment,
            )
    except subprocess.TimeoutExpired:
        return f"not over after {TIMEOUT_S} s"
    lines = done.stdout.strip().splitlines()
    if done.returncode or not lines:
        return f"exit code {done.returncode}: {' '.join(done.stderr.split()[-30:])}"
    return ", ".join(differing(json.loads(lines[-1]), path))


def differing(said: dict[str, Any], path: Path) -> list[str]:
    """Return which of tfmemtop's figures differ from the script's own, for the time in which the script held still."""
    found = recording.read(path)
    started = found.session.started
    still = [e for e in found.events() if said["since"] + 0.2 < started + e.t < said["until"] - 0.2]
    apart = []
    for device, figures in said["figures"].items():
        mine = [e for e in still if isinstance(e, Allocator) and e.device == device]
        if not mine or {e.in_use for e in mine} != {figures["current"]} or mine[-1].peak != figures["peak"]:
            apart.append(device)
    pids = {e.pid for e in still if isinstance(e, Allocator)}
    totals = {p.used for e in still if isinstance(e, DeviceReading) for p in e.processes if p.pid in pids}
    if said["process_total"] is not None and totals and totals != {said["process_total"]}:  # of the one GPU
        apart.append("process total")
    return apart


def main(arguments: list[str]) -> int:
    """Run the cases that *arguments* name, or all. Return 1 if one went wrong, 2 without arguments, and otherwise 0."""
    if not arguments:
        print("usage: python -m tests.gpu.seeds FOLDER [NAME…]", file=sys.stderr)
        return 2
    folder = Path(arguments[0])
    folder.mkdir(parents=True, exist_ok=True)
    bad = False
    for case in CASES:
        if case.name in arguments[1:] or not arguments[1:]:
            trouble = run(case, folder)
            bad |= bool(trouble)
            print(f"{case.name:18} {case.shows:60} {trouble or 'agrees'}", flush=True)
    return int(bad)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
