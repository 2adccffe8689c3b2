"""What is wrong with the rows of an overview, and in which order that matters. Pure.

The findings of the exporters are the rules' own, made where the run is. The others need only the figures.
"""

from collections.abc import Iterable, Iterator, Sequence
from enum import IntEnum
from statistics import median

import msgspec

from tfmemtop.cluster.overview import Cluster, Row, Silence
from tfmemtop.rules.ranks import unusual, unusual_pace

NEARLY_SHARE = 0.95
"""Of the limit in use. Memory runs out soon from here on."""
SOON_S = 600.0
"""A rise that fills the limit within that time is called running out soon."""

OUTLIER_RANKS = 3
"""Fewer do not tell who is the outlier."""


class Kind(IntEnum):
    """What is wrong, what matters most first."""

    RAN_OUT = 0
    RUNS_OUT_SOON = 1
    LEAKING = 2
    FULL_BUT_IDLE = 3
    OUTLIER = 4
    SLOW = 5
    SILENT = 6
    OTHER = 7  # a finding of any other kind
    UNREAD = 8  # a rank that runs and has loaded TensorFlow, and nothing is known of its memory
    NO_TENSORFLOW = 9  # a rank that runs, and has not loaded it
    ENDED = 10  # the run has ended: nothing wrong, and nothing more comes


class Wrong(msgspec.Struct, frozen=True, gc=False):
    """One thing that is wrong.

    ``share`` of the limit is in use. ``rate`` is a rise in bytes a second, ``left_s`` the time until the limit at that
    rate. ``size`` is how far a rank is from the ``median`` of its job, negative if below. ``pace`` is in steps a
    second, and ``usual`` the median of its job. ``key`` is the finding's name, empty if only figures tell so.
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
    """A row with what is wrong with it, the worst first. ``remarks`` are findings that are for information only."""

    row: Row
    wrongs: tuple[Wrong, ...] = ()
    remarks: tuple[str, ...] = ()

    @property
    def worst(self) -> int:
        """The kind of the worst; higher than every kind if nothing is wrong."""
        return self.wrongs[0].kind if self.wrongs else len(Kind)


class Overview(msgspec.Struct, frozen=True):
    """All rows, those with the worst first; ``at`` is the time of the figures by the server's clock."""

    rows: tuple[Judged, ...] = ()
    at: float = 0.0
    hosts: int = 0
    jobs: int = 0
    wrong: int = 0
    """Rows with something wrong."""


_KINDS = {
    "allocation_failed": Kind.RAN_OUT,
    "crashed_when_full": Kind.RAN_OUT,
    "no_room": Kind.RUNS_OUT_SOON,
    "leak": Kind.LEAKING,
    "full_but_idle": Kind.FULL_BUT_IDLE,
    "reserved_unused": Kind.FULL_BUT_IDLE,
}
"""The kind of each finding that has one of its own."""


def overview(cluster: Cluster, now: float) -> Overview:
    """What *cluster* knows at *now*, judged and sorted."""
    rows = cluster.rows()
    medians = _Medians(rows)
    judged = sorted((_judged(row, medians) for row in rows), key=_order)
    return Overview(
        tuple(judged),
        now,
        len({row.host for row in rows}),
        len({row.job for row in rows if row.rank}),
        sum(1 for one in judged if one.worst < Kind.ENDED),
    )


def rising_as(judged: Judged, rate: float, left_s: float | None) -> Judged:
    """*judged* with the rise and the time left that were found in the history of its GPU, in place of the overview's.

    The history is looked at otherwise and over another time, so that the figures of one rise differ a little.
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
    """Of rows with the same kind of trouble, those first that have the least time left, or the most of it."""
    if not judged.wrongs:
        return 0.0, 0.0
    worst = judged.wrongs[0]
    left_s = float("inf") if worst.left_s is None else worst.left_s
    return left_s, -max(worst.share or 0.0, abs(worst.size or 0), worst.silent_s)


def natural(text: str) -> tuple[int, str]:
    """A key by which ``10`` comes after ``9``, and what is no number after all that are."""
    return (int(text), "") if text.isascii() and text.isdigit() and len(text) < 10 else (10**10, text)


def _group(row: Row) -> tuple[str, ...]:
    """The rows that are compared. Without a scheduler, the job may be Prometheus' name for targets of many users."""
    return row.job, row.user, row.run, row.device


class _Medians:
    """The median of the ranks of each group where there are enough, and how far from it they usually are."""

    def __init__(self, rows: Iterable[Row]) -> None:
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


def _judged(row: Row, medians: _Medians) -> Judged:
    remarks = tuple(dict.fromkeys(key for key, severity in row.findings if _is_remark(key, severity)))
    return Judged(row, tuple(_wrongs(row, medians)), remarks)


def _is_remark(key: str, severity: str) -> bool:
    """Whether a finding is information only. What the figures alone would call wrong is wrong however it is told."""
    return severity == "info" and key not in _KINDS


def _wrongs(row: Row, medians: _Medians) -> Sequence[Wrong]:
    if row.silence not in (None, Silence.ENDED):
        # What was wrong before may no longer be: nobody can tell.
        return [Wrong(Kind.SILENT, silence=row.silence, silent_s=row.silent_s)]
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


def _beside_others(row: Row, medians: _Medians) -> Iterator[Wrong]:
    """How a rank differs from the others of its job: in memory, and in pace if it is slower."""
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
