"""Test what people claim about TensorFlow's GPU memory: ``python -m tests.gpu.seeds FOLDER [NAME…]``.

It runs a script for every example of the five documents under ``tfmemtop record`` and keeps the recordings in FOLDER.
For each script it prints, as markdown, the script's own figures, the figures that tfmemtop read, and the findings.
Without a GPU the scripts run too, but there is little to report.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tfmemtop import events
from tfmemtop.events import recording
from tfmemtop.findings.busy import FullButIdle
from tfmemtop.findings.finding import Finding
from tfmemtop.findings.leaks import Leak
from tfmemtop.findings.memory import AllocationFailed
from tfmemtop.findings.notices import Noticed
from tfmemtop.findings.others import OthersHoldCard, TwoReserveCard
from tfmemtop.findings.outside import OutsidePool
from tfmemtop.findings.pool import CachedButIdle, WholeCard
from tfmemtop.findings.retracing import Retraced
from tfmemtop.findings.review import RunReview, review
from tfmemtop.findings.settings import (
    AskedTooLate,
    CallRefused,
    GrowthDropped,
    GrowthOverridden,
    GrowthWordIgnored,
)
from tfmemtop.reports.settings import in_effect as words_of
from tfmemtop.state.effective_settings import effective_settings
from tfmemtop.units import format_bytes

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
    expected: tuple[type[Finding], ...] = ()  # findings that are expected on one H200


CASES = (
    Case("default", "nothing set", "warm_function", expected=(WholeCard,)),
    Case("growth-all", "002-1, 003-1, 004-2: growth on every GPU", "growth_all"),
    Case("growth-one", "003-2: growth on the first GPU only", "growth_one"),
    Case("growth-no-device", "003-3: growth without a device", "growth_no_device", expected=(CallRefused,)),
    Case("growth-too-late", "000: growth after the first operation", "growth_too_late", expected=(AskedTooLate,)),
    Case("growth-then-limit", "003: growth, then a limit", "growth_then_limit", expected=(GrowthDropped,)),
    Case("small-tensor", "000-1: one visible GPU, a small tensor", "small_tensor"),
    Case("gradient", "000-2: a gradient tape", "gradient"),
    Case("kernel-again", "000-3: kernels used, tensors deleted", "kernel_again"),
    Case("warm-function", "001-1: tf.function, warmed up", "warm_function", options=("--growth", "on")),
    Case("batch-sizes", "001-2: growing batches", "batch_sizes"),
    Case("visible-first", "001-3: the first GPU visible", "visible_first", expected=(WholeCard,)),
    Case("limit-1g", "001-3: a limit of 1 GiB", "limit", ("1024",)),
    Case("limit-4g", "002-2: a virtual device of 4 GiB", "limit", ("4096",)),
    Case("two-logical", "002: two logical devices", "two_logical"),
    Case("beyond-card", "002: a limit beyond the card", "limit", ("900000",)),
    Case("cuda-beside", "002-3: CUDA memory beside TensorFlow", "cuda_beside", expected=(OutsidePool,)),
    Case("deleted", "004-1: a large tensor made and deleted", "made_and_deleted", expected=(CachedButIdle,)),
    Case("nvidia-smi", "004-3: what nvidia-smi says", "nvidia_smi"),
    Case(
        "variable-false",
        "TF_FORCE_GPU_ALLOW_GROWTH=false against the script",
        "growth_all",
        environment={"TF_FORCE_GPU_ALLOW_GROWTH": "false"},
        expected=(GrowthOverridden, WholeCard),
    ),
    Case(
        "variable-1",
        "TF_FORCE_GPU_ALLOW_GROWTH=1, which is ignored",
        "warm_function",
        environment={"TF_FORCE_GPU_ALLOW_GROWTH": "1"},
        expected=(GrowthWordIgnored, WholeCard),
    ),
    Case("full-but-idle", "001: full, and nothing computed", "full_but_idle", expected=(WholeCard, FullButIdle)),
    Case("input-bound", "001: full, and waiting for the host", "input_bound", expected=(FullButIdle,)),
    Case("leaking", "tensors kept step after step", "leaking", expected=(Leak,)),
    Case("cut-up", "small pieces, every other gone, then a large tensor", "cut_up", expected=(AllocationFailed,)),
    Case("retraced", "001-1: a tf.function without a warm-up that lasts", "retraced", expected=(Retraced,)),
    Case(
        "others",
        "another process holds 40% of the card",
        "growth_all",
        beside=("hold_card", "40", "60"),
        expected=(OthersHoldCard,),
    ),
    Case(
        "twins",
        "two runs of one script, neither with growth",
        "visible_first",
        beside=("visible_first", "60"),
        expected=(TwoReserveCard, OthersHoldCard),
    ),
)


@dataclass
class CaseOutcome:
    """The result of a case: the script's own figures, and the run as tfmemtop recorded it."""

    case: Case
    said: dict[str, Any] | None
    seen: RunReview | None
    trouble: str = ""

    @property
    def found(self) -> list[type[Finding]]:
        """The types of the findings that held at any time. Asides and notices are left out."""
        findings = [held.finding for held in self.seen.held] if self.seen else []
        return [type(finding) for finding in findings if not finding.aside and not isinstance(finding, Noticed)]


