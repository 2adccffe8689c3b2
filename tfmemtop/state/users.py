"""Processes summed by user. Pure."""

from collections.abc import Iterable

import msgspec

from tfmemtop.state.process_rows import ProcessRow


class Sum(msgspec.Struct):
    """A sum of figures, some of which may be unknown.

    ``total`` is ``None`` if all are unknown. ``partial`` is true if only some are.
    """

    total: float | None = None
    partial: bool = False
    _any_unknown: bool = False

    def add(self, value: float | None) -> None:
        """Add one more figure."""
        if value is None:
            self._any_unknown = True
        else:
            self.total = (self.total or 0) + value
        self.partial = self._any_unknown and self.total is not None


class UserRow(msgspec.Struct):
    """Sums over all processes of ``user``: bytes, percent of the SMs, and percent of one core.

    ``processes`` is the number of living processes. ``ended`` processes have ended and have no memory.
    """

    user: str
    processes: int = 0
    ended: int = 0
    gpus: set[int] = msgspec.field(default_factory=set)
    gpu_memory: Sum = msgspec.field(default_factory=Sum)
    sm: Sum = msgspec.field(default_factory=Sum)
    cpu: Sum = msgspec.field(default_factory=Sum)
    rss: Sum = msgspec.field(default_factory=Sum)
    in_use: Sum = msgspec.field(default_factory=Sum)


def users(rows: Iterable[ProcessRow]) -> list[UserRow]:
    """Return the users of *rows*, the one with most GPU memory first. Processes that have ended have no memory."""
    found: dict[str, UserRow] = {}
    seen: set[int] = set()
    for row in rows:
        user = found.setdefault(row.user, UserRow(row.user))
        if row.gone:
            user.ended += row.pid not in seen
            seen.add(row.pid)
            continue
        if row.gpu is not None:
            user.gpus.add(row.gpu)
            user.gpu_memory.add(row.gpu_memory)
            user.sm.add(row.sm)
        if row.in_use is not None:
            user.in_use.add(row.in_use)
        if row.pid not in seen:  # a process on several GPUs has a row on each
            seen.add(row.pid)
            user.processes += 1
            user.cpu.add(row.cpu)
            user.rss.add(row.rss)
    return sorted(found.values(), key=lambda user: (-(user.gpu_memory.total or 0), -(user.rss.total or 0), user.user))
