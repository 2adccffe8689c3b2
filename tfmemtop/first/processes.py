"""Reads the processes on the cards from ``/proc``: the rows of the first picture's table."""

import os
import pwd
import time
from typing import NamedTuple

from tfmemtop.first.cards import Card
from tfmemtop.programs import program

_FIRST_NAMESPACE = "pid:[4026531836]"


class CardProcess(NamedTuple):
    """A process on a card; ``held`` and ``rss`` in bytes. What cannot be read is ``None``, as on the screen."""

    gpu: int
    pid: int
    user: str | None
    held: int
    rss: int | None
    elapsed_s: float | None
    program: str


def rows_of(cards: list[Card]) -> list[CardProcess] | None:
    """Return a row for each process on each card, the largest of a card first.

    Return ``None`` in a PID namespace of its own, as in a container: the driver's PIDs may mean other processes there.
    """
    try:
        if os.readlink("/proc/self/ns/pid") != _FIRST_NAMESPACE:  # noqa: PTH115 (as in begin.py)
            return None
    except OSError:
        return None
    booted = _booted()
    return [
        _row(card.number, pid, held, booted)
        for card in cards
        for pid, held in sorted(card.processes.items(), key=lambda item: (-item[1], item[0]))
    ]


def _row(gpu: int, pid: int, held: int, booted: float) -> CardProcess:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123
            head, _, tail = file.read(4096).decode(errors="replace").rpartition(")")
        with open(f"/proc/{pid}/cmdline", "rb") as file:  # noqa: PTH123
            words = file.read(65536).decode(errors="replace").rstrip("\0").split("\0")
        uid = os.stat(f"/proc/{pid}").st_uid  # noqa: PTH116
    except OSError:
        return CardProcess(gpu, pid, None, held, None, None, "")
    fields = tail.split()
    return CardProcess(
        gpu=gpu,
        pid=pid,
        user=_user(uid),
        held=held,
        rss=int(fields[21]) * os.sysconf("SC_PAGE_SIZE"),
        elapsed_s=time.time() - booted - int(fields[19]) / os.sysconf("SC_CLK_TCK"),
        program=" ".join(program(words if any(words) else [f"[{head.partition('(')[2]}]"])),
    )


def _user(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def _booted() -> float:
    """Return when the machine was started, in seconds since the epoch; 0 if that is not known."""
    with open("/proc/stat", "rb") as file:  # noqa: PTH123
        return next((float(line.split()[1]) for line in file if line.startswith(b"btime")), 0.0)
