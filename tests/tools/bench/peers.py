"""tfmemtop beside nvitop, in turns on one machine: the first screen, CPU at the same pace, memory.

Needs a GPU. nvitop is the one that ``$NVITOP`` names, or the one on the path. If there is none, it is installed beside
this checkout. Both programs are warm, and a TensorFlow process is on the card.
"""

import os
import re
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import psutil

from tests.own_sessions import own_sessions
from tests.starting import PROGRAM
from tests.tools.bench.table import Row, has_gpu, in_turns, spread
from tests.tools.bench.watching import cpu_percents, memory_mb
from tests.tools.terminal import Terminal, private_sessions

VERSION = "1.7.2"
FIRST_SCREEN, CPU, MEMORY = 2.0, 1.3, 1.7
"""The bounds, as multiples of nvitop's figures."""

_HOME = Path(__file__).parents[3] / ".bench" / f"nvitop-{VERSION}"
_SIZE = (160, 48)
_SETTLE_S = 4.0
_SCRIPT = Path(__file__).parent / "scripts" / "light.py"

# The first figure that each draws of a card's memory: "2.8 of 140.4 GiB", "2867MiB / 140.4GiB".
_OURS = re.compile(rb"\d(?: [KMGT]iB)? of [\d.]+ [MGT]iB")
_THEIRS = re.compile(rb"\d[KMGT]iB / [\d.]+[MGT]iB")


def find_nvitop() -> list[str]:
    """Return the command that starts nvitop's full monitor, once a second. Install nvitop if there is none.

    Raises:
        RuntimeError: nvitop cannot be installed, or the one found has another version.
    """
    named = os.environ.get("NVITOP") or shutil.which("nvitop") or str(_HOME / "bin" / "nvitop")
    if not Path(named).exists():
        subprocess.run([sys.executable, "-m", "venv", str(_HOME)], check=True, capture_output=True)
        pip = [str(_HOME / "bin" / "python"), "-m", "pip", "install", "--quiet", f"nvitop=={VERSION}"]
        done = subprocess.run(pip, check=False, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"nvitop {VERSION} cannot be installed: {done.stderr.strip()[-300:]}")
    told = subprocess.run([named, "--version"], check=False, capture_output=True, text=True).stdout
    if VERSION not in told:
        raise RuntimeError(f"{named} is not nvitop {VERSION} but {told.strip() or 'something else'}")
    return [named, "--monitor", "full", "--interval", "1"]


def _processes(terminal: Terminal) -> list[psutil.Process]:
    """Return the process on the terminal, and tfmemtop's engine and keeper if they are processes of their own."""
    apart = [psutil.Process(session.pid) for session in own_sessions() if session.pid != terminal.pid]
    return [psutil.Process(terminal.pid), *apart, *filter(None, (engine.parent() for engine in apart))]


def first_screen_s(command: Sequence[str], drawn: re.Pattern[bytes]) -> float:
    """Return the seconds until the card's figures are drawn."""
    with private_sessions(), Terminal(command, size=_SIZE) as terminal:
        return terminal.wait_for(drawn)


def at_rest(command: Sequence[str], drawn: re.Pattern[bytes], windows: int, window_s: float) -> tuple[float, float]:
    """Return the CPU in percent of a core, as the median of *windows*, and the proportional memory in MB."""
    with private_sessions(), Terminal(command, size=_SIZE) as terminal:
        terminal.wait_for(drawn)
        time.sleep(_SETTLE_S)
        processes = _processes(terminal)
        percents = [sum(each) for each in cpu_percents(processes, windows, window_s)]
        return statistics.median(percents), sum(memory_mb(process)[0] for process in processes)


@contextmanager
def _training() -> Iterator[None]:
    """Run a TensorFlow process on the card."""
    environment = {**os.environ, "TF_FORCE_GPU_ALLOW_GROWTH": "true", "TF_CPP_MIN_LOG_LEVEL": "2"}
    command = [sys.executable, str(_SCRIPT)]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE) as script:
        try:
            assert script.stdout is not None
            script.stdout.read(5)  # the process has made a step
            yield
        finally:
            script.kill()


def _row(what: str, unit: str, most: float, pairs: Sequence[tuple[float, float]], digits: int, how: str) -> Row:
    ratios = [ours / theirs for ours, theirs in pairs]
    ours, theirs = ([pair[side] for pair in pairs] for side in (0, 1))
    return Row(
        what,
        f"{most}× nvitop's",
        f"{spread(ratios, 2)}×: {spread(ours, digits)} {unit} against {spread(theirs, digits)} {unit}",
        f"{len(pairs)} pairs in turns, nvitop {VERSION}; {how}",
        statistics.median(ratios) <= most,
    )


def measure(quick: bool) -> list[Row]:
    """Measure both side by side. Without a GPU return one row that reports this."""
    if not has_gpu():
        return [Row("beside nvitop", "", "not measured", "there is no GPU here, and nvitop shows nothing without")]
    sides = ([PROGRAM], _OURS), (find_nvitop(), _THEIRS)
    with _training():
        for side in sides:
            first_screen_s(*side)  # read each program's files once, so that they are in memory
        screens = in_turns(5 if quick else 15, *(partial(first_screen_s, *side) for side in sides))
        window_s = 5.0 if quick else 10.0
        rests = in_turns(1 if quick else 4, *(partial(at_rest, *side, 3, window_s) for side in sides))
    what = "without a script of its own, a TensorFlow process on the card"
    return [
        _row("first screen with the card's figures", "s", FIRST_SCREEN, screens, 2, f"{what}; warm"),
        _row("CPU at one picture a second", "%", CPU, [(one[0], other[0]) for one, other in rests], 1, what),
        _row("memory (PSS)", "MB", MEMORY, [(one[1], other[1]) for one, other in rests], 0, what),
    ]
