"""How much host memory this process may use: all of the machine's, or less where a cgroup limits it.

Containers, batch systems and systemd limit memory by cgroups, of version 1 or 2. A limit applies to all cgroups below
it. So the smallest limit counts, among those of the process's own cgroup and of every ancestor that is visible here.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from tfmemtop.engine.sources.processes import machine_memory
from tfmemtop.limits import HostOwner
from tfmemtop.units import MIB

_CONTAINERS = ("docker", "kubepods", "libpod", "containerd", "lxc", "crio", "podman", "machine.slice", "garden")
_JOBS = ("slurm", "job_", "pbs", "lsf", "htcondor")
_CONTAINER_FILES = (".dockerenv", "run/.containerenv", "run/systemd/container")
_NEGLIGIBLE = MIB
"""Bytes. A smaller limit is ignored, since no process of tfmemtop could run under it."""


class Limit(NamedTuple):
    """The memory limit of a cgroup: ``size`` bytes, of which ``used`` bytes are taken. ``folder`` is the cgroup's.

    ``used`` does not include the file cache that the kernel frees first. It is ``None`` where it cannot be read.
    """

    size: int
    used: int | None
    owner: HostOwner
    folder: Path


class HostMemory(NamedTuple):
    """The host memory that this process may use, in bytes.

    ``machine`` is the memory of the machine. ``total`` is the smallest of that and of all limits. ``owner`` is what
    that smallest figure belongs to: the machine, or the cgroup of a container or a job, or another cgroup.
    """

    total: int
    owner: HostOwner
    machine: int


def host_memory(root: Path = Path("/")) -> HostMemory:
    """Return the host memory of which shares are computed. The files of the kernel are read below *root*."""
    machine = machine_memory()
    smallest = min(limits(machine, hierarchies(root)), key=lambda limit: limit.size, default=None)
    return HostMemory(machine, HostOwner.MACHINE, machine) if smallest is None else HostMemory(*smallest[::2], machine)


def available(free: int, found: list[Limit]) -> int:
    """Return the bytes that are still available if the machine has *free* bytes and the limits *found* apply."""
    return max(0, min([free, *(limit.size - limit.used for limit in found if limit.used is not None)]))


def limits(machine: int, hierarchies: Iterable["Hierarchy"]) -> list[Limit]:
    """Read every memory limit in *hierarchies*, and return those that are smaller than *machine* bytes."""
    found = []
    for hierarchy in hierarchies:
        for folder in hierarchy.folders:
            size = _number(folder / hierarchy.limit)
            # "max" is not a number. In version 1, a number larger than any machine's memory means "no limit".
            if size is not None and _NEGLIGIBLE <= size < machine:
                found.append(Limit(size, _used(folder, hierarchy), _owner(folder, hierarchy), folder))
    return found


class Hierarchy(NamedTuple):
    """One tree of cgroups, with the names of the files that each cgroup has.

    ``own`` is the process's cgroup as the kernel names it. ``folders`` are those from the process's own cgroup up to
    the root. ``contained`` is true if files that container engines leave show that this is a container.
    """

    own: str
    contained: bool
    folders: list[Path]
    limit: str
    usage: str
    cache: str  # key in memory.stat of the file cache that the kernel frees first
    kills: str  # the file that counts the processes that the kernel killed because memory ran out


def hierarchies(root: Path = Path("/")) -> Iterator[Hierarchy]:
    """Yield the trees of cgroups that limit the memory of this process. The files are read below *root*."""
    mounts = list(_mounts(root))
    contained = any((root / name).exists() for name in _CONTAINER_FILES)
    for line in _lines(root / "proc/self/cgroup"):
        _, _, rest = line.partition(":")
        controllers, _, own = rest.partition(":")
        if controllers == "":
            names = ("memory.max", "memory.current", "inactive_file", "memory.events")
            places = [(inside, at) for kind, inside, at in mounts if kind == "cgroup2"] or [("/", "/sys/fs/cgroup")]
        elif "memory" in controllers.split(","):
            names = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file", "memory.oom_control")
            places = [(inside, at) for kind, inside, at in mounts if kind == "memory"]
            places = places or [("/", "/sys/fs/cgroup/memory")]
        else:
            continue
        for inside, at in places:
            mounted = root / at.lstrip("/")
            yield Hierarchy(own, contained, _up(mounted, _below(own, inside)), *names)


def _below(own: str, inside: str) -> PurePosixPath:
    """Return the path of the process's cgroup *own*, relative to a mount that shows the tree from *inside* on.

    In a container, *own* may be the host's path although only the container's part of the tree is mounted. It may
    also begin with ``/..``, for a cgroup above the mount. In both cases the path is empty: the root of the mount is
    the nearest cgroup that is visible.
    """
    path = PurePosixPath(own)
    if ".." not in path.parts and path.is_relative_to(inside):
        return path.relative_to(inside)
    return PurePosixPath()


def _up(mounted: Path, below: PurePosixPath) -> list[Path]:
    folders = [mounted.joinpath(*below.parts[:count]) for count in range(len(below.parts), -1, -1)]
    return [folder for folder in folders if folder.is_dir()]


def _mounts(root: Path) -> Iterator[tuple[str, str, str]]:
    """Yield of each mount: ``cgroup2`` or ``memory``, the part of the tree that is mounted, and where it is mounted."""
    for line in _lines(root / "proc/self/mountinfo"):
        before, dash, after = line.partition(" - ")
        fields, kind = before.split(" "), after.split(" ")
        if not dash or len(fields) < 5 or len(kind) < 3:
            continue
        inside, at = (field.replace("\\040", " ") for field in fields[3:5])
        if kind[0] == "cgroup2":
            yield "cgroup2", inside, at
        elif kind[0] == "cgroup" and "memory" in kind[2].split(","):
            yield "memory", inside, at


def _owner(folder: Path, hierarchy: Hierarchy) -> HostOwner:
    path = f"{folder.relative_to(hierarchy.folders[-1])}{hierarchy.own}".lower()
    if any(word in path for word in _JOBS):
        return HostOwner.JOB
    if hierarchy.contained or any(word in path for word in _CONTAINERS) or _is_namespace_root(hierarchy):
        return HostOwner.CONTAINER
    return HostOwner.CGROUP


def _is_namespace_root(hierarchy: Hierarchy) -> bool:
    """Return whether the visible root of the tree has a limit. Only the root of a cgroup namespace can have one."""
    return hierarchy.own == "/" and _number(hierarchy.folders[-1] / hierarchy.limit) is not None


def _used(folder: Path, hierarchy: Hierarchy) -> int | None:
    usage = _number(folder / hierarchy.usage)
    if usage is None:
        return None
    for line in _lines(folder / "memory.stat"):
        name, _, value = line.partition(" ")
        if name == hierarchy.cache and value.isdigit():
            return max(0, usage - int(value))
    return usage


def _number(path: Path) -> int | None:
    text = next(iter(_lines(path)), "").strip()
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 20 else None


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(errors="replace").splitlines()
    except OSError:
        return []


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
            for line in _lines(path):  # none if there is no such accounting here: the other counts remain
                name, _, value = line.partition(" ")
                if name == "oom_kill" and value.isdigit():
                    counts[path] = int(value)
        return counts
