"""The cost of the exporter for Prometheus: the time of a scrape, CPU, memory, and whether the readings are delayed.

It is threads of the engine. So memory and CPU are those of an engine with it, minus those of one without it.
"""

import asyncio
import json
import os
import signal
import socket
import sys
import tempfile
import time
from collections import deque
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from itertools import count, pairwise
from pathlib import Path
from statistics import median
from threading import Thread
from typing import BinaryIO, NamedTuple
from urllib.parse import urlsplit

import psutil

from tests.own_sessions import own_sessions
from tests.tools.bench.machine import Machine
from tests.tools.bench.table import Row, has_gpu, spread
from tests.tools.bench.terminal import private_sessions
from tests.tools.bench.watching import SCRIPT, cpu_s, memory_mb
from tfmemtop.engine.metrics.page import Page
from tfmemtop.engine.metrics.state import MetricsState
from tfmemtop.engine.process.launch import Export, Launch
from tfmemtop.engine.start import start
from tfmemtop.engine.stream.client import connect
from tfmemtop.events import Allocator, Event

BOUND_MS = 5.0
BOUND_MB = 10.0
BOUND_READINGS = 0.99
"""As a share of the readings that are taken while nobody scrapes."""
_SETTLE_S = 5.0
_REQUEST = (  # as Prometheus sends it
    b"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\nUser-Agent: Prometheus/2.42.0\r\nAccept-Encoding: gzip\r\n"
    b"Accept: application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5,*/*;q=0.1\r\n"
    b"X-Prometheus-Scrape-Timeout-Seconds: 10\r\n\r\n"
)
_GPUS, _PROCESSES = 8, 100
_TURN_S = 5.0


class Session(NamedTuple):
    """An engine with its script: its processes, which are keeper and engine, and its socket."""

    keeper: psutil.Process
    engine: psutil.Process
    socket: str

    @property
    def memory_mb(self) -> float:
        """The proportional set of both processes in MB."""
        return memory_mb(self.keeper)[0] + memory_mb(self.engine)[0]

    def percent(self, seconds: float) -> float:
        """Return the engine's CPU during the next *seconds*, in percent of a core."""
        before, begun = cpu_s(self.engine), time.perf_counter()
        time.sleep(seconds)
        return 100 * (cpu_s(self.engine) - before) / (time.perf_counter() - begun)


class Readings(NamedTuple):
    """How many readings of an allocator an engine took in a second, and the time between two of them, in ms."""

    a_second: float
    apart_ms: list[float]


def measure(quick: bool) -> list[Row]:
    """Measure with a real script and its engine, and with a synthetic machine of eight GPUs."""
    scrapes, idle_s, turns = (50, 5.0, 1) if quick else (300, 30.0, 6)
    with private_sessions(), tempfile.TemporaryDirectory() as folder:
        session = _session(None)
        alone = session.percent(idle_s)
        without = session.memory_mb
        _end()
        discovery = Path(folder, "sd.json")
        session = _session(Export(port=0, discovery=str(discovery)))
        url = f"http://{json.loads(discovery.read_text())[0]['targets'][0]}/metrics"
        _times(url, 5)
        reading = session.percent(idle_s)
        before = cpu_s(session.engine)
        times = _times(url, scrapes)
        each = 1000 * (cpu_s(session.engine) - before) / scrapes
        added = session.memory_mb - without
        quiet, scraped, made = asyncio.run(_in_turns(session.socket, url, turns))
    with _synthetic() as page:
        _times(page, 5)
        many = _times(page, scrapes)
    return [
        Row(
            "a scrape of one script: from the request to the whole answer",
            f"{BOUND_MS:g} ms",
            f"{spread(times, 1)} ms",
            f"{scrapes} scrapes, each with a connection of its own; {each:.1f} ms of the engine's CPU each",
            median(times) <= BOUND_MS,
        ),
        Row(
            f"a scrape of {_GPUS} GPUs, {_PROCESSES} processes, {_GPUS} of them the run's",
            f"{BOUND_MS:g} ms",
            f"{spread(many, 1)} ms",
            f"{scrapes} scrapes; a synthetic session with ten readings of each allocator a second",
            median(many) <= BOUND_MS,
        ),
        Row(
            "CPU of the engine without and with the exporter, ten readings a second",
            "",
            f"{alone:.2f}; {reading:.2f} % of a core",
            f"over {idle_s:.0f} s each",
        ),
        Row(
            "memory that the exporter adds to engine and keeper",
            f"{BOUND_MB:g} MB",
            f"{added:.1f} MB",
            f"PSS of both with it ({without + added:.1f}) less that without it ({without:.1f})",
            added <= BOUND_MB,
        ),
        Row(
            "readings a second while nobody scrapes; while one reader scrapes without a pause",
            f"{BOUND_READINGS:g}× those while nobody scrapes",
            f"{quiet.a_second:.2f}; {scraped.a_second:.2f}",
            f"{turns} turns of {_TURN_S:.0f} s each, {made:.0f} scrapes a second; "
            f"apart {spread(quiet.apart_ms, 0)} ms; {spread(scraped.apart_ms, 0)} ms",
            scraped.a_second >= BOUND_READINGS * quiet.a_second,
        ),
    ]


