"""Whether the kernel killed something for want of host memory while a run lasted."""

from pathlib import Path


class OomCounter:
    """The kernel's counts of such kills, as they stood when this was made."""

    def __init__(self) -> None:
        self._before = _kills()

    def rose(self) -> bool:
        """Whether any count is higher now."""
        now = _kills()
        return any(count > self._before.get(where, count) for where, count in now.items())


def _kills() -> dict[str, int]:
    counts = {}
    for path in (Path("/proc/vmstat"), *_memory_groups()):
        try:
            lines = path.read_text().splitlines()
        except OSError:
            continue  # no such accounting here: the other count remains
        for line in lines:
            name, _, value = line.partition(" ")
            if name == "oom_kill" and value.isdigit():
                counts[str(path)] = int(value)
    return counts


def _memory_groups() -> list[Path]:
    """Where the memory control group of this process, which the script inherits, counts its kills."""
    try:
        groups = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return []
    paths = []
    for group in groups:
        number, controllers, path = group.split(":", 2)
        if number == "0":
            paths.append(Path("/sys/fs/cgroup", path.lstrip("/"), "memory.events"))
        elif "memory" in controllers.split(","):
            # In a container the path may be the host's, while only the container's own is mounted.
            root = Path("/sys/fs/cgroup/memory")
            paths += [root / at / "memory.oom_control" for at in (path.lstrip("/"), "")]
    return paths
