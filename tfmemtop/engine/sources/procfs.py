"""Reads a process's figures with a single read of ``/proc/PID/stat``, and other things of ``/proc``.

psutil reads several files for each process. With hundreds of processes each second, that would be most of
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
    """The figures of a process.

    ``started`` is in seconds since the machine's boot. ``cpu_s`` is the CPU time of all threads. ``rss`` is in bytes.
    """

    name: str
    state: str
    ppid: int
    session: int
    cpu_s: float
    started: float
    rss: int

    @property
    def zombie(self) -> bool:
        """Whether the process has ended, but its parent has not collected its exit status yet."""
        return self.state in "ZX"


def read_stat(pid: int) -> Stat | None:
    """Return the figures of a process; ``None`` if it has ended."""
    try:
        descriptor = os.open(f"/proc/{pid}/stat", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        text = os.read(descriptor, 4096).decode(errors="replace")
    except OSError:
        return None  # the process ended between the two calls
    finally:
        os.close(descriptor)
    # The name is in parentheses and may contain any character, also parentheses.
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
    """Return the numbers of all processes."""
    return {int(name) for name in os.listdir("/proc") if name.isdigit()}  # noqa: PTH208 (half the time)


def read_command(pid: int) -> list[str]:
    """Return the command line; empty for a kernel thread, a zombie, or a process that has ended."""
    return _read_strings(f"/proc/{pid}/cmdline")


def read_environment(pid: int) -> dict[str, str]:
    """Return the environment with which a process was started.

    Raises:
        OSError: the process has ended, or belongs to another user.
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
    """Return whether a process's environment contains *entry*, as ``NAME=value``; False if it cannot be read."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:  # noqa: PTH123 (each second, for many)
            return entry in file.read().split(b"\0")
    except OSError:
        return False


def since_boot() -> float:
    """Return the present time in seconds since the machine's boot, as in :attr:`Stat.started`."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def descendants(root: int, mark: bytes | None = None, since: float = 0.0) -> set[int]:
    """Return all processes that descend from *root* now, except zombies.

    With *mark*, also the processes that have this entry in their environment and started at *since* or later, in
    seconds since boot, and their descendants. This finds orphans, which have another parent.
    """
    children: dict[int, list[int]] = {}
    young: list[int] = []
    for pid in all_pids():
        stat = read_stat(pid)
        if stat is not None:
            # A zombie may still have children, so it is kept as a link to them.
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
