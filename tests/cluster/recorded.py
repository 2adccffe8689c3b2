"""The answers of a real Prometheus about a cluster of seven hosts, recorded once: pictures are the same each time.

The figures are made up. For the recording, a real Prometheus had them as its data of the last hour. If a query has
changed, record again: ``python -m tests.cluster.recorded``. Then look at the snapshots of the cluster's screens.
"""

import gzip
import math
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
from textual.pilot import Pilot

from tests.cluster.exporters import GIB
from tests.cluster.prometheus import configuration, prometheus
from tfmemtop.cluster.client import Address, PrometheusClient, ServerAnswer
from tfmemtop.cluster.watch import Asking, ClusterWatch
from tfmemtop.ui import ScreenOutcome, UiOptions
from tfmemtop.ui.cluster_app import ClusterApp

FILE = Path(__file__).parents[1] / "recordings" / "prometheus" / "seven-hosts.json.gz"
URL = "http://monitor:9090"

_HISTORY_S, _STEP_S = 3900, 15


class Recording(msgspec.Struct):
    """The answers by query, and the server's clock in seconds since 1970."""

    at: float
    answers: dict[str, str]


class _Recorder(PrometheusClient):
    """A client that stores each answer."""

    def __init__(self, address: Address) -> None:
        super().__init__(address)
        self.kept = Recording(0.0, {})

    def query(self, text: str) -> ServerAnswer:
        answer = super().query(text)
        self.kept.answers[text] = answer.body.decode()
        self.kept.at = answer.server_time or 0.0
        return answer


class Answering(PrometheusClient):
    """A client that gives the recorded answers, with the recorded time of the server."""

    def __init__(self) -> None:
        super().__init__(Address.of(URL))
        self._recording = msgspec.json.decode(gzip.decompress(FILE.read_bytes()), type=Recording)

    def query(self, text: str) -> ServerAnswer:
        body = self._recording.answers.get(text)
        assert body is not None, f"not recorded; see {__file__}: {text}"
        return ServerAnswer(body.encode(), self._recording.at)


def cluster_screen(options: UiOptions) -> ClusterApp:
    """The cluster's screen on the recording."""
    return ClusterApp(ClusterWatch(Asking(Answering()), 3600.0), options, job=None)


_ANSWERED_S = 30.0


async def settled(pilot: Pilot[ScreenOutcome]) -> None:
    """Wait until the visible screen has read all that it needs, and draw it."""
    app = pilot.app
    assert isinstance(app, ClusterApp)
    await pilot.pause()
    until = time.monotonic() + _ANSWERED_S
    while not app.seen.complete:
        assert time.monotonic() < until, "a query is not among the recorded ones: python -m tests.cluster.recorded"
        await pilot.pause(0.01)
    app.redraw()
    await pilot.pause()


@dataclass
class _Rank:
    """A rank with its GPU, or on the CPU. ``until`` is when its exporter went down, in seconds of the history."""

    host: str
    gpu: int | None
    job: str
    rank: int
    user: str
    in_use: float  # GiB
    limit: float = 74.5
    used: float = 76.1
    busy: float = 0.93
    pace: float = 3.1
    findings: dict[str, str] = field(default_factory=dict)
    until: int = _HISTORY_S
    running: bool = True

    def figures(self, t: int) -> Iterator[tuple[str, dict[str, str], float]]:
        """Metric, labels and value at *t* seconds of the history."""
        swing = 0.4 * math.sin(t / 240 + self.rank)
        in_use = int((self.in_use + swing) * GIB)
        own = {"host": self.host, "job": self.job, "rank": str(self.rank), "run": "1"}
        uuid = "" if self.gpu is None else _uuid(self.host, self.gpu)
        pool = own | {"uuid": uuid, "device": "CPU:0" if self.gpu is None else "GPU:0"}
        for name, value in {
            "in_use_bytes": in_use,
            "in_use_high_bytes": in_use + int(0.3 * GIB),
            "pool_bytes": int(max(self.in_use + 1, self.used - 2) * GIB),
            "peak_bytes": in_use + int(0.6 * GIB),
            "limit_bytes": int(self.limit * GIB),
        }.items():
            yield name, pool, value
        yield "steps_total", own, round(self.pace * t)
        yield "out_of_memory_total", own, 0
        yield "running", own, float(self.running)
        yield "run_info", own | {"user": self.user, "version": "1", "tensorflow": "2.21.0"}, 1
        for key, severity in self.findings.items():
            yield "finding", pool | {"key": key, "severity": severity}, 1
        if self.gpu is not None:
            yield "process_total_bytes", own | {"uuid": uuid}, int(self.used * GIB)
            yield from _card(self.host, self.gpu, self.used, self.busy)


