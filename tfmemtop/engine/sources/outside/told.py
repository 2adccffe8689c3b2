"""Makes the events about a process that is read from outside."""

import os

from tfmemtop.agent.layouts import Figures
from tfmemtop.engine.sources.outside.look import About
from tfmemtop.engine.sources.procfs import read_command, read_stat
from tfmemtop.events import Allocator, Outside


def outside_event(pid: int, about: About, t: float) -> Outside:
    """Return the event that reports how far the reading of process *pid* has come."""
    stat = read_stat(pid)
    return Outside(
        t=t,
        pid=pid,
        state=about.state,
        detail=about.detail,
        ppid=stat.ppid if stat else 0,
        argv=read_command(pid),
        python=about.python,
        executable=_link(f"/proc/{pid}/exe"),
        tensorflow=about.tensorflow,
        tensorflow_path=_text(about.folder) if about.folder else None,
        build=about.build,
        damage=about.damage,
    )


def allocator_event(pid: int, device: str, name: str, figures: Figures, t: float, high: int | None = None) -> Allocator:
    """Return the event of one reading of one pool."""
    return Allocator(
        t=t,
        pid=pid,
        device=device,
        allocator=name,
        in_use=figures.in_use,
        peak=figures.peak,
        pool=figures.pool,
        limit=figures.limit,
        peak_pool=figures.peak_pool,
        allocations=figures.allocations,
        high=high,
    )


def working_folder(pid: int) -> str:
    """Return the working folder of process *pid*; empty where it cannot be read."""
    return _link(f"/proc/{pid}/cwd")


def _link(path: str) -> str:
    try:
        return _text(os.readlink(path))  # noqa: PTH115 (it may point to no path)
    except OSError:
        return ""


def _text(path: str) -> str:
    """Return *path* as valid UTF-8."""
    return os.fsencode(path).decode(errors="replace")
