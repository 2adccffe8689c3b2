"""Turns Prometheus's figures of one GPU into events, so that the usual state and the usual panels can show it.

Prometheus has no process ids. Each run of a rank gets a number of its own in their place, which is not shown.
"""

import time
from collections import defaultdict
from collections.abc import Iterator

import msgspec

from tfmemtop import events
from tfmemtop.cluster.client import Client, number
from tfmemtop.cluster.queries import of_gpu
from tfmemtop.cluster.rows import ClusterRow, pool_of
from tfmemtop.settings import Settings
from tfmemtop.state import State, apply

POINTS = 360
"""The largest number of points in a history. A graph has fewer columns."""
_SHORTEST_STEP_S = 15.0
_LONG_STEP_S = 60.0
"""A step that is longer has several figures. The highest of them is taken."""
_ENDED_STEPS = 3
"""A series has ended if it has no figure for this many steps."""

_Who = tuple[str, str, str]
"""Instance, run, rank. Together they stand for a process; Prometheus has nothing more exact."""


class _Process(msgspec.Struct):
    pid: int
    name: str
    seen: float = 0.0
    alive: bool = False
    devices: set[str] = msgspec.field(default_factory=set)


class OneGpu:
    """The events of the GPU of *row* in the last *span_s* seconds, and those that come later.

    The calls block, because those of the client do.
    """

    def __init__(self, client: Client, row: ClusterRow, span_s: float) -> None:
        self.row, self.span_s = row, span_s
        self.state = State()
        self.ahead_s = 0.0  # seconds that the server's clock is ahead of this machine's
        self._client = client
        self._step_s = max(_SHORTEST_STEP_S, span_s / POINTS)
        self._began = 0.0  # by the server's clock
        self._read_until = 0.0
        self._processes: dict[_Who, _Process] = {}
        self._run = 0  # the number of the newest run
        self._index: int | None = None  # the GPU's index, once its Device event has been made

    def open(self, now: float) -> None:
        """Read the history up to *now* by the server's clock (seconds since 1970), and fold it into ``state``.

        Raises:
            NoAnswer: the server did not answer.
        """
        self._began = now - self.span_s
        self._read_until = self._began - self._step_s
        for event in self._read(now):
            apply(self.state, event)

    def follow(self) -> list[events.Event]:
        """Read what is new since the last call, and return it as events. They are not folded yet.

        Raises:
            NoAnswer: the server did not answer.
        """
        return self._read(time.time() + self.ahead_s)

    def _read(self, until: float) -> list[events.Event]:
        row, start = self.row, min(self._read_until + self._step_s, until)
        span = f"[{self._step_s:.0f}s]" if self._step_s > _LONG_STEP_S else ""
        answer = self._client.query_range(of_gpu(row.host, row.uuid, row.instance, span), start, until, self._step_s)
        self.ahead_s = answer.ahead_s or 0.0
        by_time: dict[float, list[tuple[dict[str, str], float]]] = defaultdict(list)
        for one in answer.series():
            for t, text in one.values:
                if (value := number(text)) is not None and t > self._read_until:
                    by_time[t].append((one.metric, value))
        made: list[events.Event] = [] if self.state.session else [self._session()]
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

    def _at(self, t: float, figures: list[tuple[dict[str, str], float]]) -> Iterator[events.Event]:
        """Yield the events for the *figures* of one time *t*."""
        now = max(0.0, t - self._began)
        card: dict[str, float] = {}
        totals: dict[_Who, int] = {}
        pools: dict[tuple[_Who, str], dict[str, int]] = defaultdict(dict)
        for labels, value in figures:
            instance, _, _, device, run, _, rank = pool_of(labels)
            means, who = labels.get("means", ""), (instance, run, rank)
            if means.startswith("device_"):
                card[means] = max(value, card.get(means, value))
            elif means == "process_total_bytes":
                totals[who] = _size(value)
            else:
                pools[who, device][means] = _size(value)
        has_card = bool(card and self.row.uuid)
        if has_card and self._index is None:
            yield self._card(now, card)
        for (who, device), sizes in pools.items():
            yield from self._pool(now, t, who, device, sizes)
        if has_card:
            yield self._reading(now, card, totals)
        yield from self._ended(now, t)

    def _card(self, now: float, card: dict[str, float]) -> events.Device:
        gpu = self.row.gpu
        self._index = int(gpu) if gpu.isascii() and gpu.isdigit() and len(gpu) < 3 else 0
        return events.Device(
            t=now,
            index=self._index,
            uuid=self.row.uuid,
            name=self.row.model,
            total=_known_size(card.get("device_memory_total_bytes")) or None,
            reserved=_known_size(card.get("device_memory_reserved_bytes")),
        )

    def _reading(self, now: float, card: dict[str, float], totals: dict[_Who, int]) -> events.DeviceReading:
        known = [(self._processes[who].pid, size) for who, size in totals.items() if who in self._processes]
        return events.DeviceReading(
            t=now,
            index=self._index or 0,
            used=_known_size(card.get("device_memory_used_bytes")),
            free=_known_size(card.get("device_memory_free_bytes")),
            utilisation=_percent(card.get("device_utilization_ratio")),
            bandwidth=_percent(card.get("device_memory_bandwidth_ratio")),
            power_w=_whole(card.get("device_power_watts")),
            temperature_c=_whole(card.get("device_temperature_celsius")),
            processes=[events.DeviceProcess(pid, size) for pid, size in known],
            processes_missing=None if totals or not self._processes else events.SharesMissing.NOT_TOLD,
        )

    def _pool(self, now: float, t: float, who: _Who, device: str, sizes: dict[str, int]) -> Iterator[events.Event]:
        process = self._processes.get(who)
        if process is None or not process.alive:
            name = f"rank {who[2]}" if who[2] else who[0]
            process = self._processes[who] = _Process(1 + len(self._processes), name)
            yield from self._begin(now, process)
        process.seen, process.alive = t, True
        limit = sizes.get("limit_bytes") or None
        if device not in process.devices:
            process.devices.add(device)
            yield events.Effective(
                t=now,
                pid=process.pid,
                device=device,
                physical=None,
                uuid=self.row.uuid or None,
                growth=None,
                limit=limit,
                allocator=None,
            )
        high = sizes.get("in_use_high_bytes")
        yield events.Allocator(
            t=now,
            pid=process.pid,
            device=device,
            allocator=None,
            in_use=sizes.get("in_use_bytes", high),
            peak=sizes.get("peak_bytes"),
            pool=sizes.get("pool_bytes"),
            limit=limit,
            high=high,
        )

    def _begin(self, now: float, process: _Process) -> Iterator[events.Event]:
        pid, argv, started = process.pid, [process.name], max(1.0, self._began + now)
        if not self._running():
            self._run = 1 + pid
            yield events.Run(t=now, run=self._run, pid=pid, argv=argv, cwd="", settings=Settings())
        yield events.Process(t=now, pid=pid, ppid=0, user=self.row.user, command=argv, started=started, run=self._run)
        yield events.Hook(t=now, pid=pid, ppid=0, argv=argv, python="", executable="", tensorflow="")

    def _running(self) -> bool:
        return any(process.alive for process in self._processes.values())

    def _ended(self, now: float, t: float) -> Iterator[events.Event]:
        """Yield end events for processes without figures for a while. The run ends with the last of its processes."""
        for process in self._processes.values():
            if process.alive and t - process.seen > _ENDED_STEPS * self._step_s:
                process.alive = False
                yield events.HookEnd(t=now, pid=process.pid, reason=events.HookEnding.EXIT)
                if not self._running():
                    yield events.RunEnd(t=now, run=self._run, exit_code=None, signal=None)


def _size(value: float) -> int:
    return max(0, int(value))


def _known_size(value: float | None) -> int | None:
    return None if value is None else _size(value)


def _percent(ratio: float | None) -> int | None:
    return None if ratio is None else min(100, max(0, round(ratio * 100)))


def _whole(value: float | None) -> int | None:
    return None if value is None else round(max(-1e9, min(value, 1e9)))
