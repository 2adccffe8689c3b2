"""The rows of the cluster's table: one for each rank on a GPU, and what is wrong with it. Pure.

Some problems come as findings from the exporters: the rules made them on the machine of the run. The others are found
here, from the figures only.
"""

from collections.abc import Callable, Iterable, Iterator
from enum import Enum, IntEnum
from statistics import median
from typing import NamedTuple

import msgspec

from tfmemtop.cluster.client import Series
from tfmemtop.cluster.queries import PACE_S, RISE_S
from tfmemtop.events.device_names import is_cpu
from tfmemtop.findings.ranks import unusual, unusual_pace
from tfmemtop.safe import safe
from tfmemtop.units import format_bytes, format_duration, format_rate, format_short

NEARLY_SHARE = 0.95
"""If this share of the limit is in use, memory runs out soon."""
SOON_S = 600.0
"""If a rise fills the limit within this many seconds, memory runs out soon."""
OUTLIER_RANKS = 3
"""The smallest number of ranks to compare. With fewer, it is not clear which of them is the outlier."""
GONE_S = 600.0
"""A row is kept for this many seconds after Prometheus has no more figures for it."""
_LONGEST_LABEL = 128
_NOTICE = "notice_"


class Kind(IntEnum):
    """What is wrong with a row. The kind that matters most is first."""

    RAN_OUT = 0
    RUNS_OUT_SOON = 1
    LEAKING = 2
    FULL_BUT_IDLE = 3
    OUTLIER = 4
    SLOW = 5
    SILENT = 6
    OTHER = 7  # a finding of any other kind
    UNREAD = 8  # a rank that runs and has loaded TensorFlow, but nothing is known of its memory
    NO_TENSORFLOW = 9  # a rank that runs, but has not loaded TensorFlow
    GONE = 10  # Prometheus lost this row and all others of its job or host: probably they have ended
    ENDED = 11  # the run has ended: nothing is wrong, but no more figures will come


_KINDS = {
    "allocation_failed": Kind.RAN_OUT,
    "crashed_when_full": Kind.RAN_OUT,
    "no_room": Kind.RUNS_OUT_SOON,
    "leak": Kind.LEAKING,
    "full_but_idle": Kind.FULL_BUT_IDLE,
    "reserved_unused": Kind.FULL_BUT_IDLE,
}
"""The kind of each finding that has one of its own. The other findings are ``OTHER``."""


class Silence(Enum):
    """Why there are no new figures."""

    DOWN = "down"  # the target does not answer Prometheus
    OLD = "old"  # the target answers with figures that were written long ago
    ENDED = "ended"  # the run has ended
    GONE = "gone"  # Prometheus no longer has the target, or the target no longer reports this GPU


class Wrong(msgspec.Struct, frozen=True, gc=False):
    """One thing that is wrong: in a few words, as a sentence, and in figures. ``amount`` sorts those of one kind."""

    kind: Kind
    short: str
    sentence: str
    figures: dict[str, float | str] = {}
    amount: float = 0.0


class Pool(NamedTuple):
    """What tells one row from all others. ``device`` is the logical device."""

    instance: str
    host: str
    uuid: str = ""
    device: str = ""
    run: str = ""
    job: str = ""
    rank: str = ""

    @property
    def named(self) -> bool:
        """Whether a target without any figures is one of tfmemtop's, by its labels."""
        return "tfmemtop" in self.job or bool(self.rank)


