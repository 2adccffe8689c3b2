"""One process's figures, from a single read of ``/proc/PID/stat``.

psutil reads several files a process. With hundreds of processes each second, that would be most of
the engine's cost.
"""

import os
import time
from pathlib import Path
from typing import NamedTuple

from tfmemtop.bounds import LONGEST_TEXT, MOST_VARIABLES, MOST_WORDS

_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


class Stat(NamedTuple):
    """``started`` is in seconds since the machine's boot, ``cpu_s`` of all threads, ``rss`` in bytes."""

    name: str
    state: str
    ppid: int
    session: int
    cpu_s: float
    started: float
    rss: int

    @property
    def zombie(self) -> bool:
        """Whether it has ended and only waits for its parent to ask how."""
        return self.state in "ZX"


def read_stat(pid: int) -> Stat | None:
    """The figures of a process; ``None`` if it has gone."""
    try:
        descriptor = os.open(f"/proc/{pid}/stat", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        text = os.read(descriptor, 4096).decode(errors="replace")
    except OSError:
        return None  # it went between the two calls
    finally:
        os.close(descriptor)
    # The name stands in parentheses and may hold any character, parentheses too.
    head, _, tail = text.rpartition(")")
    fields = tail.split()
    return Stat(
        name=head.partition("(")[2],
        state=fields[0],
        ppid=int(fields[1]),
        session=int(fields[3]),
        cpu_s=(int(fields[11]) + int(fields[12])) / _TICKS,
        started=int(fields[19]) / _TICKS,
        rss=int(fields[21]) * _PAGE,
    )


def all_pids() -> set[int]:
    """Every process there is."""
    return {int(name) for name in os.listdir("/proc") if name.isdigit()}  # noqa: PTH208 (half the time)


def read_command(pid: int) -> list[str]:
    """The command line; empty for a kernel thread, a zombie, or a process that has gone."""
    return _read_strings(f"/proc/{pid}/cmdline")


def read_environment(pid: int) -> dict[str, str]:
    """The environment a process was started with.

    Raises:
        OSError: it has gone, or is somebody else's.
    """
    entries = Path(f"/proc/{pid}/environ").read_bytes().decode(errors="replace").split("\0")
    return dict(entry[:LONGEST_TEXT].split("=", 1) for entry in entries[:MOST_VARIABLES] if "=" in entry)


def _read_strings(path: str) -> list[str]:
    try:
        raw = Path(path).read_bytes()
    except OSError:
        return []
    texts = raw.decode(errors="replace").rstrip("\0").split("\0") if raw.strip(b"\0") else []
    return [text[:LONGEST_TEXT] for text in texts[:MOST_WORDS]]


def carries(pid: int, entry: bytes) -> bool:
    """Whether *entry*, as ``NAME=value``, stands in a process's environment; False if that cannot be read."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:  # noqa: PTH123 (each second, for many)
            return entry in file.read().split(b"\0")
    except OSError:
        return False


def since_boot() -> float:
    """Now, on the clock of :attr:`Stat.started`."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def descendants(root: int, mark: bytes | None = None, since: float = 0.0) -> set[int]:
    """Everything that descends from *root* now, zombies left out.

    With *mark*, also the processes started *since* then that have it in their environment, and their descendants:
    orphans belong to another parent.
    """
    children: dict[int, list[int]] = {}
    young: list[int] = []
    for pid in all_pids():
        stat = read_stat(pid)
        if stat is not None:
            # A zombie may still have children: kept as a link.
            children.setdefault(stat.ppid, []).append(-pid if stat.zombie else pid)
            if stat.started >= since and not stat.zombie:
                young.append(pid)
    found = _below(root, children)
    if mark is not None:
        for pid in young:
            if pid not in found and pid != root and carries(pid, mark):
                found |= {pid} | _below(pid, children)
    return found


def _below(root: int, children: dict[int, list[int]]) -> set[int]:
    found: set[int] = set()
    queue = [root]
    while queue:
        for pid in children.get(queue.pop(), ()):
            queue.append(abs(pid))
            if pid > 0:
                found.add(pid)
    return found
