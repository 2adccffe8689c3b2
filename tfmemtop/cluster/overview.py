"""The overview of all GPUs: combines the newest answers to all queries into rows. Pure."""

from collections.abc import Iterable, Set
from enum import Enum

import msgspec

from tfmemtop.cluster.answers import Labels, Series, label
from tfmemtop.cluster.queries import STARTING_S, Lane

GONE_S = 600.0
"""A row is kept for this many seconds after Prometheus has no more figures for it."""

MOST_USERS = 100_000
_TOGETHER_S = 150.0
"""Seconds. Of a target that is down, the pools and GPUs whose last figures are within this time of its newest figure
are shown. Older ones belong to an earlier run."""

Card = tuple[str, str]
"""Host and UUID of a GPU; the host is empty if it is not known."""
Pool = tuple[str, str, str, str, str, str, str]
"""Instance, host, UUID, logical device, run, job, rank."""

Told = tuple[str, str, str]
"""Instance, run, rank: the source of a figure."""


class Silence(Enum):
    """Why there are no new figures."""

    DOWN = "down"  # the target does not answer Prometheus
    OLD = "old"  # the target answers with figures that were written long ago
    ENDED = "ended"  # the run has ended
    GONE = "gone"  # Prometheus no longer has the target, or the target no longer reports this GPU


class ClusterRow(msgspec.Struct, frozen=True, gc=False):
    """A rank on a GPU, a GPU without one, or a target that does not answer. Sizes are bytes, shares from 0 to 1.

    ``in_use`` is the highest value since the scrape before; if that is not reported, the value at the scrape. ``used``
    and ``total`` are those of the whole card. ``rising`` is in bytes per second, ``pace`` in steps per second.
    ``silent_s`` is the least number of seconds that ``silence`` has lasted. For a rank without figures, ``starting``
    means that its run began not long ago, and ``tensorflow`` that it has loaded TensorFlow.
    """

    instance: str
    host: str
    uuid: str
    device: str = ""
    run: str = ""
    job: str = ""
    rank: str = ""
    user: str = ""
    gpu: str = ""
    model: str = ""
    in_use: int | None = None
    limit: int | None = None
    used: int | None = None
    total: int | None = None
    busy: float | None = None
    findings: tuple[tuple[str, str], ...] = ()  # key and severity
    rising: float | None = None
    idle: bool = False
    silence: Silence | None = None
    silent_s: float = 0.0
    pace: float | None = None
    starting: bool = False
    tensorflow: bool = False

    @property
    def key(self) -> Pool:
        """The key of the row, which is the same in the next overview."""
        return self.instance, self.host, self.uuid, self.device, self.run, self.job, self.rank

    @property
    def share(self) -> float | None:
        """The share of the card's memory that all processes take; without a card, the share of the limit in use."""
        held, whole = (self.used, self.total) if self.total else (self.in_use, self.limit)
        return None if held is None or not whole else min(1.0, held / whole)

    @property
    def share_in_use(self) -> float | None:
        """The share of the card's memory that TensorFlow has in use; without a card, the share of the limit."""
        whole = self.total or self.limit
        return None if self.in_use is None or not whole else min(1.0, self.in_use / whole)


def host_of(labels: Labels) -> str:
    """Return the host in the exporter's label, else in the target's label, else in the target's address."""
    return label(labels.exported_host or labels.host or labels.instance.rpartition(":")[0] or labels.instance)


def job_of(labels: Labels) -> str:
    """Return the scheduler's job. Without one, it is the name that Prometheus gives to a group of targets."""
    return label(labels.exported_job or labels.job)


def rank_of(labels: Labels) -> str:
    """Return the rank in the exporter's label, else in the target's label."""
    return label(labels.exported_rank or labels.rank)


def _card(labels: Labels) -> Card:
    return host_of(labels), label(labels.uuid)


def _pool(labels: Labels) -> Pool:
    return (
        label(labels.instance),
        *_card(labels),
        label(labels.device),
        label(labels.run),
        job_of(labels),
        rank_of(labels),
    )