class ClusterRow(msgspec.Struct, gc=False):
    """A rank on a GPU, a GPU without one, or a target that does not answer. Sizes are bytes, shares from 0 to 1.

    ``in_use`` is the highest value since the scrape before, if that is known. ``used`` and ``total`` are those of the
    whole card. ``rising`` is in bytes per second, ``pace`` in steps per second. ``silent_s`` is the least number of
    seconds that ``silence`` has lasted. ``findings``: key and severity.
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
    findings: tuple[tuple[str, str], ...] = ()
    rising: float | None = None
    idle: bool = False
    silence: Silence | None = None
    silent_s: float = 0.0
    pace: float | None = None
    unread: Kind | None = None
    wrongs: tuple[Wrong, ...] = ()
    remarks: tuple[str, ...] = ()

    @property
    def key(self) -> Pool:
        """The key of the row, which is the same at the next answer."""
        return Pool(self.instance, self.host, self.uuid, self.device, self.run, self.job, self.rank)

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

    @property
    def worst(self) -> int:
        """The kind of the worst problem; higher than every kind if there is none."""
        return self.wrongs[0].kind if self.wrongs else len(Kind)

    @property
    def wrong(self) -> str:
        """What is wrong in a few words, the worst first: ``full soon 97%, leak``; empty if nothing is wrong."""
        return ", ".join(dict.fromkeys(one.short for one in self.wrongs))

    @property
    def gpu_name(self) -> str:
        """``GPU 1``; its UUID if it has no index; ``CPU`` for a pool without a GPU."""
        return f"GPU {self.gpu}" if self.gpu else self.uuid[:12] or "CPU" * is_cpu(self.device)

    @property
    def whose(self) -> str:
        """Host, GPU, job, rank and user: ``node3 GPU 1 · job 42 rank 7 · ada``."""
        job = f"job {self.job} " * bool(self.job) + f"rank {self.rank}" if self.rank else ""
        return safe(" · ".join(part for part in (f"{self.host} {self.gpu_name}".strip(), job, self.user) if part))

    @property
    def group(self) -> tuple[str, ...]:
        """The ranks that usually end together; for a GPU without a rank, its host.

        The job alone is not enough. Without a scheduler it may be Prometheus's name for targets of many users.
        """
        return (self.job, self.user, self.run) if self.rank else (self.host,)


def pool_of(labels: dict[str, str]) -> Pool:
    """Return the key of a pool. If the target has a label of the exporter's, Prometheus renames the exporter's own."""
    texts = {name: text[:_LONGEST_LABEL] for name, text in labels.items()}
    instance = texts.get("instance", "")
    host, job, rank = (texts.get(f"exported_{name}") or texts.get(name, "") for name in ("host", "job", "rank"))
    uuid, device, run = (texts.get(name, "") for name in ("uuid", "device", "run"))
    return Pool(instance, host or instance.rpartition(":")[0] or instance, uuid, device, run, job, rank)


def _told(pool: Pool) -> tuple[str, str, str]:
    return pool.instance, pool.run, pool.rank


_LEVELS: dict[str, Callable[[Pool], tuple[str, ...]]] = {
    **dict.fromkeys(("in_use", "unread", "limit", "rising", "was"), lambda pool: pool),
    **dict.fromkeys(("used", "was_used", "total", "busy", "info", "idle"), lambda pool: (pool.host, pool.uuid)),
    **dict.fromkeys(("pace", "starting", "run"), _told),
    "ended": lambda pool: (pool.instance, pool.run),
    **dict.fromkeys(("down", "old"), lambda pool: (pool.instance,)),
    "finding": lambda pool: (pool.instance, pool.run, pool.uuid),
}
"""What a figure belongs to: a pool, a card, a rank, a run, a target."""


class Rows:
    """Receives the answers one by one, and makes rows from the newest figures."""

    def __init__(self, job: str | None = None) -> None:
        """With a *job*, the rows are only those of this job."""
        self._job = job
        self._figures: dict[str, dict[tuple[str, ...], list[Series]]] = {means: {} for means in _LEVELS}
        self._last: dict[Pool, tuple[ClusterRow, float]] = {}  # each row's last state with figures, and its time
        self._now = 0.0

    def take(self, means: Iterable[str], found: Iterable[Series], now: float) -> None:
        """Store the answer *found* about *means*. *now* is the server's clock at that time."""
        self._now = max(now, self._now)
        for name in means:
            self._figures[name] = {}
        for one in found:
            name = one.metric.get("means", "")
            if (name := name if name in _LEVELS else name.removeprefix("was_")) in _LEVELS:
                self._figures[name].setdefault(_LEVELS[name](pool_of(one.metric)), []).append(one)

    @property
    def down(self) -> list[str]:
        """The instances of all targets that are down, first those that may be tfmemtop's."""
        found = {key[0]: pool_of(one[0].metric) for key, one in self._figures["down"].items()}
        return sorted(found, key=lambda instance: not found[instance].named)

    @property
    def present(self) -> set[tuple[str, ...]]:
        """The pools and GPUs of which the newest answers have figures."""
        return {*self._figures["in_use"], *self._figures["used"]}

    def rows(self) -> tuple[ClusterRow, ...]:
        """Return one row for each rank on a GPU, for each other GPU, and for what is silent; the worst first."""
        rows = [self._row(Pool(*pool)) for pool in self._figures["in_use"]]
        taken = {(row.host, row.uuid) for row in rows}
        rows += [self._row(Pool("", *card)) for card in self._figures["used"] if card not in taken]
        rows += self._silent(rows)
        for row in rows:
            if row.silence in (None, Silence.OLD):
                self._last[row.key] = row, self._now
        rows += self._unread(rows)
        _judge(rows)
        return tuple(sorted(rows, key=_order))

    def _number(self, means: str, key: tuple[str, ...]) -> float | None:
        found = self._figures[means].get(key)
        return found[0].number if found else None

    def _size(self, means: str, key: tuple[str, ...]) -> int | None:
        value = self._number(means, key)
        return int(value) if value is not None and value >= 0 else None

    def _text(self, means: str, key: tuple[str, ...], label: str) -> str:
        found = self._figures[means].get(key)
        return found[0].metric.get(label, "")[:_LONGEST_LABEL] if found else ""

    def _row(self, pool: Pool) -> ClusterRow:
        instance, host, uuid, device, run, job, rank = pool
        card, ended = (host, uuid), (instance, run) in self._figures["ended"]
        old_s = max((one.number or 0.0 for one in self._figures["old"].get((instance,), ())), default=None)
        return ClusterRow(
            *(instance, host, uuid, device, run, job, rank),
            user=self._text("run", _told(pool), "user"),
            gpu=self._text("info", card, "index"),
            model=self._text("info", card, "name"),
            in_use=self._size("in_use", pool),
            limit=self._size("limit", pool),
            used=self._size("used", card),
            total=self._size("total", card),
            busy=self._number("busy", card),
            findings=self._findings(instance, run, uuid),
            rising=self._number("rising", pool),
            idle=card in self._figures["idle"],
            silence=Silence.ENDED if ended else None if old_s is None else Silence.OLD,
            silent_s=old_s or 0.0,
            pace=self._number("pace", _told(pool)),
        )

    def _findings(self, instance: str, run: str, uuid: str) -> tuple[tuple[str, str], ...]:
        """Return the findings about this GPU, and those about no GPU in particular."""
        found = [one.metric for of in {uuid, ""} for one in self._figures["finding"].get((instance, run, of), ())]
        return tuple((one.get("key", "")[:_LONGEST_LABEL], one.get("severity", "")) for one in found)

    def _silent(self, rows: Iterable[ClusterRow]) -> list[ClusterRow]:
        """Return rows that had figures and have none now, and rows for other targets that are down."""
        present = {row.key for row in rows}
        again = {(row.host, row.uuid) for row in rows}
        told = {row.instance for row in rows}
        down = {key[0]: pool_of(found[0].metric) for key, found in self._figures["down"].items()}
        hosts = {pool.host for pool in down.values()}
        silent = []
        for key, (row, seen) in list(self._last.items()):
            if key in present:
                continue
            # Any target of the host may report a GPU without a rank.
            is_down = row.instance in down if row.instance else row.host in hosts
            if not is_down and (self._now - seen > GONE_S or (row.host, row.uuid) in again):
                del self._last[key]
                continue
            ended = (row.instance, row.run) in self._figures["ended"]
            silence = Silence.ENDED if ended else Silence.DOWN if is_down else Silence.GONE
            findings = self._findings(row.instance, row.run, row.uuid) if ended else ()
            since = self._now - seen
            silent.append(msgspec.structs.replace(row, silence=silence, silent_s=since, findings=findings, rising=None))
            told |= {row.instance} if row.instance else {at for at, pool in down.items() if pool.host == row.host}
        # A target that was down before the first answer is known by its last figures, or by its name only.
        were: dict[tuple[str, ...], Pool] = {}
        for pool in sorted(
            (Pool(*key) for key in self._figures["was"]), key=lambda pool: natural(pool.run)
        ):  # the newest run replaces those before
            were[pool.instance, pool.uuid, pool.device, pool.rank] = pool
        had = {pool.instance for pool in were.values()}
        named = [at for at in down.values() if at.named and at.instance not in had]
        for pool in [*were.values(), *named]:
            if pool.instance in down and pool.instance not in told:
                row = self._row(pool)
                row.in_use, row.used = self._size("was", pool), self._size("was_used", (pool.host, pool.uuid))
                row.busy, row.silence = None, Silence.DOWN
                silent.append(row)
        return [row for row in silent if self._job in (None, row.job)]

    def _unread(self, rows: Iterable[ClusterRow]) -> Iterator[ClusterRow]:
        """Yield a row for each rank that runs but has reported no memory."""
        told = {_told(key) for key in (*(row.key for row in rows), *self._last)}
        for pool in (Pool(*key) for key in self._figures["unread"]):
            who = _told(pool)
            if who[2] and who not in told and (who[0],) not in self._figures["down"]:
                row = self._row(pool)
                if who not in self._figures["starting"]:
                    loaded = self._text("unread", pool, "tensorflow")
                    row.unread = Kind.UNREAD if loaded else Kind.NO_TENSORFLOW
                yield row


