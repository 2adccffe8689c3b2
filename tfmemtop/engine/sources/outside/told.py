"""Makes the events about a process that is read from outside."""

from tfmemtop.agent.layouts import Figures
from tfmemtop.engine.sources.outside.look import About
from tfmemtop.engine.sources.processes import executable, find, read_command, text_of
from tfmemtop.events import Allocator, Outside


def outside_event(pid: int, about: About, t: float) -> Outside:
    """Return the event that reports how far the reading of process *pid* has come."""
    process = find(pid)
    return Outside(
        t=t,
        pid=pid,
        state=about.state,
        detail=about.detail,
        ppid=process.ppid if process else 0,
        argv=read_command(pid),
        python=about.python,
        executable=_executable(pid),
        tensorflow=about.tensorflow,
        tensorflow_path=text_of(about.folder) if about.folder else None,
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


def _executable(pid: int) -> str:
    """Return the path of the program of process *pid*; empty where it cannot be read."""
    try:
        return text_of(executable(pid))
    except OSError:
        return ""
