"""Turns Prometheus's figures of one GPU into events, so that the usual state and the usual panels can show it.

Prometheus has no process ids. Each run of a rank gets a number of its own in their place, which is not shown.
"""

import time
from collections import defaultdict
from dataclasses import dataclass, field

from tfmemtop import events
from tfmemtop.cluster.answers import Labels, courses, label, number, series
from tfmemtop.cluster.client import Client
from tfmemtop.cluster.overview import ClusterRow, rank_of
from tfmemtop.cluster.queries import COUNTED_S, interval, of_gpu
from tfmemtop.findings.finding import DeviceFinding
from tfmemtop.settings import Settings
from tfmemtop.state import State, apply

POINTS = 360
"""The largest number of points in a history. A graph has fewer columns."""
_SHORTEST_STEP_S, _LONGEST_INTERVAL_S = 1.0, 60.0
_LAID_BACK = 3.0
"""A series has ended if it has no figure for this many steps."""

_OF_POOL = ("in_use_bytes", "in_use_high_bytes", "pool_bytes", "peak_bytes", "limit_bytes")

Who = tuple[str, str, str]
"""Instance, run, rank. Together they stand for a process; Prometheus has nothing more exact."""


@dataclass(slots=True)
class _Process:
    pid: int
    seen: float = 0.0
    alive: bool = False
    failures: float | None = None
    devices: set[str] = field(default_factory=set)


