"""The cost of a recording of a whole day: its size, and the time to write, open and explain it and to seek in it."""

import asyncio
import os
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

from tests.starting import PROGRAM
from tests.tools.bench.machine import DAY_S, session
from tests.tools.bench.table import Row, bounded, spread
from tfmemtop.engine.stream.backlog import Backlog
from tfmemtop.events import encode
from tfmemtop.events.recording import Writer
from tfmemtop.experiments.session.replay import ReplaySource

MOST_MB_A_DAY = 60
MOST_CORE_PERCENT = 0.3
OPEN_S, SEEK_S, REPORT_S = 1.0, 0.5, 10.0
MOST_RESIDENT_MB = 60
_QUICK_S = 2 * 3600


class Written(NamedTuple):
    """The bytes of JSON lines and of the file, the number of events, and the seconds of CPU that writing took."""

    text: int
    size: int
    events: int
    cpu_s: float


def write(path: Path, seconds: int) -> Written:
    """Record a session of *seconds* seconds, flushed as often as a recorder flushes it."""
    backlog, writer = Backlog(), Writer(path)
    text = count = 0
    due = cpu_s = 0.0
    for event in session(seconds):
        backlog.add(event)
        line = encode(event) + b"\n"
        text, count = text + len(line), count + 1
        began = time.process_time()
        writer.write(event, line)
        if event.t >= due:
            writer.flush()
            due = event.t + writer.flush_s
        if writer.full:
            writer.begin_chunk(backlog.events())
        cpu_s += time.process_time() - began
    writer.close()
    return Written(text, path.stat().st_size, count, cpu_s)


def seek(path: Path, seconds: int) -> tuple[float, list[float]]:
    """Return the seconds of CPU to open the recording, and to go to each of ten moments all over it."""

    async def go() -> list[float]:
        taken = []
        batches = source.batches()
        source.toggle_pause()
        for number in range(10):
            source.seek(seconds * (number * 7 % 10 + 0.5) / 10)
            began = time.process_time()
            while source.seeking:
                await anext(batches)
            taken.append(time.process_time() - began)
        return taken

    began = time.process_time()
    source = ReplaySource(path)
    return time.process_time() - began, asyncio.run(go())


def measured(*arguments: str) -> tuple[float, float]:
    """Return the seconds of CPU that ``tfmemtop`` takes with *arguments*, and its largest resident memory in MB.

    Raises:
        RuntimeError: the command failed.
    """
    null = os.open(os.devnull, os.O_WRONLY)
    pid = os.posix_spawn(PROGRAM, [PROGRAM, *arguments], os.environ, file_actions=[(os.POSIX_SPAWN_DUP2, null, 1)])
    os.close(null)
    _, status, usage = os.wait4(pid, 0)
    if status:
        raise RuntimeError(f"{arguments[0]} has failed")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1e3


def _apart(task: Callable[..., Any], *arguments: object) -> Any:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as other:
        return other.submit(task, *arguments).result()


def measure(quick: bool) -> list[Row]:
    """Measure a day, or two hours. Seconds are of CPU, so that other work on the machine matters little."""
    seconds = _QUICK_S if quick else DAY_S
    days, what = seconds / DAY_S, "2 h" if quick else "24 h"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "run.jsonl.gz")
        written: Written = _apart(write, path, seconds)
        opened, seeks = _apart(seek, path, seconds)
        reports = {name: measured(name, *[str(path)] * files) for name, files in (("why", 1), ("compare", 2))}
    size, percent = written.size / 1e6 / days, 100 * written.cpu_s / seconds
    resident = max(resident for _, resident in reports.values())
    what_is_recorded = (
        "a day of one script on one GPU with ten readings and a map a second of each of its two pools, recorded"
    )
    text_mb = written.text / 1e6
    return [
        bounded(what_is_recorded, size, MOST_MB_A_DAY, "MB", 0,
                f"{what}: {written.events} events, {text_mb:.0f} MB as JSON lines; of a real session's shapes"),
        bounded("writing it", percent, MOST_CORE_PERCENT, "% of a core", 3, "CPU time to compress, with outlines"),
        bounded("opening it", opened, OPEN_S, "s", 2, f"{what}; CPU time to find its length and chunks"),
        bounded("seeking in it", max(seeks), SEEK_S, "s", 2, f"the slowest of ten all over it: {spread(seeks, 2)}"),
        *(bounded(f"`{name}` on it", taken, REPORT_S, "s", 1, f"{what}; CPU time from the start of Python")
          for name, (taken, _) in reports.items()),
        bounded("memory of why and compare on it", resident, MOST_RESIDENT_MB, "MB", 0, "the most resident"),
    ]  # fmt: skip