def _uuid(host: str, gpu: int) -> str:
    return f"GPU-{host[-2:]}c0ffee-1d5b-4a6b-9c40-{gpu:012x}"


def _card(host: str, gpu: int, used: float, busy: float) -> Iterator[tuple[str, dict[str, str], float]]:
    labels = {"host": host, "uuid": _uuid(host, gpu)}
    yield "device_info", labels | {"index": str(gpu), "name": "NVIDIA H100 80GB HBM3"}, 1
    whole = int(79.6 * GIB)
    for name, value in {
        "memory_total_bytes": whole,
        "memory_used_bytes": int(used * GIB),
        "memory_free_bytes": whole - int(used * GIB),
        "utilization_ratio": busy,
    }.items():
        yield f"device_{name}", labels, value


_OF_8 = [_Rank(f"node0{1 + rank // 4}", rank % 4, "4182", rank, "ada", 52.3) for rank in range(8)]
_OF_8[5].in_use = 58.4
_OF_8[6].pace = 2.54
_RANKS = [
    *_OF_8,
    _Rank("node03", 0, "4190", 0, "grace", 31.2, used=78.0),
    _Rank("node03", 1, "4190", 1, "grace", 44.0, used=78.0, findings={"leak": "warning"}),
    _Rank("node03", 2, "4203_7", 0, "lin", 71.6),
    _Rank("node04", 0, "4177", 0, "grace", 12.0, used=16.4, until=_HISTORY_S - 390),
    _Rank("node05", 0, "4171", 0, "lin", 3.1, busy=0.0, used=77.0, findings={"full_but_idle": "warning"}),
    *(
        _Rank("node06", None, "4205", rank, "ada", 0.6, limit=4.0, findings={"notice_no_driver": "info"})
        for rank in range(2)
    ),
    _Rank("node07", 0, "4168", 0, "lin", 20.0, used=0.6, busy=0.0, running=False),
]
_FREE = [("node03", 3), ("node05", 1)]


def _history(now: int) -> str:
    """Return the whole history up to *now* (seconds since 1970) as OpenMetrics text, which promtool reads."""
    by_metric: dict[str, list[str]] = {}

    def add(name: str, labels: dict[str, str], value: float, t: int) -> None:
        told = ",".join(f'{label}="{text}"' for label, text in labels.items())
        by_metric.setdefault(name, []).append(f"{name}{{{told}}} {value} {now - _HISTORY_S + t}")

    for number, rank in enumerate(_RANKS):
        at = {"instance": f"{rank.host}:{41000 + number}"}
        for t in range(0, _HISTORY_S + 1, _STEP_S):
            target = at | {"job": rank.job, "host": rank.host, "rank": str(rank.rank)}
            add("up", target, float(t <= rank.until), t)
            if t <= rank.until:
                for name, labels, value in rank.figures(t):
                    add(f"tfmemtop_{name}", at | labels, value, t)
    for host, gpu in _FREE:
        for t in range(0, _HISTORY_S + 1, _STEP_S):
            for name, labels, value in _card(host, gpu, 0.6, 0.0):
                add(f"tfmemtop_{name}", {"instance": f"{host}:9400", "job": "tfmemtop"} | labels, value, t)
    lines = []
    for name, samples in by_metric.items():
        kind = "counter" if name.endswith("_total") else "gauge"
        lines += [f"# TYPE {name.removesuffix('_total')} {kind}", *samples]
    return "\n".join([*lines, "# EOF", ""])


def main() -> None:
    """Record the answers, and write them to ``FILE``."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "history").write_text(_history(int(time.time())))
        blocks = ["promtool", "tsdb", "create-blocks-from", "openmetrics", f"{place}/history", f"{place}/data"]
        subprocess.run(blocks, check=True)
        with prometheus(place, configuration(9, [])) as server:
            client = _Recorder(Address.of(server.url))
            asking = Asking(client)
            while not asking.seen.complete:
                assert asking.refresh().trouble is None, asking.seen.trouble
    FILE.parent.mkdir(exist_ok=True)
    FILE.write_bytes(gzip.compress(msgspec.json.encode(client.kept), mtime=0))


if __name__ == "__main__":
    main()
