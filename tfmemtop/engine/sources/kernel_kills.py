"""Detects that the kernel killed a process during a run because host memory ran out."""

from pathlib import Path

from tfmemtop.engine.sources.cgroup import hierarchies


class OomCounter:
    """The kernel's counts of such kills at the time when this object was created. The files are read below *root*."""

    def __init__(self, root: Path = Path("/")) -> None:
        # The script inherits this process's control groups.
        groups = [group.folders[0] / group.kills for group in hierarchies(root) if group.folders]
        self._paths = [root / "proc/vmstat", *groups]
        self._before = self._counts()

    def rose(self) -> bool:
        """Return whether any count is higher now."""
        return any(count > self._before.get(path, count) for path, count in self._counts().items())

    def _counts(self) -> dict[Path, int]:
        counts = {}
        for path in self._paths:
            try:
                lines = path.read_text().splitlines()
            except OSError:
                continue  # no such accounting here: the other counts remain
            for line in lines:
                name, _, value = line.partition(" ")
                if name == "oom_kill" and value.isdigit():
                    counts[path] = int(value)
        return counts