def _session(export: Export | None) -> Session:
    """Start an engine with a script, and wait until the script is being read."""
    pool = {} if has_gpu() else {"TF_CPU_ALLOCATOR_USE_BFC": "true", "TF_CPU_BFC_MEM_LIMIT_IN_MB": "1024"}
    environment = {**os.environ, **pool, "TF_CPP_MIN_LOG_LEVEL": "2"}
    launched = start(Launch(argv=[sys.executable, str(SCRIPT)], cwd="/", environment=environment, export=export))
    assert launched.error is None, launched.error
    output = Path(launched.output_path or "")
    while not (output.is_file() and "step" in output.read_text(errors="replace")):
        time.sleep(0.2)
    time.sleep(_SETTLE_S)
    engine = psutil.Process(next(one.pid for one in own_sessions() if one.id == launched.id))
    keeper = engine.parent()
    assert keeper is not None
    return Session(keeper, engine, launched.socket)


def _end() -> None:
    for session in own_sessions():
        os.kill(session.pid, signal.SIGTERM)
    while own_sessions():
        time.sleep(0.05)


def _times(url: str, scrapes: int) -> list[float]:
    """Return how long each of *scrapes* scrapes took, in ms."""
    found = []
    for _ in range(scrapes):
        begun = time.perf_counter()
        _scrape(url)
        found.append(1000 * (time.perf_counter() - begun))
        time.sleep(0.02)
    return found


def _scrape(url: str) -> None:
    place = urlsplit(url)
    with socket.create_connection((place.hostname or "", place.port or 80), timeout=60) as line:
        # Not by urllib: the reader's own work has to be as little as possible.
        line.sendall(_REQUEST)
        while line.recv(1 << 16):
            pass


async def _in_turns(engine: str, url: str, turns: int) -> tuple[Readings, Readings, float]:
    """Follow the readings of *engine*, in turns while nobody scrapes and while another process does without a pause.

    Return the readings of both, and the number of scrapes a second.
    """
    client = await connect(engine)
    batches = client.events()
    found: dict[bool, list[list[float]]] = {False: [], True: []}
    scrapes = 0
    await _readings(batches, _TURN_S)  # those from before, which come first
    for _ in range(turns):
        found[False].append(await _readings(batches, _TURN_S))
        with _scraping(url) as told:
            found[True].append(await _readings(batches, _TURN_S))
        scrapes += int(told.read(99))
        told.close()
    await client.close()
    quiet, scraped = (
        Readings(
            sum(len(times) - 1 for times in windows) / sum(times[-1] - times[0] for times in windows),
            [1000 * (b - a) for times in windows for a, b in pairwise(times)],
        )
        for windows in found.values()
    )
    return quiet, scraped, scrapes / (turns * _TURN_S)


async def _readings(batches: AsyncIterator[list[Event]], seconds: float) -> list[float]:
    """Return the times of the readings of one allocator that come within the next *seconds*."""
    found: list[tuple[str, float]] = []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found += [(event.device, event.t) for event in await anext(batches) if isinstance(event, Allocator)]
    return [t for device, t in found if device == found[0][0]]


@contextmanager
def _scraping(url: str) -> Iterator[BinaryIO]:
    """Scrape without a pause in a process of its own. Yield the file from which to read afterwards how often it did."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        going = [True]
        signal.signal(signal.SIGTERM, lambda *_: going.clear())
        made = 0
        while going:
            _scrape(url)
            made += 1
        os.write(writing, str(made).encode())
        os._exit(0)
    os.close(writing)
    try:
        yield os.fdopen(reading, "rb")
    finally:
        os.kill(pid, signal.SIGTERM)
        os.waitpid(pid, 0)


@contextmanager
def _synthetic() -> Iterator[str]:
    """Serve the page of a synthetic machine in a process of its own, and yield the page's URL.

    The page receives new readings ten times a second.
    """
    listener = socket.create_server(("127.0.0.1", 0))
    pid = os.fork()
    if pid == 0:
        machine = Machine(_GPUS, _PROCESSES)
        new = deque(machine.beginning())
        Thread(target=Page(listener, MetricsState(new), print).serve, daemon=True).start()
        for tenth in count(10):
            new.extend([*machine.allocators(tenth / 10), *(machine.readings(tenth / 10) if tenth % 10 == 0 else ())])
            time.sleep(0.1)
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/metrics"
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        listener.close()