def natural(text: str) -> tuple[int, str]:
    """Return a sort key by which ``10`` comes after ``9``, and texts that are not numbers come last."""
    return (int(text), "") if text.isascii() and text.isdigit() and len(text) < 10 else (10**10, text)


def _order(row: ClusterRow) -> tuple[object, ...]:
    amount = row.wrongs[0].amount if row.wrongs else 0.0
    return row.worst, -amount, -(row.share or 0.0), row.job, natural(row.rank), row.host, natural(row.gpu)


def _judge(rows: list[ClusterRow]) -> None:
    """Set what is wrong with each of *rows*."""
    sizes = _middles(rows, lambda row: row.in_use)
    paces = _middles(rows, lambda row: row.pace)
    going_on = {row.group for row in rows if row.silence not in (Silence.GONE, Silence.ENDED)}
    for row in rows:
        if row.silence not in (None, Silence.ENDED):
            # The earlier problems may be gone by now; that is not known.
            wrongs = [_silence(row, over=row.silence is Silence.GONE and row.group not in going_on)]
        else:
            wrongs = [*_reported(row)]
            if row.silence is None:
                found = [*_of_figures(row, {one.kind for one in wrongs}), *_beside_others(row, sizes, paces)]
                # What the figures say is said instead of the finding of the same kind, which has no figures.
                kinds = {one.kind for one in found}
                wrongs = [*(one for one in wrongs if one.kind not in kinds), *found]
        row.wrongs = tuple(sorted(wrongs, key=lambda wrong: wrong.kind))
        row.remarks = tuple(dict.fromkeys(key for key, severity in row.findings if _is_remark(key, severity)))


