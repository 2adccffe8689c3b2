"""The cluster's screen on 1000 simulated hosts of eight GPUs, which one real Prometheus reads.

Measured are: the time until the first rows are drawn, the time of a frame, compared with a frame of the single
machine's screen with as many rows, the time of an answer, and the number of queries of a refresh.
"""

import asyncio
import statistics
import tempfile
import time
from pathlib import Path

from tests.cluster.exporters import Exporters, Host, Rank, exporting
from tests.cluster.prometheus import BINARY, prometheus
from tests.tools.bench.frame import DrawingApp, Feed
from tests.tools.bench.machine import Machine
from tests.tools.bench.table import Row, spread
from tests.tools.bench.terminal import TFMEMTOP, Terminal
from tests.tools.bench.yardstick import QUIET_S, Drawing, against, repainted_ms
from tfmemtop.cluster.client import Address, Client
from tfmemtop.cluster.watch import Asking, ClusterWatch
from tfmemtop.experiments.session.source import LiveSource
from tfmemtop.options import UiOptions
from tfmemtop.state import apply
from tfmemtop.ui.app import TfmemtopApp
from tfmemtop.ui.cluster_app import ClusterApp

HOSTS, GPUS, SIZE = 1000, 8, (200, 60)
BOUND_OPEN_S, BOUND_QUERIES = 2.0, 3
INTERVAL_S = 15


class DrawingClusterApp(Drawing, ClusterApp):
    """The app, drawn in full."""


def _hosts(count: int) -> list[Host]:
    """Return *count* hosts. Eight hosts have one job, with a rank on each GPU."""
    return [
        Host(
            f"node{at:04d}",
            [Rank(gpu=gpu, job=str(at // 8), rank=str(at % 8 * GPUS + gpu), user=f"u{at % 20}") for gpu in range(GPUS)],
            gpus=GPUS,
        )
        for at in range(count)
    ]


def _opened_s(url: str, rows: int) -> float:
    """Return the seconds from the start of tfmemtop to the line that counts the rows."""
    command = [*TFMEMTOP, "cluster", "--prometheus", url]
    with Terminal(command, 160, 48) as terminal:
        return terminal.wait_for(f"{rows:,} rows on")


def _opening(url: str, rows: int, times: int) -> Row:
    _opened_s(url, rows)
    taken = [_opened_s(url, rows) for _ in range(times)]
    return Row(
        f"`tfmemtop cluster` until its rows are drawn, {HOSTS} hosts of {GPUS} GPUs, 160×48",
        f"{BOUND_OPEN_S:g} s",
        f"{spread(taken, 2)} s",
        f"{times} starts in a pty, one Prometheus on the same cores, which also scrapes {HOSTS} targets",
        statistics.median(taken) <= BOUND_OPEN_S,
    )


def _refreshes(url: str, times: int) -> list[Row]:
    asking = Asking(Client(Address.of(url)))
    while not asking.seen.complete:
        list(asking.refresh())
    taken, ours, most = [], [], 0
    for _ in range(times):
        before, wall, cpu = asking.seen.asked, time.perf_counter(), time.thread_time()
        list(asking.refresh())
        taken.append(time.perf_counter() - wall)
        ours.append(time.thread_time() - cpu)
        most = max(most, asking.seen.asked - before)
    return [
        Row(
            f"queries of a refresh, {HOSTS} hosts",
            str(BOUND_QUERIES),
            str(most),
            f"{times} refreshes",
            most <= BOUND_QUERIES,
        ),
        Row(
            f"a refresh, {len(asking.seen.overview.rows)} rows",
            "",
            f"{spread(taken, 2)} s, of which {spread(ours, 2)} s are CPU time of tfmemtop, in a thread of its own",
            f"{times} refreshes; the rest is Prometheus",
        ),
    ]


async def _cluster_frames(url: str, count: int) -> list[float]:
    """Return the milliseconds of *count* frames with all rows.

    In each frame the table is scrolled by further rows, so that every line of it changes.
    """
    app = DrawingClusterApp(ClusterWatch(Asking(Client(Address.of(url))), 3600.0), UiOptions(), job=None)
    async with app.run_test(size=SIZE):
        while not app.seen.complete:  # noqa: ASYNC110
            await asyncio.sleep(0.1)
        app.watch_.close()
        await asyncio.sleep(10 * QUIET_S)
        frames = []
        table = app.main.table
        for at in range(count):
            before, begun = app.drawn, time.thread_time()
            table._follow, table._top = False, 2 * at + 2
            app.redraw()
            await asyncio.sleep(QUIET_S)
            frames.append((time.thread_time() - begun) * 1e3)
            if app.drawn == before:
                raise RuntimeError("a frame in which nothing was drawn")
        return frames


async def _machine_frames(rows: int, count: int) -> list[float]:
    """Return the same for one machine's screen with as many processes. In each frame all readings are new."""
    machine, feed = Machine(GPUS, rows), Feed()
    app: TfmemtopApp = DrawingApp(LiveSource(feed), UiOptions())
    async with app.run_test(size=SIZE) as pilot:
        await feed.queue.put([*machine.beginning(), *machine.allocators(1.0), *machine.readings(1.0)])
        while len(app.state.processes) < rows:
            await pilot.pause()
        app.session.frozen = True
        app.redraw()
        await asyncio.sleep(10 * QUIET_S)
        frames = []
        for second in range(1, count + 1):
            for event in (*machine.allocators(60.0 + second), *machine.readings(60.0 + second)):
                apply(app.state, event)
            begun = time.thread_time()
            app.redraw()
            await asyncio.sleep(QUIET_S)
            frames.append((time.thread_time() - begun) * 1e3)
        return frames


def _frames(url: str, rows: int, count: int) -> Row:
    machine = asyncio.run(_machine_frames(rows, count))
    cluster = asyncio.run(_cluster_frames(url, count))
    plain_ms = asyncio.run(repainted_ms(SIZE))
    return Row(
        f"one frame of the cluster, {rows} rows, {SIZE[0]}×{SIZE[1]}",
        "one of a machine with as many processes",
        f"{against(cluster, plain_ms, 1, 'ms', 'Textual repainting as many plain cells')}; "
        f"the machine's {spread(machine, 1)} ms",
        f"{count} frames, every line of the table another, CPU time to the terminal's bytes",
        statistics.median(cluster) <= statistics.median(machine),
    )


def _wait_until_scraped(exporters: Exporters) -> None:
    while exporters.scrapes < 2 * HOSTS:
        time.sleep(0.5)


def measure(quick: bool) -> list[Row]:
    """Measure all of these with one Prometheus."""
    if BINARY is None:
        return [Row("the cluster's screen", "", "not measured", "prometheus is not installed")]
    hosts, rows = _hosts(HOSTS), HOSTS * GPUS
    with (
        tempfile.TemporaryDirectory(prefix="tfm") as folder,
        exporting(hosts) as exporters,
        prometheus(Path(folder), exporters.port, [host.name for host in hosts], INTERVAL_S) as server,
    ):
        _wait_until_scraped(exporters)
        opening = _opening(server.url, rows, 5 if quick else 15)
        refreshes = _refreshes(server.url, 5 if quick else 15)
        return [opening, *refreshes, _frames(server.url, rows, 10 if quick else 30)]