@contextmanager
def running_beside(case: Case) -> Iterator[None]:
    """Run the other script of *case*, if there is one.

    The body of the ``with`` statement begins when this script holds its memory. At the end of the body it is killed.
    """
    if not case.beside:
        yield
        return
    command = [sys.executable, str(SCRIPTS / f"{case.beside[0]}.py"), *case.beside[1:]]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as other:
        assert other.stderr is not None
        try:
            for line in other.stderr:
                if "holding still" in line:
                    break
            yield
        finally:
            other.kill()


def run(case: Case, folder: Path) -> CaseOutcome:
    """Run *case*, and write its recording to *folder*."""
    path = folder / f"seed-{case.name}.jsonl"
    script = [sys.executable, str(SCRIPTS / f"{case.script}.py"), *case.arguments]
    command = [sys.executable, "-m", "tfmemtop", "record", "-o", str(path), *case.options, "--", *script]
    try:
        with running_beside(case):
            done = subprocess.run(
                command,
                capture_output=True,
                text=True,
                check=False,
                timeout=TIMEOUT_S,
                env=os.environ | case.environment,
            )
    except subprocess.TimeoutExpired:
        return CaseOutcome(case, None, None, f"not over after {TIMEOUT_S} s")
    try:
        seen = review(recording.read(path).events())
    except recording.RecordingError as error:
        return CaseOutcome(case, None, None, f"{error}; {done.stderr.strip().splitlines()[-1:]}")
    lines = done.stdout.strip().splitlines()
    if done.returncode or not lines:
        return CaseOutcome(case, None, seen, f"exit code {done.returncode}: {' '.join(done.stderr.split()[-30:])}")
    return CaseOutcome(case, json.loads(lines[-1]), seen)


def agreement(outcome: CaseOutcome, path: Path) -> str:
    """Compare tfmemtop's figures with the script's own, for the time in which the script held still.

    Returns "yes", or "no" with the figures that differ, or a dash if the script has no figures.
    """
    said = outcome.said
    if said is None or not said["figures"]:
        return "—"
    started = recording.read(path).session.started
    apart = []
    still = [e for e in recording.read(path).events() if said["since"] + 0.2 < started + e.t < said["until"] - 0.2]
    for device, figures in said["figures"].items():
        mine = [e for e in still if isinstance(e, events.Allocator) and e.device == device]
        if not mine or {e.in_use for e in mine} != {figures["current"]} or mine[-1].peak != figures["peak"]:
            apart.append(device)
    pids = {e.pid for e in still if isinstance(e, events.Allocator)}
    totals = {
        p.used for e in still if isinstance(e, events.DeviceReading) for p in e.processes if p.pid in pids
    }  # of the one GPU
    if said["process_total"] is not None and totals and totals != {said["process_total"]}:
        apart.append("process total")
    return "yes" if not apart else "no: " + ", ".join(apart)


def row(outcome: CaseOutcome, folder: Path) -> str:
    """Return the line of the table for this outcome."""
    case, seen = outcome.case, outcome.seen
    run_state = seen.state.run if seen else None
    if seen is None or run_state is None:
        return f"| {case.name} | {case.shows} | {outcome.trouble} | | | | | | | |"
    account = seen.account
    missing = [kind.__name__ for kind in case.expected if kind not in outcome.found]
    cells = [
        case.name,
        case.shows,
        " · ".join(words_of(effective_settings(run_state))) or "—",
        format_bytes(run_state.peak_process_total),
        format_bytes(run_state.peak_pool),
        format_bytes(run_state.peak_in_use),
        (("" if account.context_exact else "~") + format_bytes(account.context)) if account else "—",
        format_bytes(account.outside) if account else "—",
        agreement(outcome, folder / f"seed-{case.name}.jsonl"),
        ", ".join(kind.__name__ for kind in outcome.found) or "nothing",
        ", ".join(missing) or "—",
    ]
    return "| " + " | ".join(cells) + " |"


HEAD = (
    "case",
    "the example",
    "settings in effect",
    "process total",
    "pool",
    "in use, peak",
    "context",
    "outside",
    "agrees with the script",
    "found",
    "expected, not found",
)


def main(arguments: list[str]) -> int:
    """Run the cases that *arguments* name, or all.

    Returns 1 if a case could not be run, or if on a GPU an expected finding is missing. Returns 2 without arguments,
    and otherwise 0.
    """
    if not arguments:
        print("usage: python -m tests.gpu.seeds FOLDER [NAME…]", file=sys.stderr)
        return 2
    folder = Path(arguments[0])
    folder.mkdir(parents=True, exist_ok=True)
    chosen = [case for case in CASES if case.name in arguments[1:] or not arguments[1:]]
    outcomes = []
    print(f"| {' | '.join(HEAD)} |\n|{' --- |' * len(HEAD)}", flush=True)
    for case in chosen:
        outcomes.append(run(case, folder))
        print(row(outcomes[-1], folder), flush=True)
    for outcome in outcomes:
        print(f"\n### {outcome.case.name}: {outcome.case.shows}")
        if outcome.trouble:
            print(f"\nCould not be run: {outcome.trouble}")
        if outcome.said:
            print(f"\nIt said: `{json.dumps(outcome.said)}`")
        for held in outcome.seen.held if outcome.seen else []:
            if type(held.finding) in outcome.found:
                name, text = type(held.finding).__name__, held.finding.said.text
                print(f"\n- **{name}** ({held.first:.0f} s to {held.last:.0f} s): {text}")
    gpu = any(outcome.said and outcome.said["gpus"] for outcome in outcomes)
    missing = gpu and any(kind not in outcome.found for outcome in outcomes for kind in outcome.case.expected)
    return 1 if missing or any(outcome.trouble for outcome in outcomes) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