def _is_remark(key: str, severity: str) -> bool:
    """Return whether a finding is only information. One of ``_KINDS`` never is: the figures would show it, too."""
    return severity == "info" and key not in _KINDS


def _reported(row: ClusterRow) -> Iterator[Wrong]:
    """Yield what the tfmemtop of the rank has found, that the run has ended, and that nothing is known of it."""
    texts = {
        Kind.RAN_OUT: ("out of memory", "An allocation failed: TensorFlow ran out of memory."),
        Kind.RUNS_OUT_SOON: ("full soon", "TensorFlow finds no room for an allocation, and waits for some."),
        Kind.LEAKING: ("leak", "Memory in use keeps rising: its tfmemtop reports a leak."),
        Kind.FULL_BUT_IDLE: ("full, idle", _idle(row)),
    }
    for key, severity in row.findings:
        if not _is_remark(key, severity):
            kind = _KINDS.get(key, Kind.OTHER)
            yield Wrong(kind, *texts.get(kind, (plain(key), remark(key))), {"key": key})
    if row.silence is Silence.ENDED:
        yield Wrong(Kind.ENDED, "ended", "The run has ended. The figures are the last ones.", {"silence": "ended"})
    if row.unread is Kind.UNREAD:
        told = "This rank has loaded TensorFlow, but none of its memory was read: it uses none, or cannot be read."
        yield Wrong(Kind.UNREAD, "memory not read", told)
    elif row.unread is Kind.NO_TENSORFLOW:
        told = "No TensorFlow has been seen in this rank: it has not loaded TensorFlow yet, or never does."
        yield Wrong(Kind.NO_TENSORFLOW, "no TensorFlow", told)


def plain(key: str) -> str:
    """Return the key of a finding or notice as words."""
    return safe(key.removeprefix(_NOTICE).replace("_", " "))


def remark(key: str) -> str:
    """Return the sentence about *key*, a finding or a notice that has no sentence of its own on this screen."""
    if key.startswith(_NOTICE):
        return f"Its tfmemtop reports: {plain(key)}. Its own screen says more."
    return f"Its tfmemtop reports the finding {safe(key)}: see tfmemtop help findings, or its own screen."


def _idle(row: ClusterRow) -> str:
    used = f"{format_bytes(row.used)} of {format_bytes(row.total)} are taken" if row.used else "The memory is taken"
    return f"{used}, and the GPU computes little."


def _silence(row: ClusterRow, *, over: bool) -> Wrong:
    """Return why there are no new figures. *over*: nor are there any of the rows that end together with this one."""
    assert row.silence is not None
    lasted = f" {format_duration(row.silent_s)}" if row.silent_s >= 1 else ""
    for_ = f" for{lasted}" * bool(lasted)
    other = f"rank of job {safe(row.job)}" if row.rank else "GPU of this host"
    if row.silence is Silence.DOWN:
        told = f"The exporter has not answered Prometheus{for_}. The figures are the last ones."
    elif row.silence is Silence.OLD:
        told = f"The figures are {format_duration(row.silent_s)} old: no newer ones are written."
    elif over:
        told = f"Prometheus has had no figures{for_}. It has none of any other {other}: probably all have ended."
    else:
        told = f"Prometheus has had no figures{for_}. Another {other} has not ended."
    name = row.silence.value
    figures: dict[str, float | str] = {"silence": name, "silent_s": row.silent_s}
    return Wrong(Kind.GONE if over else Kind.SILENT, name + lasted, told, figures, row.silent_s)


