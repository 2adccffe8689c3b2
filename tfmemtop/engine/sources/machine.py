"""The machine's own figures, from ``/proc/stat`` and ``/proc/meminfo``.

psutil has them too, but importing it takes a megabyte, and a hundredth of a second at each start.
"""

from pathlib import Path

from tfmemtop.engine.sources.cgroup import machine_memory

_IDLE, _IOWAIT, _GUEST = 3, 4, 8  # fields in the line of all processors; guests' time is in the users' too


def boot_time() -> float:
    """Return when the machine was started, in seconds since the epoch; 0 if the kernel does not report it."""
    return next((float(line.split()[1]) for line in _lines("stat") if line.startswith("btime ")), 0.0)


def available_memory() -> int:
    """Return the bytes that are available without swapping.

    Where the kernel does not report them, this is all memory of the machine.
    """
    total = machine_memory()
    told = next((int(line.split()[1]) * 1024 for line in _lines("meminfo") if line.startswith("MemAvailable:")), total)
    return min(told, total)


class Processors:
    """The load of all processors together."""

    def __init__(self) -> None:
        self._before = _times()

    def busy_percent(self) -> float:
        """Return the percentage of time in which the processors were busy; 0 if no time has passed.

        The time begins at the previous call, or when this object was created.
        """
        before, self._before = self._before, _times()
        passed = [max(0, now - then) for now, then in zip(self._before, before, strict=False)]
        total = sum(passed[:_GUEST])
        return round(100 * (total - sum(passed[_IDLE : _IOWAIT + 1])) / total, 1) if total else 0.0


def _times() -> list[int]:
    """Return the ticks that the processors have spent in each state; empty if they cannot be read."""
    return next(([int(field) for field in line.split()[1:]] for line in _lines("stat") if line.startswith("cpu ")), [])


def _lines(name: str) -> list[str]:
    try:
        return Path("/proc", name).read_text().splitlines()
    except OSError:
        return []
