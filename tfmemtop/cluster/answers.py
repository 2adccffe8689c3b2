"""Makes the rows of the cluster's table from the answers of Prometheus, and says what is wrong with each. Pure.

Some problems come as findings from the exporters: the rules made them on the machine of the run. The others are found
here, from the figures only.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec

from tfmemtop.cluster.client import PACE_S, Sample
from tfmemtop.cluster.rows import LONGEST_LABEL, ClusterRow, Kind, Pool, Silence, Wrong, natural, pool_of
from tfmemtop.safe import safe
from tfmemtop.state.ranks import Usual, usual_of
from tfmemtop.units import format_bytes, format_duration, format_rate, format_short

NEARLY_SHARE = 0.95
"""If this share of the limit is in use, memory runs out soon."""
OUTLIER_RANKS = 3
"""The smallest number of ranks to compare. With fewer, it is not clear which of them is the outlier."""
_NOTICE = "notice_"

_KINDS = {
    "allocation_failed": Kind.RAN_OUT,
    "crashed_when_full": Kind.RAN_OUT,
    "no_room": Kind.RUNS_OUT_SOON,
    "leak": Kind.LEAKING,
    "full_but_idle": Kind.FULL_BUT_IDLE,
    "reserved_unused": Kind.FULL_BUT_IDLE,
}
"""The kind of each finding that has one of its own. The other findings are ``OTHER``."""


def judge(rows: Sequence[ClusterRow]) -> tuple[ClusterRow, ...]:
    """Set what is wrong with each of *rows*, and return them, the worst first."""
    sizes = _usual(rows, lambda row: row.in_use)
    paces = _usual(rows, lambda row: row.pace)
    going_on = {row.group for row in rows if row.silence not in (Silence.GONE, Silence.ENDED)}
    for row in rows:
        if row.silence is None:
            # What the figures say is said instead of the finding of the same kind, which has no figures.
            reported = list(_reported(row))
            found = [*_nearly_full(row), *_beside_others(row, sizes, paces)]
            wrongs = [*(one for one in reported if one.kind not in {one.kind for one in found}), *found]
        elif row.silence is Silence.ENDED:
            wrongs = list(_reported(row))
        else:  # the earlier problems may be gone by now; that is not known
            wrongs = [_silence(row, row.silence, over=row.silence is Silence.GONE and row.group not in going_on)]
        row.wrongs = tuple(sorted(wrongs, key=lambda wrong: wrong.kind))
        row.remarks = tuple(dict.fromkeys(key for key, severity in row.findings if _is_remark(key, severity)))
    return tuple(sorted(rows, key=_order))


def _order(row: ClusterRow) -> tuple[object, ...]:
    amount = row.wrongs[0].amount if row.wrongs else 0.0
    return row.worst, -amount, -(row.share or 0.0), row.job, natural(row.rank), row.host, natural(row.gpu)


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
    if row.unread is not None:
        yield Wrong(row.unread, *_UNREAD[row.unread])


_UNREAD = {
    Kind.UNREAD: (
        "memory not read",
        "This rank has loaded TensorFlow, but none of its memory was read: it uses none, or cannot be read.",
    ),
    Kind.NO_TENSORFLOW: (
        "no TensorFlow",
        "No TensorFlow has been seen in this rank: it has not loaded TensorFlow yet, or never does.",
    ),
}


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


def _silence(row: ClusterRow, silence: Silence, *, over: bool) -> Wrong:
    """Return why there are no new figures. *over*: nor are there any of the rows that end together with this one."""
    lasted = f" {format_duration(row.silent_s)}" if row.silent_s >= 1 else ""
    since = f" for{lasted}" if lasted else ""
    other = f"rank of job {safe(row.job)}" if row.rank else "GPU of this host"
    gone = f"It has none of any other {other}: probably all have ended." if over else f"Another {other} has not ended."
    told = {
        Silence.DOWN: f"The exporter has not answered Prometheus{since}. The figures are the last ones.",
        Silence.OLD: f"The figures are {format_duration(row.silent_s)} old: no newer ones are written.",
        Silence.GONE: f"Prometheus has had no figures{since}. {gone}",
    }[silence]
    figures: dict[str, float | str] = {"silence": silence.value, "silent_s": row.silent_s}
    return Wrong(Kind.GONE if over else Kind.SILENT, silence.value + lasted, told, figures, row.silent_s)


def _nearly_full(row: ClusterRow) -> Iterator[Wrong]:
    """Yield that nearly all of the limit is in use, if that is so."""
    share = row.in_use / row.limit if row.limit and row.in_use is not None else 0.0
    if share >= NEARLY_SHARE:
        told = f"{format_bytes(row.in_use)} are in use: {share * 100:.0f}% of the limit of {format_bytes(row.limit)}."
        yield Wrong(Kind.RUNS_OUT_SOON, f"full soon {share * 100:.0f}%", told, {"share": share}, share)


_UsualOf = dict[tuple[str, ...], Usual]
"""What is usual of a figure, by group of ranks."""


def _usual(rows: Iterable[ClusterRow], figure: Callable[[ClusterRow], float | None]) -> _UsualOf:
    """Return what is usual of a *figure* in each group with enough ranks."""
    groups: dict[tuple[str, ...], list[float]] = {}
    for row in rows:
        value = figure(row)
        if row.rank and row.job and row.silence is None and value is not None:
            groups.setdefault((*row.group, row.device), []).append(value)
    return {group: usual_of(values) for group, values in groups.items() if len(values) >= OUTLIER_RANKS}


def _beside_others(row: ClusterRow, sizes: _UsualOf, paces: _UsualOf) -> Iterator[Wrong]:
    """Yield how a rank differs from the others of its job: in memory, and in pace if it is slower."""
    group, rank, others = (*row.group, row.device), f"Rank {safe(row.rank)}", f"the ranks of job {safe(row.job)}"
    if row.in_use is not None and group in sizes:
        usual = sizes[group].value
        apart = int(row.in_use - usual)
        if sizes[group].excludes(row.in_use):
            size, side, sign = format_bytes(abs(apart)), *(("more", "+") if apart > 0 else ("less", "-"))
            told = f"{rank} has {size} {side} in use than the median of {others}, {format_bytes(int(usual))}."
            short = f"outlier {sign}{format_short(abs(apart))}"
            yield Wrong(Kind.OUTLIER, short, told, {"size": apart, "median": int(usual)}, abs(apart))
    if row.pace is not None and group in paces:
        usual = paces[group].value
        if row.pace < usual and paces[group].excludes(row.pace, least=0):
            share = 1 - row.pace / usual
            slower, last = f"{share * 100:.0f}% slower", format_duration(PACE_S)
            told = f"{rank} is {slower}: {format_rate(row.pace)} steps a second in the last {last}, "
            told += f"where the median of {others} is {format_rate(usual)}."
            yield Wrong(Kind.SLOW, slower, told, {"share": share, "pace": row.pace, "usual": usual}, share)


GONE_S = 600.0
"""A row is kept for this many seconds after Prometheus has no more figures for it."""


def _rank_of(pool: Pool) -> tuple[str, str, str]:
    return pool.instance, pool.run, pool.rank


_LEVELS: dict[str, Callable[[Pool], tuple[str, ...]]] = {
    **dict.fromkeys(("in_use", "unread", "limit"), lambda pool: pool),
    **dict.fromkeys(("used", "total", "busy", "info"), lambda pool: (pool.host, pool.uuid)),
    **dict.fromkeys(("pace", "starting", "run"), _rank_of),
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
        self._figures: dict[str, dict[tuple[str, ...], list[Sample]]] = {means: {} for means in _LEVELS}
        self._last: dict[Pool, tuple[ClusterRow, float]] = {}  # each row's last state with figures, and its time
        self._now = 0.0

    def take(self, means: Iterable[str], found: Iterable[Sample], now: float) -> None:
        """Store the answer *found* about *means*. *now* is the server's clock at that time."""
        self._now = max(now, self._now)
        for name in means:
            self._figures[name] = {}
        for one in found:
            name = one.metric.get("means", "")
            if name in _LEVELS:
                self._figures[name].setdefault(_LEVELS[name](pool_of(one.metric)), []).append(one)

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
        return judge(rows)

    def _number(self, means: str, key: tuple[str, ...]) -> float | None:
        found = self._figures[means].get(key)
        return found[0].number if found else None

    def _size(self, means: str, key: tuple[str, ...]) -> int | None:
        value = self._number(means, key)
        return int(value) if value is not None and value >= 0 else None

    def _text(self, means: str, key: tuple[str, ...], label: str) -> str:
        found = self._figures[means].get(key)
        return found[0].metric.get(label, "")[:LONGEST_LABEL] if found else ""

    def _row(self, pool: Pool) -> ClusterRow:
        card, ended = (pool.host, pool.uuid), (pool.instance, pool.run) in self._figures["ended"]
        old_s = max((one.number or 0.0 for one in self._figures["old"].get((pool.instance,), ())), default=None)
        return ClusterRow(
            *pool,
            user=self._text("run", _rank_of(pool), "user"),
            gpu=self._text("info", card, "index"),
            model=self._text("info", card, "name"),
            in_use=self._size("in_use", pool),
            limit=self._size("limit", pool),
            used=self._size("used", card),
            total=self._size("total", card),
            busy=self._number("busy", card),
            findings=self._findings(pool),
            silence=Silence.ENDED if ended else None if old_s is None else Silence.OLD,
            silent_s=old_s or 0.0,
            pace=self._number("pace", _rank_of(pool)),
        )

    def _findings(self, pool: Pool) -> tuple[tuple[str, str], ...]:
        """Return the findings about the GPU of *pool*, and those about no GPU in particular."""
        places = [(pool.instance, pool.run, uuid) for uuid in {pool.uuid, ""}]
        found = [one.metric for place in places for one in self._figures["finding"].get(place, ())]
        return tuple((one.get("key", "")[:LONGEST_LABEL], one.get("severity", "")) for one in found)

    def _silent(self, rows: Iterable[ClusterRow]) -> list[ClusterRow]:
        """Return rows that had figures and have none now, and rows for other targets that are down."""
        down = {key[0]: pool_of(found[0].metric) for key, found in self._figures["down"].items()}
        gone = self._gone(rows, down)
        told = {row.instance for row in (*rows, *gone)}
        told |= {at for at, pool in down.items() if pool.host in {row.host for row in gone if not row.instance}}
        # Of a target that was down before the first answer, only the name is known.
        silent = gone + [self._row(pool) for at, pool in down.items() if pool.named and at not in told]
        for row in silent[len(gone) :]:
            row.silence = Silence.DOWN
        return [row for row in silent if self._job in (None, row.job)]

    def _gone(self, rows: Iterable[ClusterRow], down: dict[str, Pool]) -> list[ClusterRow]:
        """Return the last state of the rows that are not among *rows*; *down* are the targets that are down."""
        present = {row.key for row in rows}
        again = {(row.host, row.uuid) for row in rows}
        hosts = {pool.host for pool in down.values()}
        gone = []
        for key, (row, seen) in list(self._last.items()):
            if key in present:
                continue
            # Any target of the host may report a GPU without a rank.
            is_down = row.instance in down if row.instance else row.host in hosts
            since = self._now - seen
            if not is_down and (since > GONE_S or (row.host, row.uuid) in again):
                del self._last[key]
                continue
            ended = (row.instance, row.run) in self._figures["ended"]
            silence = Silence.ENDED if ended else Silence.DOWN if is_down else Silence.GONE
            findings = self._findings(key) if ended else ()
            gone.append(msgspec.structs.replace(row, silence=silence, silent_s=since, findings=findings))
        return gone

    def _unread(self, rows: Iterable[ClusterRow]) -> Iterator[ClusterRow]:
        """Yield a row for each rank that runs but has reported no memory."""
        told = {_rank_of(key) for key in (*(row.key for row in rows), *self._last)}
        for pool in (Pool(*key) for key in self._figures["unread"]):
            who = _rank_of(pool)
            if who[2] and who not in told and (who[0],) not in self._figures["down"]:
                row = self._row(pool)
                if who not in self._figures["starting"]:
                    loaded = self._text("unread", pool, "tensorflow")
                    row.unread = Kind.UNREAD if loaded else Kind.NO_TENSORFLOW
                yield row
