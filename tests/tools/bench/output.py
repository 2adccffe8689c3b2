"""The script's output: how fast the emulated terminal takes it, and what a frame of the panel costs.

The engine passes on at most 16 KiB every 50 ms, which is 0.33 MB/s.
"""

import asyncio
import statistics
import time
from collections.abc import Callable

from textual.app import App, ComposeResult

from tests.tools.bench.table import Row
from tfmemtop import events as ev
from tfmemtop.settings import Settings
from tfmemtop.state import State, apply
from tfmemtop.ui.panels.output_panel import OutputPanel
from tfmemtop.ui.terminal.emulator import TerminalScreen

SLOWEST_MB_S = 1.0
BUDGET_MS = 15.0
SIZE = (100, 24)
CHUNK = 16 * 1024

_LOG = "2026-01-01 12:00:00.{n:06} I tensorflow/core/common_runtime/bfc_allocator.cc:{n}] one line of the log\r\n"
_BAR = (
    "\r\x1b[1m{n}/1875\x1b[0m \x1b[32m━━━━━━━━━━━━━\x1b[0m\x1b[37m━━━━━━━\x1b[0m \x1b[1m3s\x1b[0m 2ms/step - "
    "accuracy: 0.9{n} - loss: 0.3{n}"
)
_COLOURS = "\x1b[38;5;{n}m\x1b[48;2;1;2;3mx\x1b[0m{n}\r\n"
WRITINGS = {"log lines": _LOG, "progress bars": _BAR, "short coloured lines": _COLOURS}


def _text(pattern: str, size: int) -> str:
    text = "".join(pattern.format(n=n) for n in range(size // len(pattern) + 1))
    return text[:size]


def speed(pattern: str, size: int = 1_000_000) -> float:
    """Return the MB/s that the terminal takes, in chunks of the size in which they arrive."""
    text = _text(pattern, size)
    screen = TerminalScreen(*SIZE)
    begun = time.thread_time()
    for at in range(0, len(text), CHUNK):
        screen.feed(text[at : at + CHUNK])
        screen.lines(0, SIZE[1])
    return size / (time.thread_time() - begun) / 1e6


def _median_ms(work: Callable[[], object], rounds: int = 40) -> float:
    taken = []
    for _ in range(rounds):
        begun = time.thread_time()
        work()
        taken.append((time.thread_time() - begun) * 1e3)
    return statistics.median(taken)


class _Screen(App[None]):
    def compose(self) -> ComposeResult:
        yield OutputPanel()


async def frames() -> dict[str, float]:
    """Return the median milliseconds of CPU that a frame takes, by what is new in it."""
    state = State()
    app = _Screen(ansi_color=True)
    async with app.run_test(size=(SIZE[0], SIZE[1] + 1)):
        panel = app.query_one(OutputPanel)
        apply(state, ev.Run(t=0.0, run=1, pid=7, argv=["python"], cwd="/", settings=Settings()))
        panel.show(state)

        def write(text: str) -> None:
            apply(state, ev.Output(t=1.0, run=1, text=text))
            panel.show(state)

        flood, bar = _text(_LOG, CHUNK), _text(_BAR, 120)
        result = {
            "nothing new": _median_ms(lambda: panel.show(state)),
            "a progress bar": _median_ms(lambda: write(bar)),
        }
        return result | {"16 KiB of log": _median_ms(lambda: write(flood))}


def measure(quick: bool) -> list[Row]:
    """Measure the terminal's speed with each kind of writing, and the panel's frames."""
    size = 200_000 if quick else 1_000_000
    speeds = {name: speed(pattern, size) for name, pattern in WRITINGS.items()}
    costs = asyncio.run(frames())
    columns, rows = SIZE
    return [
        Row(
            "the output's terminal takes",
            f"at least {SLOWEST_MB_S} MB/s",
            ", ".join(f"{name} {value:.1f}" for name, value in speeds.items()) + " MB/s",
            f"{size / 1e6:.1f} MB of each in chunks of 16 KiB, {columns}×{rows}, CPU time",
            min(speeds.values()) >= SLOWEST_MB_S,
        ),
        Row(
            "the output panel in a frame",
            f"{BUDGET_MS:.0f} ms",
            ", ".join(f"{name} {value:.1f}" for name, value in costs.items()) + " ms",
            "40 frames of each, medians of CPU time",
            max(costs.values()) <= BUDGET_MS,
        ),
    ]