def _of_figures(row: ClusterRow, reported: set[Kind]) -> Iterator[Wrong]:
    """Yield what the figures of this row alone show."""
    room = row.limit - row.in_use if row.limit and row.in_use is not None else None
    share = None if room is None or not row.limit else 1 - room / row.limit
    left_s = max(0, room) / row.rising if row.rising and room is not None else None
    rate = f"{format_bytes(int((row.rising or 0) * 60))}/min"
    if left_s is not None and (left_s <= SOON_S or (share or 0) >= NEARLY_SHARE):
        told = f"Memory in use rises by {rate}. At this pace the limit of {format_bytes(row.limit)} "
        told += f"is reached in about {format_duration(left_s)}."
        figures = {"share": share or 0.0, "rate": row.rising or 0.0, "left_s": left_s}
        yield Wrong(Kind.RUNS_OUT_SOON, f"full in {format_duration(left_s)}", told, {**figures}, -left_s)
    elif share is not None and share >= NEARLY_SHARE:
        told = f"{format_bytes(row.in_use)} are in use: {share * 100:.0f}% of the limit of {format_bytes(row.limit)}."
        yield Wrong(Kind.RUNS_OUT_SOON, f"full soon {share * 100:.0f}%", told, {"share": share}, share - 1e9)
    elif row.rising is not None:
        told = (
            f"Memory in use keeps rising, also at its lowest points, by {rate} in the last {format_duration(RISE_S)}."
        )
        amount = -1e9 if left_s is None else -left_s
        yield Wrong(
            Kind.LEAKING,
            f"leak {rate}",
            told,
            {"rate": row.rising, **({} if left_s is None else {"left_s": left_s})},
            amount,
        )
    if row.idle and Kind.FULL_BUT_IDLE not in reported:
        yield Wrong(
            Kind.FULL_BUT_IDLE, "full, idle", _idle(row), {"share": row.share} if row.share else {}, row.share or 0.0
        )


_Middles = dict[tuple[str, ...], tuple[float, float]]


def _middles(rows: Iterable[ClusterRow], figure: Callable[[ClusterRow], float | None]) -> _Middles:
    """Return the median of a *figure*, and the median distance from it, for each group with enough ranks."""
    groups: dict[tuple[str, ...], list[float]] = {}
    for row in rows:
        value = figure(row)
        if row.rank and row.job and row.silence is None and value is not None:
            groups.setdefault((*row.group, row.device), []).append(value)
    usual = {group: median(values) for group, values in groups.items() if len(values) >= OUTLIER_RANKS}
    return {group: (middle, median(abs(one - middle) for one in groups[group])) for group, middle in usual.items()}


def _beside_others(row: ClusterRow, sizes: _Middles, paces: _Middles) -> Iterator[Wrong]:
    """Yield how a rank differs from the others of its job: in memory, and in pace if it is slower."""
    group = (*row.group, row.device)
    if row.rank and row.in_use is not None and group in sizes:
        usual, spread = sizes[group]
        apart = int(row.in_use - usual)
        if unusual(row.in_use - usual, usual, spread):
            told = (
                f"Rank {safe(row.rank)} has {format_bytes(abs(apart))} {'more' if apart > 0 else 'less'} in use than "
                f"the median of the ranks of job {safe(row.job)}, {format_bytes(int(usual))}."
            )
            short = f"outlier {'+' if apart > 0 else '-'}{format_short(abs(apart))}"
            yield Wrong(Kind.OUTLIER, short, told, {"size": apart, "median": int(usual)}, abs(apart))
    if row.rank and row.pace is not None and group in paces:
        usual, spread = paces[group]
        if row.pace < usual and unusual_pace(row.pace - usual, usual, spread):
            share = 1 - row.pace / usual
            told = (
                f"Rank {safe(row.rank)} is {share * 100:.0f}% slower: {format_rate(row.pace)} steps a second in the "
                f"last {format_duration(PACE_S)}, where the median of the ranks of job {safe(row.job)} is "
                f"{format_rate(usual)}."
            )
            figures = {"share": share, "pace": row.pace, "usual": usual}
            yield Wrong(Kind.SLOW, f"{share * 100:.0f}% slower", told, {**figures}, share)
