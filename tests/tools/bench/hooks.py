"""A thousand processes of one run that report at once: what is lost, how long a process waits, what it costs."""

import asyncio
import json
import os
import sys
import time
from collections import Counter
from pathlib import Path

import psutil

from tests.own_sessions import own_sessions
from tests.tools.bench.table import Row, spread
from tests.tools.bench.terminal import private_sessions
from tests.tools.bench.yardstick import python_s
from tfmemtop import events
from tfmemtop.engine.process.launch import Launch
from tfmemtop.engine.start import start
from tfmemtop.engine.stream.client import connect

HOOKS = 1000
BOUND_CPU = 10.0
"""As a multiple of ``python -c pass`` a second: a tenth of a core on a machine where that takes 10 ms."""
BOUND_SEND = 0.1
"""As a multiple of ``python -c pass``."""
SCRIPT = Path(__file__).parent / "scripts" / "crowd.py"
_SETTLED_S = 5.0
"""So long after the greetings the engine has found all processes that report. From then on the cost is steady."""


def _cpu_s(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


async def _watch(socket: str, engine: psutil.Process, hooks: int, seconds: float) -> tuple[Counter[str], list[float]]:
    """Return how many events of each kind a reader receives, and the engine's CPU in percent for each window of 2 s."""
    got: Counter[str] = Counter()
    percents: list[float] = []
    client = await connect(socket)
    began: float | None = None
    before, at = 0.0, 0.0
    async for batch in client.events():
        for event in batch:
            got[type(event).__name__] += 1
            if isinstance(event, events.RunEnd):
                await client.send(events.Stop(quit=True))
        now = time.monotonic()
        if began is None and got["Effective"] >= hooks:
            began, before, at = now, _cpu_s(engine), now
        elif began is not None and now - at >= 2.0 and not got["HookEnd"]:
            used = _cpu_s(engine)
            if now - began > _SETTLED_S:
                percents.append(100 * (used - before) / (now - at))
            before, at = used, now
    await client.close()
    return got, percents


def measure(quick: bool) -> list[Row]:
    """Measure one run of the crowd."""
    python_ms = python_s() * 1e3
    hooks, seconds = (200, 15.0) if quick else (HOOKS, 40.0)
    with private_sessions() as folder:
        results = folder / "results"
        results.mkdir()
        environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
        # -E keeps the real hook out, because the script itself reports.
        program = ["env", f"PYTHONPATH={environment['PYTHONPATH']}", sys.executable, str(SCRIPT)]
        command = [*program, str(hooks), str(seconds), str(results)]
        launched = start(Launch(argv=command, cwd="/", environment=environment))
        if launched.error:
            raise RuntimeError(launched.error)
        engine = psutil.Process(own_sessions()[0].pid)
        got, percents = asyncio.run(_watch(launched.socket, engine, hooks, seconds))
        told = [json.loads(path.read_text()) for path in results.iterdir()]
    offered, dropped = sum(one["offered"] for one in told), sum(one["dropped"] for one in told)
    held_ms = sorted(one["longest_us"] / 1e3 for one in told)
    lost = {name: hooks - got[name] for name in ("Hook", "Effective", "HookError", "HookEnd")}
    percent = sorted(percents)[len(percents) // 2] if percents else float("nan")
    typical_ms = held_ms[len(held_ms) // 2]
    return [
        Row(
            f"{hooks} processes of one run that report at once: what is lost",
            "nothing",
            f"{sum(lost.values())} of {4 * hooks} messages, {dropped} of {offered} readings",
            f"{seconds:.0f} s, {offered / seconds:.0f} readings a second; a reader got {got['Allocator']} of them",
            not any(lost.values()) and not dropped and len(told) == hooks,
        ),
        Row(
            "… what sending takes of one of them",
            f"{BOUND_SEND:g}× `python -c pass`",
            f"{typical_ms / python_ms:.3f}×: {typical_ms:.2f} ms, the dearest {held_ms[-1]:.1f} ms",
            "CPU time of each process's dearest send while all report: median, and the dearest of all",
            typical_ms <= BOUND_SEND * python_ms,
        ),
        Row(
            "… CPU of the engine meanwhile",
            f"{BOUND_CPU:g}× `python -c pass` a second",
            f"{percent * 10 / python_ms:.1f}×: {spread(percents, 1) if percents else '—'} % of a core",
            f"{len(percents)} windows of 2 s from {_SETTLED_S:.0f} s after the greetings",
            percent * 10 <= BOUND_CPU * python_ms,
        ),
    ]
