"""The machine's own figures, from ``/proc/stat`` and ``/proc/meminfo``.

psutil has them too. To import it takes a megabyte, and a hundredth of a second at each start.
"""

from pathlib import Path

from tfmemtop.engine.sources.cgroup import machine_memory

_IDLE, _IOWAIT, _GUEST = 3, 4, 8  # places in the line of all processors; guests are counted as users too


def boot_time() -> float:
    """When the machine was started, in seconds since the epoch; 0 if the kernel does not tell."""
    return next((float(line.split()[1]) for line in _lines("stat") if line.startswith("btime ")), 0.0)


def available_memory() -> int:
    """Bytes that can be had without swapping; all that the machine has, where the kernel does not tell."""
    total = machine_memory()
    told = next((int(line.split()[1]) * 1024 for line in _lines("meminfo") if line.startswith("MemAvailable:")), total)
    return min(told, total)


class Processors:
    """How busy all processors together are."""

    def __init__(self) -> None:
        self._before = _times()

    def busy_percent(self) -> float:
        """Of the time since the call before, or since this was made; 0 if no time has passed."""
        before, self._before = self._before, _times()
        passed = [max(0, now - then) for now, then in zip(self._before, before, strict=False)]
        total = sum(passed[:_GUEST])
        return round(100 * (total - sum(passed[_IDLE : _IOWAIT + 1])) / total, 1) if total else 0.0


def _times() -> list[int]:
    """Ticks that the processors have spent in each way."""
    return next(([int(field) for field in line.split()[1:]] for line in _lines("stat") if line.startswith("cpu ")), [])


def _lines(name: str) -> list[str]:
    try:
        return Path("/proc", name).read_text().splitlines()
    except OSError:
        return []
