"""The cost of the exporter for Prometheus: the time of a scrape, CPU, and the memory that it adds.

Its process is forked from the engine and shares pages with it. So the memory that it adds is the proportional set of
all of tfmemtop's processes with it, minus that without it.
"""

import json
import os
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from threading import Thread
from urllib.parse import urlsplit

import psutil

from tests.bench.machine import Machine
from tests.bench.table import Row, has_gpu, spread
from tests.bench.terminal import private_sessions
from tests.bench.watching import SCRIPT, cpu_s, memory_mb
from tests.own_sessions import own_sessions
from tfmemtop.engine.process.launch import Export, Launch
from tfmemtop.engine.start import start
from tfmemtop.metrics.page import Page
from tfmemtop.metrics.watched import Watched

BOUND_MS = 5.0
BOUND_MB = 5.0
_SETTLE_S = 5.0
_REQUEST = (  # as Prometheus sends it
    b"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\nUser-Agent: Prometheus/2.42.0\r\nAccept-Encoding: gzip\r\n"
    b"Accept: application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5,*/*;q=0.1\r\n"
    b"X-Prometheus-Scrape-Timeout-Seconds: 10\r\n\r\n"
)
_GPUS, _PROCESSES = 8, 100


def measure(quick: bool) -> list[Row]:
    """Measure with a real script and its engine, and with a synthetic machine of eight GPUs."""
    scrapes, idle_s = (50, 5.0) if quick else (300, 30.0)
    with private_sessions(), tempfile.TemporaryDirectory() as folder:
        without = sum(memory_mb(process)[0] for process in _engine(None, idle_s))
        _end()
        discovery = Path(folder, "sd.json")
        processes = _engine(Export(port=0, discovery=str(discovery)), 0.0)
        url = f"http://{json.loads(discovery.read_text())[0]['targets'][0]}/metrics"
        exporter = next(one for one in processes if one.name() == "tfmemtop-export")
        _times(url, 5)
        before, begun = cpu_s(exporter), time.perf_counter()
        time.sleep(idle_s)
        reading = 100 * (cpu_s(exporter) - before) / (time.perf_counter() - begun)
        before = cpu_s(exporter)
        times = _times(url, scrapes)
        each = 1000 * (cpu_s(exporter) - before) / scrapes
        sizes = [memory_mb(process)[0] for process in processes]
        own, resident = memory_mb(exporter)
    added = sum(sizes) - without
    with _synthetic() as page:
        _times(page, 5)
        many = _times(page, scrapes)
    return [
        Row(
            "a scrape of one script: from the request to the whole answer",
            f"{BOUND_MS:g} ms",
            f"{spread(times, 1)} ms",
            f"{scrapes} scrapes, each with a connection of its own; {each:.1f} ms of the exporter's CPU each",
            sorted(times)[scrapes // 2] <= BOUND_MS,
        ),
        Row(
            f"a scrape of {_GPUS} GPUs, {_PROCESSES} processes, {_GPUS} of them the run's",
            f"{BOUND_MS:g} ms",
            f"{spread(many, 1)} ms",
            f"{scrapes} scrapes; a synthetic session with ten readings of each allocator a second",
            sorted(many)[scrapes // 2] <= BOUND_MS,
        ),
        Row(
            "CPU of the exporter beside ten readings a second", "", f"{reading:.2f} % of a core", f"over {idle_s:.0f} s"
        ),
        Row(
            "memory that the exporter adds to engine and keeper",
            f"{BOUND_MB:g} MB",
            f"{added:.1f} MB",
            f"PSS of all with it ({sum(sizes):.1f}) less that without it ({without:.1f}); its own PSS is {own:.1f}, "
            f"its resident set {resident:.0f} MB",
            added <= BOUND_MB,
        ),
    ]


def _engine(export: Export | None, wait_s: float) -> list[psutil.Process]:
    """Start an engine with a script, and wait until the script is being read.

    Return the processes: keeper, engine, and the exporter if *export* is given.
    """
    pool = {} if has_gpu() else {"TF_CPU_ALLOCATOR_USE_BFC": "true", "TF_CPU_BFC_MEM_LIMIT_IN_MB": "1024"}
    environment = {**os.environ, **pool, "TF_CPP_MIN_LOG_LEVEL": "2"}
    launched = start(Launch(argv=[sys.executable, str(SCRIPT)], cwd="/", environment=environment, export=export))
    assert launched.error is None, launched.error
    output = Path(launched.output_path or "")
    while not (output.is_file() and "step" in output.read_text(errors="replace")):
        time.sleep(0.2)
    time.sleep(_SETTLE_S + wait_s)
    engine = psutil.Process(next(one.pid for one in own_sessions() if one.id == launched.id))
    keeper = engine.parent()
    assert keeper is not None
    return [keeper, engine, *(one for one in engine.children() if one.name() == "tfmemtop-export")]


def _end() -> None:
    for session in own_sessions():
        os.kill(session.pid, signal.SIGTERM)
    while own_sessions():
        time.sleep(0.05)


def _times(url: str, scrapes: int) -> list[float]:
    """Return how long each of *scrapes* scrapes took, in ms."""
    found = []
    place = urlsplit(url)
    address = place.hostname or "", place.port or 80
    for _ in range(scrapes):
        begun = time.perf_counter()
        with socket.create_connection(address, timeout=60) as line:
            # Not by urllib: the reader's own work has to be as little as possible.
            line.sendall(_REQUEST)
            while line.recv(1 << 16):
                pass
        found.append(1000 * (time.perf_counter() - begun))
        time.sleep(0.02)
    return found


@contextmanager
def _synthetic() -> Iterator[str]:
    """Serve the page of a synthetic machine in a process of its own, and yield the page's URL.

    The page receives new readings ten times a second.
    """
    listener = socket.create_server(("127.0.0.1", 0))
    pid = os.fork()
    if pid == 0:
        watched, machine = Watched(), Machine(_GPUS, _PROCESSES)
        watched.take(machine.beginning())
        Thread(target=Page(listener, watched).serve_forever, daemon=True).start()
        for tenth in count(10):
            watched.take([*machine.allocators(tenth / 10), *(machine.readings(tenth / 10) if tenth % 10 == 0 else ())])
            time.sleep(0.1)
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/metrics"
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        listener.close()
