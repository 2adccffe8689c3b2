"""Finds what is wrong with the rows of an overview, and sorts the rows by it. Pure.

Some problems come as findings from the exporters: the rules made them on the machine of the run. The others are found
here, from the figures only.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from enum import IntEnum
from statistics import median

import msgspec

from tfmemtop.cluster.overview import Cluster, ClusterRow, Silence
from tfmemtop.findings.ranks import unusual, unusual_pace

NEARLY_SHARE = 0.95
"""If this share of the limit is in use, memory runs out soon."""
SOON_S = 600.0
"""If a rise fills the limit within this many seconds, memory runs out soon."""

OUTLIER_RANKS = 3
"""The smallest number of ranks to compare. With fewer, it is not clear which of them is the outlier."""


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


class Wrong(msgspec.Struct, frozen=True, gc=False):
    """One thing that is wrong.

    ``share`` is the part of the limit that is in use, or of the GPU's memory for ``FULL_BUT_IDLE``. ``rate`` is a rise
    in bytes per second, ``left_s`` the seconds until the limit is reached at that rate. ``size`` is how many bytes a
    rank is away from the ``median`` of its job; it is negative if the rank uses less. ``pace`` is in steps per second,
    and ``usual`` the median of the job; for ``SLOW``, ``share`` is how much slower the rank is. ``key`` is the name of
    the finding, empty if only the figures show the problem.
    """

    kind: Kind
    key: str = ""
    share: float | None = None
    rate: float | None = None
    left_s: float | None = None
    size: int | None = None
    median: int | None = None
    pace: float | None = None
    usual: float | None = None
    silence: Silence | None = None
    silent_s: float = 0.0


class Judged(msgspec.Struct, frozen=True, gc=False):
    """A row and its problems, the worst first. ``remarks`` are the keys of findings that are only information."""

    row: ClusterRow
    wrongs: tuple[Wrong, ...] = ()
    remarks: tuple[str, ...] = ()

    @property
    def worst(self) -> int:
        """The kind of the worst problem; higher than every kind if there is none."""
        return self.wrongs[0].kind if self.wrongs else len(Kind)


class Overview(msgspec.Struct, frozen=True):
    """All rows, those with the worst problems first.

    ``at`` is the time of the figures by the server's clock, in seconds since 1970.
    """

    rows: tuple[Judged, ...] = ()
    at: float = 0.0
    hosts: int = 0
    jobs: int = 0
    wrong: int = 0
    """The number of rows with a problem."""


_KINDS = {
    "allocation_failed": Kind.RAN_OUT,
    "crashed_when_full": Kind.RAN_OUT,
    "no_room": Kind.RUNS_OUT_SOON,
    "leak": Kind.LEAKING,
    "full_but_idle": Kind.FULL_BUT_IDLE,
    "reserved_unused": Kind.FULL_BUT_IDLE,
}
"""The kind of each finding that has one of its own. The other findings are ``OTHER``."""


def overview(cluster: Cluster, now: float) -> Overview:
    """Return the rows that *cluster* has at the time *now*, with their problems, and sorted by them."""
    rows = cluster.rows()
    medians = _Medians(rows)
    going_on = {_job_or_host(row) for row in rows if row.silence not in (Silence.GONE, Silence.ENDED)}
    judged = sorted((_judged(row, medians, going_on) for row in rows), key=_order)
    return Overview(
        tuple(judged),
        now,
        len({row.host for row in rows}),
        len({row.job for row in rows if row.rank}),
        sum(1 for one in judged if one.worst < Kind.GONE),
    )


def rising_as(judged: Judged, rate: float, left_s: float | None) -> Judged:
    """Return *judged* with *rate* and *left_s* in place of the overview's; they come from the history of its GPU.

    The history is evaluated in another way and over another time, so the two figures for one rise differ a little.
    """
    return msgspec.structs.replace(judged, wrongs=tuple(_rising_as(one, rate, left_s) for one in judged.wrongs))


def _rising_as(wrong: Wrong, rate: float, left_s: float | None) -> Wrong:
    if wrong.kind is Kind.LEAKING or (wrong.kind is Kind.RUNS_OUT_SOON and wrong.rate is not None):
        return msgspec.structs.replace(wrong, rate=rate, left_s=left_s)
    return wrong


def _order(judged: Judged) -> tuple[object, ...]:
    row = judged.row
    return judged.worst, *_urgency(judged), -(row.share or 0.0), row.job, natural(row.rank), row.host, natural(row.gpu)


def _urgency(judged: Judged) -> tuple[float, float]:
    """Return the key that sorts rows with the same kind of problem: least time left first, then largest amount."""
    if not judged.wrongs:
        return 0.0, 0.0
    worst = judged.wrongs[0]
    left_s = float("inf") if worst.left_s is None else worst.left_s
    return left_s, -max(worst.share or 0.0, abs(worst.size or 0), worst.silent_s)


def natural(text: str) -> tuple[int, str]:
    """Return a sort key by which ``10`` comes after ``9``, and texts that are not numbers come last."""
    return (int(text), "") if text.isascii() and text.isdigit() and len(text) < 10 else (10**10, text)


def _group(row: ClusterRow) -> tuple[str, ...]:
    """Return the key of the rows that are compared with each other.

    The job alone is not enough. Without a scheduler it may be Prometheus's name for targets of many users.
    """
    return row.job, row.user, row.run, row.device


class _Medians:
    """For each group with enough ranks: the median, and the median distance from it, of memory and of pace."""

    def __init__(self, rows: Iterable[ClusterRow]) -> None:
        sizes: _Groups = {}
        paces: _Groups = {}
        for row in rows:
            if row.rank and row.job and row.silence is None:
                if row.in_use is not None:
                    sizes.setdefault(_group(row), []).append(row.in_use)
                if row.pace is not None:
                    paces.setdefault(_group(row), []).append(row.pace)
        self.of_size, self.of_pace = _middles(sizes), _middles(paces)


_Groups = dict[tuple[str, ...], list[float]]


def _middles(groups: _Groups) -> dict[tuple[str, ...], tuple[float, float]]:
    middles = {group: median(values) for group, values in groups.items() if len(values) >= OUTLIER_RANKS}
    return {group: (usual, median(abs(one - usual) for one in groups[group])) for group, usual in middles.items()}


def _job_or_host(row: ClusterRow) -> tuple[str, ...]:
    """Return the key of the rows that usually end together: the ranks of a job, or the GPUs of a host."""
    return (row.job, row.user, row.run) if row.rank else (row.host,)


def _judged(row: ClusterRow, medians: _Medians, going_on: Collection[tuple[str, ...]]) -> Judged:
    remarks = tuple(dict.fromkeys(key for key, severity in row.findings if _is_remark(key, severity)))
    return Judged(row, tuple(_wrongs(row, medians, going_on)), remarks)


def _is_remark(key: str, severity: str) -> bool:
    """Return whether a finding is only information.

    A finding of ``_KINDS`` never is, whatever its severity: the figures alone would show such a problem, too.
    """
    return severity == "info" and key not in _KINDS


def _wrongs(row: ClusterRow, medians: _Medians, going_on: Collection[tuple[str, ...]]) -> Sequence[Wrong]:
    if row.silence not in (None, Silence.ENDED):
        # The earlier problems may be gone by now; that is not known.
        over = row.silence is Silence.GONE and _job_or_host(row) not in going_on
        return [Wrong(Kind.GONE if over else Kind.SILENT, silence=row.silence, silent_s=row.silent_s)]
    wrongs = [
        Wrong(_KINDS.get(key, Kind.OTHER), key) for key, severity in row.findings if not _is_remark(key, severity)
    ]
    if row.silence is Silence.ENDED:
        return sorted([*wrongs, Wrong(Kind.ENDED, silence=row.silence)], key=lambda wrong: wrong.kind)
    if row.rank and row.in_use is None and not row.starting:
        wrongs.append(Wrong(Kind.UNREAD if row.tensorflow else Kind.NO_TENSORFLOW))
    told = {wrong.kind for wrong in wrongs}
    share = row.in_use / row.limit if row.in_use is not None and row.limit else None
    room = row.limit - row.in_use if row.limit is not None and row.in_use is not None else None
    left_s = max(0, room) / row.rising if row.rising and room is not None else None
    if (left_s is not None and left_s <= SOON_S) or (share is not None and share >= NEARLY_SHARE):
        wrongs = [wrong for wrong in wrongs if wrong.kind is not Kind.RUNS_OUT_SOON]
        wrongs.append(Wrong(Kind.RUNS_OUT_SOON, share=share, rate=row.rising, left_s=left_s))
    elif row.rising is not None:
        wrongs = [wrong for wrong in wrongs if wrong.kind is not Kind.LEAKING]
        wrongs.append(Wrong(Kind.LEAKING, "leak" if Kind.LEAKING in told else "", rate=row.rising, left_s=left_s))
    if row.idle and Kind.FULL_BUT_IDLE not in told:
        wrongs.append(Wrong(Kind.FULL_BUT_IDLE, share=row.share))
    wrongs += _beside_others(row, medians)
    return sorted(wrongs, key=lambda wrong: wrong.kind)


def _beside_others(row: ClusterRow, medians: _Medians) -> Iterator[Wrong]:
    """Yield how a rank differs from the others of its job: in memory, and in pace if it is slower."""
    if not row.rank:
        return
    if row.in_use is not None and (middle := medians.of_size.get(_group(row))):
        usual, spread = middle
        if unusual(row.in_use - usual, usual, spread):
            yield Wrong(Kind.OUTLIER, size=int(row.in_use - usual), median=int(usual))
    if row.pace is not None and (middle := medians.of_pace.get(_group(row))):
        usual, spread = middle
        if row.pace < usual and unusual_pace(row.pace - usual, usual, spread):
            yield Wrong(Kind.SLOW, share=1 - row.pace / usual, pace=row.pace, usual=usual)