class Cluster:
    """Receives the answers one by one, and makes rows from the newest answer to each query."""

    def __init__(self, job: str | None = None) -> None:
        """With a *job*, the rows are only those of this job."""
        self._job = job
        self.known: set[Lane] = set()
        self._in_use: dict[Pool, int] = {}
        self._in_use_now: dict[Pool, int] = {}  # for pools whose highest value is not reported
        self._limits: dict[Pool, int] = {}
        self._users: dict[tuple[str, str], str] = {}  # by instance and run
        self._used: dict[Card, int] = {}
        self._busy: dict[Card, float] = {}
        self._ranks: dict[Told, Pool] = {}  # the ranks that report that they run
        self._loaded: set[Told] = set()  # those that have loaded TensorFlow
        self._starts: dict[Told, float] = {}  # the start times of those that began not long ago
        self._totals: dict[Card, int] = {}
        self._names: dict[Card, tuple[str, str]] = {}  # index and model
        self._findings: dict[tuple[str, str, str], list[tuple[str, str]]] = {}  # by instance, run, UUID
        self._down: dict[str, Labels] = {}  # by instance
        self._ended: set[tuple[str, str]] = set()  # by instance and run
        self._were: dict[Pool, float] = {}  # for targets that are down: the time of each pool's last figure
        self._had: dict[Pool, int] = {}  # and that figure, in bytes
        self._cards_had: dict[tuple[str, Card], tuple[float, int]] = {}  # both for GPUs, by instance
        self._old: dict[str, float] = {}  # seconds, by instance
        self._idle: set[Card] = set()
        self._rising: dict[Pool, float] = {}
        self._paces: dict[Told, float] = {}
        self._last: dict[Pool, tuple[ClusterRow, float]] = {}  # each row's last state with figures, and its time
        self._now = 0.0

    def take(self, lane: Lane, found: Iterable[Series], now: float) -> None:
        """Store the answer *found* to the query *lane*. *now* is the server's clock at that time."""
        self.known.add(lane)
        self._now = max(now, self._now)
        {
            Lane.FIGURES: self._take_figures,
            Lane.STATE: self._take_state,
            Lane.FIXED: self._take_fixed,
            Lane.SILENT: self._take_silent,
            Lane.TRENDS: self._take_trends,
        }[lane](found)

    def _take_figures(self, found: Iterable[Series]) -> None:
        self._in_use = {_pool(one.metric): size for one in found if (size := one.size) is not None}

    def _take_fixed(self, found: Iterable[Series]) -> None:
        self._limits, self._ranks, self._loaded, self._starts = {}, {}, set(), {}
        # The users are kept, because a target that is down does not report its user. Those that answer report it again.
        if len(self._users) > MOST_USERS:
            self._users.clear()
        for one in found:
            labels, size = one.metric, one.size
            who = label(labels.instance), label(labels.run), rank_of(labels)
            if labels.name == "tfmemtop_run_info":
                self._users[label(labels.instance), label(labels.run)] = label(labels.user)
                if who[2]:
                    self._ranks[who] = _pool(labels)
                if labels.tensorflow:
                    self._loaded.add(who)
            elif labels.name == "tfmemtop_device_info":
                self._names[_card(labels)] = label(labels.index), label(labels.model)
            elif size is None:
                continue
            elif labels.name == "tfmemtop_run_start_time_seconds":
                self._starts[who] = size
            elif labels.name == "tfmemtop_device_memory_total_bytes":
                self._totals[_card(labels)] = size
            else:
                self._limits[_pool(labels)] = size

    def _take_state(self, found: Iterable[Series]) -> None:
        self._findings, self._down, self._ended = {}, {}, set()
        self._used, self._busy, self._in_use_now = {}, {}, {}
        for one in found:
            labels = one.metric
            if labels.name == "up":
                self._down[label(labels.instance)] = labels
            elif labels.name == "tfmemtop_running":
                self._ended.add((label(labels.instance), label(labels.run)))
            elif labels.name == "tfmemtop_device_utilization_ratio":
                if (number := one.number) is not None:
                    self._busy[_card(labels)] = number
            elif labels.name == "tfmemtop_device_memory_used_bytes":
                if (size := one.size) is not None:
                    self._used[_card(labels)] = size
            elif labels.name == "tfmemtop_in_use_bytes":
                if (size := one.size) is not None:
                    self._in_use_now[_pool(labels)] = size
            else:
                place = label(labels.instance), label(labels.run), label(labels.uuid)
                self._findings.setdefault(place, []).append((label(labels.key), label(labels.severity)))

    def _take_silent(self, found: Iterable[Series]) -> None:
        self._old, self._were, self._had = {}, {}, {}
        cards: dict[tuple[str, Card], dict[str, float]] = {}
        for one in found:
            labels, number = one.metric, one.number
            instance, means = label(labels.instance), labels.means
            if number is None:
                continue
            if means == "was":
                self._were[_pool(labels)] = number
            elif means == "had":
                self._had[_pool(labels)] = max(0, int(number))
            elif means == "had_total":
                self._totals.setdefault(_card(labels), max(0, int(number)))
            elif means == "had_user":
                self._users.setdefault((instance, label(labels.run)), label(labels.user))
            elif means == "had_info":
                self._names.setdefault(_card(labels), (label(labels.index), label(labels.model)))
            elif means == "old":
                self._old[instance] = max(number, self._old.get(instance, 0.0))
            else:
                cards.setdefault((instance, _card(labels)), {})[means] = number
        self._cards_had = {
            key: (of["was_card"], max(0, int(of["had_card"]))) for key, of in cards.items() if len(of) == 2
        }

    def _take_trends(self, found: Iterable[Series]) -> None:
        self._idle, self._rising, self._paces = set(), {}, {}
        for one in found:
            if one.metric.means == "idle":
                self._idle.add(_card(one.metric))
            elif (number := one.number) is None:
                continue
            elif one.metric.means == "pace":
                self._paces[label(one.metric.instance), label(one.metric.run), rank_of(one.metric)] = number
            else:
                self._rising[_pool(one.metric)] = number

    @property
    def present(self) -> Set[Pool | Card]:
        """The pools and GPUs of which the newest answers have figures."""
        return self._in_use.keys() | self._in_use_now.keys() | self._used.keys()

    @property
    def down(self) -> list[str]:
        """The instances of all targets that are down, first those that may be tfmemtop's."""
        return sorted(self._down, key=lambda instance: not _ours(self._down[instance]))

    def rows(self) -> list[ClusterRow]:
        """Return one row for each rank on a GPU, one for each other GPU, and the rows that are silent."""
        if Lane.FIGURES not in self.known:
            return []
        rows = [self._row(pool, in_use) for pool, in_use in self._in_use.items()]
        rows += [self._row(pool, in_use) for pool, in_use in self._in_use_now.items() if pool not in self._in_use]
        taken = {(row.host, row.uuid) for row in rows}
        rows += [self._row(("", *card, "", "", "", ""), None) for card in self._used if card not in taken]
        present = {row.key for row in rows}
        again = {(row.host, row.uuid) for row in rows}
        rows += self._silent(present, again)
        for row in rows:
            if row.silence in (None, Silence.OLD):
                self._last[row.key] = row, self._now
        return rows + self._unread(rows)

    def _unread(self, rows: Iterable[ClusterRow]) -> list[ClusterRow]:
        """Return a row for each rank that runs but has reported no memory."""
        told = {(row.instance, row.run, row.rank) for row in rows}
        told |= {(key[0], key[4], key[6]) for key in self._last}
        return [
            msgspec.structs.replace(
                self._row(pool, None),
                starting=who in self._starts and self._now < self._starts[who] + STARTING_S,
                tensorflow=who in self._loaded,
            )
            for who, pool in self._ranks.items()
            if who not in told and who[0] not in self._down
        ]

    def _row(self, pool: Pool, in_use: int | None) -> ClusterRow:
        instance, host, uuid, device, run, job, rank = pool
        card = host, uuid
        gpu, model = self._names.get(card, ("", ""))
        old = self._old.get(instance)
        return ClusterRow(
            instance,
            *(host, uuid, device, run, job, rank),
            self._users.get((instance, run), ""),
            *(gpu, model),
            in_use,
            self._limits.get(pool),
            self._used.get(card),
            self._totals.get(card),
            self._busy.get(card),
            self._found(instance, run, uuid),
            self._rising.get(pool),
            card in self._idle,
            Silence.ENDED if (instance, run) in self._ended else None if old is None else Silence.OLD,
            old or 0.0,
            self._paces.get((instance, run, rank)),
        )

    def _found(self, instance: str, run: str, uuid: str) -> tuple[tuple[str, str], ...]:
        """Return the findings about this GPU, and those about no GPU in particular."""
        if not self._findings:
            return ()
        found = self._findings.get((instance, run, uuid), [])
        if uuid:
            found = found + self._findings.get((instance, run, ""), [])
        return tuple(found)

    def _silent(self, present: set[Pool], again: set[Card]) -> list[ClusterRow]:
        """Return rows that had figures and have none now, and rows for other targets that are down."""
        found = []
        told = {pool[0] for pool in present}
        hosts = {host_of(labels) for labels in self._down.values()}
        for key, (row, seen) in list(self._last.items()):
            if key in present:
                continue
            # Any target of the host may report a GPU without a rank.
            down = row.instance in self._down if row.instance else row.host in hosts
            since = self._now - seen
            if not down and (since > GONE_S or (row.host, row.uuid) in again):
                del self._last[key]
                continue
            ended = (row.instance, row.run) in self._ended
            silence = Silence.ENDED if ended else Silence.DOWN if down else Silence.GONE
            findings = self._found(row.instance, row.run, row.uuid) if ended else ()
            found.append(msgspec.structs.replace(row, silence=silence, silent_s=since, findings=findings, rising=None))
            told |= {row.instance} if row.instance else {at for at in self._down if host_of(self._down[at]) == row.host}
        for instance, labels in self._down.items():
            if instance not in told:
                found += self._remembered(instance, labels)
        return [row for row in found if self._job in (None, row.job)]

    def _remembered(self, instance: str, labels: Labels) -> list[ClusterRow]:
        """Return rows for a target that was down before this program started: its last figures, or only its name."""
        times = {pool: t for pool, t in self._were.items() if pool[0] == instance}
        cards = {card: had for (at, card), had in self._cards_had.items() if at == instance}
        newest = max([*times.values(), *(t for t, _ in cards.values())], default=0.0)
        rows = []
        for pool, t in times.items():
            if t > newest - _TOGETHER_S:
                used = cards.get((pool[1], pool[2]), (0.0, None))[1]
                rows.append(self._was(pool, t, self._had.get(pool), used))
        taken = {(row.host, row.uuid) for row in rows}
        for card, (t, used) in cards.items():
            if t > newest - _TOGETHER_S and card not in taken:
                rows.append(self._was((instance, *card, "", "", "", ""), t, None, used))
        if rows or not _ours(labels):
            return rows
        return [_down(instance, labels)]

    def _was(self, pool: Pool, t: float, in_use: int | None, used: int | None) -> ClusterRow:
        row = self._row(pool, in_use)
        silent_s = max(0.0, self._now - t)
        return msgspec.structs.replace(row, used=used, busy=None, silence=Silence.DOWN, silent_s=silent_s)


def _ours(labels: Labels) -> bool:
    """Return whether a target without any figures is one of tfmemtop's, by its labels."""
    return "tfmemtop" in labels.job or bool(labels.rank)


def _down(instance: str, labels: Labels) -> ClusterRow:
    return ClusterRow(
        instance,
        host_of(labels),
        "",
        run=label(labels.run),
        job=job_of(labels),
        rank=rank_of(labels),
        user=label(labels.user),
        silence=Silence.DOWN,
    )
