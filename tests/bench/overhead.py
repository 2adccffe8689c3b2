"""What a training pays for being watched: seconds a step under tfmemtop against bare."""

import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from tests.bench.table import Row, has_gpu, spread
from tests.bench.terminal import TFMEMTOP, Terminal

SCRIPT = Path(__file__).parent / "scripts" / "steps.py"
BOUND = 1.01
LIMIT_S = 180.0

_POOL = {"TF_CPU_ALLOCATOR_USE_BFC": "true", "TF_CPU_BFC_MEM_LIMIT_IN_MB": "2048"}
_GROWTH = {"TF_FORCE_GPU_ALLOW_GROWTH": "true"}
_KINDS = {"keras": "a Keras training step", "eager": "an eager loop"}

Figures = dict[str, float]


class _Runs:
    """Starts the script in one manner or another; gives its median seconds a step, by kind."""

    def __init__(self, folder: Path, seconds: float) -> None:
        self.folder = folder
        self.environment: Mapping[str, str] = {
            **os.environ,
            **(_GROWTH if has_gpu() else _POOL),
            "TF_CPP_MIN_LOG_LEVEL": "2",
        }
        self.figures = folder / "figures.json"
        self.command = [sys.executable, str(SCRIPT), str(self.figures), str(seconds)]

    def bare(self) -> Figures:
        return self._run(self.command)

    def recorded(self) -> Figures:
        recording = self.folder / "steps.jsonl"
        recording.unlink(missing_ok=True)
        figures = self._run([*TFMEMTOP, "record", "-o", str(recording), "--interval", "0.1", "--", *self.command])
        if b'"allocator"' not in recording.read_bytes():
            raise RuntimeError("no allocator was read: what was measured is not what it says")
        return figures

    def watched(self) -> Figures:
        script = [*self.command]
        with Terminal([*TFMEMTOP, "--interval", "0.1", "--", *script], 160, 48, self.environment) as terminal:
            terminal.wait_for("exit code 0", LIMIT_S)
            terminal.press("q")
            terminal.wait_closed(30)
        return self._read()

    def _run(self, command: list[str]) -> Figures:
        subprocess.run(command, env=self.environment, capture_output=True, check=True, timeout=LIMIT_S)
        return self._read()

    def _read(self) -> Figures:
        blocks: dict[str, list[float]] = json.loads(self.figures.read_text())
        self.figures.unlink()
        return {kind: statistics.median(taken) for kind, taken in blocks.items()}


def measure(quick: bool) -> list[Row]:
    """Bare, recorded, bare, watched, and so on; each against the mean of the bare runs around it."""
    rounds, seconds = (1, 2.5) if quick else (4, 4.0)
    with tempfile.TemporaryDirectory(prefix="tfmemtop-bench-") as folder:
        runs = _Runs(Path(folder), seconds)
        bare = [runs.bare()]
        watched: dict[str, list[tuple[int, Figures]]] = {"record": [], "the live screen": []}
        for _ in range(rounds):
            for manner, start in (("record", runs.recorded), ("the live screen", runs.watched)):
                watched[manner].append((len(bare), start()))
                bare.append(runs.bare())
    rows = []
    for kind, what in _KINDS.items():
        step_ms = statistics.median(figures[kind] for figures in bare) * 1e3
        between = [b[kind] / a[kind] for a, b in zip(bare, bare[1:], strict=False)]
        for manner, taken in watched.items():
            ratios = [f[kind] / ((bare[at - 1][kind] + bare[at][kind]) / 2) for at, f in taken]
            rows.append(
                Row(
                    f"{what} ({step_ms:.1f} ms) under {manner}, 10 readings a second, against bare",
                    f"{BOUND}×",
                    f"{spread(ratios, 3)}×",
                    f"{len(ratios)} paired runs, each between two bare ones, medians of {seconds / 0.5:.0f} blocks; "
                    f"bare against the bare before it: {spread(between, 3)}×",
                    statistics.median(ratios) <= BOUND,
                )
            )
    return rows