class OneGpu:
    """The events of the GPU of *row* in the last *span_s* seconds, and those that come later.

    The calls block, because those of the client do.
    """

    def __init__(self, client: Client, row: ClusterRow, span_s: float) -> None:
        self.row, self.span_s = row, span_s
        self.state = State()
        self._client = client
        self._step_s = 15.0
        self._began = 0.0  # by the server's clock
        self._read_until = 0.0
        self.ahead_s = 0.0  # seconds that the server's clock is ahead of this machine's
        self._coarse = False  # whether a step is longer than the time between two figures
        self._processes: dict[Who, _Process] = {}
        self._run = 0  # the number of the newest run
        self._index: int | None = None  # the GPU's index, once its Device event has been made

    def open(self) -> None:
        """Read the history, with two queries, and fold it into ``state``.

        Raises:
            NoAnswer: the server did not answer; the exception has the reason.
        """
        row = self.row
        answer = self._client.query(interval(row.host, row.uuid))
        counts = [one.number or 0.0 for one in series(answer.body)]
        every_s = min(COUNTED_S / max(counts, default=0.0), _LONGEST_INTERVAL_S) if any(counts) else 15.0
        now = (answer.server_time or time.time()) + 1.0  # one more, because the server sends whole seconds
        self._step_s = max(_SHORTEST_STEP_S, round(every_s), self.span_s / POINTS)
        self._began = now - self.span_s
        self._read_until = self._began - self._step_s
        # If there are several figures in a step, the highest of them is taken.
        self._coarse = self._step_s > 1.5 * every_s
        for event in self._read(self._began, now):
            apply(self.state, event)

    def follow(self) -> list[events.Event]:
        """Read what is new since the last call, with one query, and return it as events. They are not folded yet.

        Raises:
            NoAnswer: the server did not answer; the exception has the reason.
        """
        start = self._read_until + self._step_s
        return self._read(start, max(start, time.time() + self.ahead_s))

    def is_own(self, finding: DeviceFinding) -> bool:
        """Return whether *finding* is about the pool of the row, and not about another pool on the same GPU."""
        process = self._processes.get((self.row.instance, self.row.run, self.row.rank))
        place = finding.place
        return process is not None and place.pid in (None, process.pid) and place.device == self.row.device

    def _read(self, start: float, end: float) -> list[events.Event]:
        row = self.row
        span = f"[{self._step_s:.0f}s]" if self._coarse else ""
        answer = self._client.query_range(of_gpu(row.host, row.uuid, row.instance, span), start, end, self._step_s)
        self.ahead_s = answer.ahead_s or 0.0
        found = courses(answer.body)
        made: list[events.Event] = [] if self.state.session else [self._session()]
        by_time: dict[float, list[tuple[Labels, float]]] = defaultdict(list)
        for course in found:
            for t, text in course.values:
                if (value := number(text)) is not None and t > self._read_until:
                    by_time[t].append((course.metric, value))
        for t in sorted(by_time):
            made += self._at(t, by_time[t])
            self._read_until = t
        return made

    def _session(self) -> events.Session:
        return events.Session(
            t=0.0,
            format=events.FORMAT,
            version="",
            id="",
            started=max(0.0, self._began),
            host=self.row.host,
            user=self.row.user,
            host_memory=0,
            cores=1,
            interval_s=self._step_s,
            command=["prometheus"],
        )

    def _at(self, t: float, figures: list[tuple[Labels, float]]) -> list[events.Event]:
        """Return the events for the *figures* of one time *t*."""
        now = max(0.0, t - self._began)
        card: dict[str, float] = {}
        totals: dict[Who, int] = {}
        pools: dict[tuple[Who, str], dict[str, int]] = defaultdict(dict)
        failures: dict[Who, float] = {}
        for labels, value in figures:
            who = label(labels.instance), label(labels.run), rank_of(labels)
            name = labels.means
            if name in _OF_POOL:
                pools[who, label(labels.device)][name] = _size(value)
            elif name == "process_total_bytes":
                totals[who] = _size(value)
            elif name == "out_of_memory_total":
                failures[who] = value
            elif name.startswith("device_"):
                card[name] = max(value, card.get(name, value))
        made: list[events.Event] = []
        if card and self.row.uuid:
            made += self._card(now, card)
        for (who, device), sizes in pools.items():
            made += self._pool(now, t, who, device, sizes)
        if card and self.row.uuid:
            made.append(self._reading(now, card, totals))
        made += self._failed(now, failures)
        made += self._ended(now, t)
        return made

    def _card(self, now: float, card: dict[str, float]) -> list[events.Event]:
        if self._index is not None:
            return []
        gpu = self.row.gpu
        self._index = int(gpu) if gpu.isascii() and gpu.isdigit() and len(gpu) < 3 else 0
        return [
            events.Device(
                t=now,
                index=self._index,
                uuid=self.row.uuid,
                name=self.row.model,
                total=_known_size(card.get("device_memory_total_bytes")) or None,
                reserved=_known_size(card.get("device_memory_reserved_bytes")),
            )
        ]

    def _reading(self, now: float, card: dict[str, float], totals: dict[Who, int]) -> events.DeviceReading:
        shares = [
            events.DeviceProcess(self._processes[who].pid, size)
            for who, size in totals.items()
            if who in self._processes
        ]
        return events.DeviceReading(
            t=now,
            index=self._index or 0,
            used=_known_size(card.get("device_memory_used_bytes")),
            free=_known_size(card.get("device_memory_free_bytes")),
            utilisation=_percent(card.get("device_utilization_ratio")),
            bandwidth=_percent(card.get("device_memory_bandwidth_ratio")),
            power_w=_whole(card.get("device_power_watts")),
            temperature_c=_whole(card.get("device_temperature_celsius")),
            processes=shares,
            processes_missing=None if totals or not self._processes else events.SharesMissing.NOT_TOLD,
        )

    def _pool(self, now: float, t: float, who: Who, device: str, sizes: dict[str, int]) -> list[events.Event]:
        made: list[events.Event] = []
        process = self._processes.get(who)
        if process is None or not process.alive:
            process = self._processes[who] = _Process(1 + len(self._processes))
            made += self._begin(now, process, who)
        process.seen, process.alive = t, True
        if device not in process.devices:
            process.devices.add(device)
            made.append(
                events.Effective(
                    t=now,
                    pid=process.pid,
                    device=device,
                    physical=None,
                    uuid=self.row.uuid or None,
                    growth=None,
                    limit=sizes.get("limit_bytes") or None,
                    allocator=None,
                )
            )
        in_use = sizes.get("in_use_bytes", sizes.get("in_use_high_bytes"))
        made.append(
            events.Allocator(
                t=now,
                pid=process.pid,
                device=device,
                allocator=None,
                in_use=in_use,
                peak=sizes.get("peak_bytes"),
                pool=sizes.get("pool_bytes"),
                limit=sizes.get("limit_bytes") or None,
                high=sizes.get("in_use_high_bytes"),
            )
        )
        return made

    def _begin(self, now: float, process: _Process, who: Who) -> list[events.Event]:
        instance, _, rank = who
        name = [f"rank {rank}" if rank else instance]
        made: list[events.Event] = []
        if not self._running():
            number_of_run = 1 + process.pid
            made.append(events.Run(t=now, run=number_of_run, pid=process.pid, argv=name, cwd="", settings=Settings()))
            self._run = number_of_run
        made.append(
            events.Process(
                t=now,
                pid=process.pid,
                ppid=0,
                user=self.row.user,
                command=name,
                started=max(1.0, self._began + now),
                run=self._run,
            )
        )
        made.append(events.Hook(t=now, pid=process.pid, ppid=0, argv=name, python="", executable="", tensorflow=""))
        return made

    def _running(self) -> bool:
        return any(process.alive for process in self._processes.values())

    def _failed(self, now: float, failures: dict[Who, float]) -> list[events.Event]:
        """Return an out-of-memory event for each count that has risen."""
        made: list[events.Event] = []
        for who, count in failures.items():
            process = self._processes.get(who)
            if process is None:
                continue
            if process.failures is not None and count > process.failures:
                device = next(iter(process.devices), None)
                made.append(events.OutOfMemory(t=now, pid=process.pid, device=device, message=""))
            process.failures = count
        return made

    def _ended(self, now: float, t: float) -> list[events.Event]:
        """Return end events for processes without figures for a while. The run ends with the last of its processes."""
        made: list[events.Event] = []
        for process in self._processes.values():
            if process.alive and t - process.seen > _LAID_BACK * self._step_s:
                process.alive = False
                made.append(events.HookEnd(t=now, pid=process.pid, reason=events.HookEnding.EXIT))
                if not self._running():
                    made.append(events.RunEnd(t=now, run=self._run, exit_code=None, signal=None))
        return made


def _size(value: float) -> int:
    return max(0, int(value))


def _known_size(value: float | None) -> int | None:
    return None if value is None else _size(value)


def _percent(ratio: float | None) -> int | None:
    return None if ratio is None else min(100, max(0, round(ratio * 100)))


def _whole(value: float | None) -> int | None:
    return None if value is None else round(max(-1e9, min(value, 1e9)))
