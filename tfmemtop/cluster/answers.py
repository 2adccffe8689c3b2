"""Makes the rows of the cluster's table from the answers of Prometheus. Pure."""

from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec

from tfmemtop.cluster.client import Series
from tfmemtop.cluster.judgement import judge
from tfmemtop.cluster.rows import LONGEST_LABEL, ClusterRow, Kind, Pool, Silence, natural, pool_of

GONE_S = 600.0
"""A row is kept for this many seconds after Prometheus has no more figures for it."""


def _rank_of(pool: Pool) -> tuple[str, str, str]:
    return pool.instance, pool.run, pool.rank


_LEVELS: dict[str, Callable[[Pool], tuple[str, ...]]] = {
    **dict.fromkeys(("in_use", "unread", "limit", "rising", "was"), lambda pool: pool),
    **dict.fromkeys(("used", "was_used", "total", "busy", "info", "idle"), lambda pool: (pool.host, pool.uuid)),
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
            rising=self._number("rising", pool),
            idle=card in self._figures["idle"],
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
        silent = gone + self._down_before([pool for at, pool in down.items() if at not in told])
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
            gone.append(msgspec.structs.replace(row, silence=silence, silent_s=since, findings=findings, rising=None))
        return gone

    def _down_before(self, down: Sequence[Pool]) -> list[ClusterRow]:
        """Return rows for targets that were *down* before the first answer: their last figures, or their names."""
        instances = {pool.instance for pool in down}
        last: dict[tuple[str, ...], Pool] = {}
        for pool in sorted((Pool(*key) for key in self._figures["was"]), key=lambda pool: natural(pool.run)):
            if pool.instance in instances:  # the newest run replaces those before
                last[pool.instance, pool.uuid, pool.device, pool.rank] = pool
        had = {pool.instance for pool in last.values()}
        rows = [
            self._row(pool) for pool in (*last.values(), *(at for at in down if at.named and at.instance not in had))
        ]
        for row in rows:
            row.in_use, row.used = self._size("was", row.key), self._size("was_used", (row.host, row.uuid))
            row.busy, row.silence = None, Silence.DOWN
        return rows

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
