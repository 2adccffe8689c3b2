"""A row of the cluster's table: a rank on a GPU, and what is wrong with it."""

from enum import Enum, IntEnum
from typing import NamedTuple

import msgspec

from tfmemtop.events.machine import is_cpu
from tfmemtop.safe import safe

LONGEST_LABEL = 128
"""Characters of a label that are kept."""


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
    whole card. ``pace`` is in steps per second. ``silent_s`` is the least number of
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
    texts = {name: text[:LONGEST_LABEL] for name, text in labels.items()}
    instance = texts.get("instance", "")
    host, job, rank = (texts.get(f"exported_{name}") or texts.get(name, "") for name in ("host", "job", "rank"))
    uuid, device, run = (texts.get(name, "") for name in ("uuid", "device", "run"))
    return Pool(instance, host or instance.rpartition(":")[0] or instance, uuid, device, run, job, rank)


def natural(text: str) -> tuple[int, str]:
    """Return a sort key by which ``10`` comes after ``9``, and texts that are not numbers come last."""
    return (int(text), "") if text.isascii() and text.isdigit() and len(text) < 10 else (10**10, text)
