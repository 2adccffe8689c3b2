"""The memory limit that holds, read from files as container engines, batch systems and systemd lay them out."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.starting import PROGRAM, ran
from tfmemtop.engine.sources.cgroup import OomCounter, available, hierarchies, host_memory, limits
from tfmemtop.engine.sources.processes import machine_memory
from tfmemtop.limits import HostOwner

GIB = 1 << 30
HOST = 64 * GIB

V1_MOUNT = "32 31 0:29 {inside} /sys/fs/cgroup/memory ro,nosuid - cgroup cgroup rw,memory"
V2_MOUNT = "30 23 0:26 {inside} /sys/fs/cgroup ro,nosuid,nodev - cgroup2 cgroup rw,nsdelegate"
V1 = "/sys/fs/cgroup/memory"
V2 = "/sys/fs/cgroup"
NO_LIMIT_V1 = "9223372036854771712"

# name: (/proc/self/cgroup, mountinfo, files, the limit that holds, the owner of that limit)
LAYOUTS: dict[str, tuple[str, str, dict[str, str], int | None, str]] = {
    "docker, version 1: the file tells the host's path, only the container's part is mounted": (
        "11:cpu,cpuacct:/docker/3f1c\n4:memory:/docker/3f1c\n1:name=systemd:/docker/3f1c\n0::/system.slice/docker.service",
        V1_MOUNT.format(inside="/docker/3f1c"),
        {f"{V1}/memory.limit_in_bytes": f"{16 * GIB}"},
        16 * GIB,
        "container",
    ),
    "docker, version 2, the host's namespace": (
        "0::/system.slice/docker-3f1c.scope",
        V2_MOUNT.format(inside="/"),
        {f"{V2}/system.slice/memory.max": "max", f"{V2}/system.slice/docker-3f1c.scope/memory.max": f"{8 * GIB}"},
        8 * GIB,
        "container",
    ),
    "podman without root, the user's slice is the tighter": (
        "0::/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-77aa.scope/container",
        V2_MOUNT.format(inside="/"),
        {
            f"{V2}/user.slice/user-1000.slice/memory.max": f"{4 * GIB}",
            f"{V2}/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-77aa.scope/memory.max": f"{8 * GIB}",
            f"{V2}/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-77aa.scope/container/x": "",
        },
        4 * GIB,
        "container",
    ),
    "kubernetes, version 2, private namespace, seen from a process above it": (
        "0::/../../other",
        V2_MOUNT.format(inside="/"),
        {f"{V2}/memory.max": f"{32 * GIB}", "run/.containerenv": ""},
        32 * GIB,
        "container",
    ),
    "slurm, version 1: the job's limit, above the step's": (
        "4:memory:/slurm/uid_1000/job_42/step_0/task_0",
        V1_MOUNT.format(inside="/"),
        {
            f"{V1}/memory.limit_in_bytes": NO_LIMIT_V1,
            f"{V1}/slurm/memory.limit_in_bytes": NO_LIMIT_V1,
            f"{V1}/slurm/uid_1000/job_42/memory.limit_in_bytes": f"{10 * GIB}",
            f"{V1}/slurm/uid_1000/job_42/step_0/memory.limit_in_bytes": f"{12 * GIB}",
            f"{V1}/slurm/uid_1000/job_42/step_0/task_0/memory.limit_in_bytes": NO_LIMIT_V1,
        },
        10 * GIB,
        "job",
    ),
    "a slice of systemd": (
        "0::/user.slice/user-1000.slice/session-3.scope",
        V2_MOUNT.format(inside="/"),
        {
            f"{V2}/user.slice/user-1000.slice/memory.max": f"{6 * GIB}",
            f"{V2}/user.slice/user-1000.slice/session-3.scope/memory.max": "max",
        },
        6 * GIB,
        "cgroup",
    ),
    "WSL": ("0::/", V2_MOUNT.format(inside="/"), {f"{V2}/cgroup.procs": ""}, None, "machine"),
    "absurd values": (
        "0::/a/b/c/d",
        "",
        {
            f"{V2}/a/memory.max": "0",
            f"{V2}/a/b/memory.max": "-1",
            f"{V2}/a/b/c/memory.max": "much",
            f"{V2}/a/b/c/d/memory.max": "9" * 400,
        },
        None,
        "machine",
    ),
}


def lay_out(root: Path, cgroup: str, mountinfo: str, files: dict[str, str]) -> Path:
    for name, text in {"proc/self/cgroup": cgroup, "proc/self/mountinfo": mountinfo, **files}.items():
        path = root / name.lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")
    return root


@pytest.mark.parametrize("name", LAYOUTS)
def test_the_smallest_limit_holds(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tfmemtop.engine.sources.cgroup.machine_memory", lambda: HOST)
    cgroup, mountinfo, files, size, owner = LAYOUTS[name]
    memory = host_memory(lay_out(tmp_path, cgroup, mountinfo, files))
    assert memory == (HOST if size is None else size, HostOwner(owner), HOST)


def test_what_is_free_is_what_the_tightest_cgroup_leaves(tmp_path: Path) -> None:
    """Unused file cache counts as free, because the kernel gives it back before it kills a process."""
    files = {
        f"{V2}/job/memory.max": f"{16 * GIB}",
        f"{V2}/job/memory.current": f"{12 * GIB}",
        f"{V2}/job/memory.stat": f"anon {5 * GIB}\ninactive_file {6 * GIB}",
        f"{V2}/job/step/memory.max": f"{20 * GIB}",
        f"{V2}/job/step/memory.current": f"{GIB}",
    }
    found = limits(HOST, hierarchies(lay_out(tmp_path, "0::/job/step", V2_MOUNT.format(inside="/"), files)))
    assert available(50 * GIB, found) == 10 * GIB
    assert available(2 * GIB, found) == 2 * GIB
    assert available(2 * GIB, []) == 2 * GIB


@pytest.mark.parametrize(
    ("cgroup", "mount", "counter"),
    [
        ("4:memory:/docker/3f1c\n0::/", V1_MOUNT.format(inside="/docker/3f1c"), f"{V1}/memory.oom_control"),
        ("0::/user.slice", V2_MOUNT.format(inside="/"), f"{V2}/user.slice/memory.events"),
        ("", "", "proc/vmstat"),
    ],
)
def test_a_kill_by_the_kernel_is_counted_where_the_process_is(
    tmp_path: Path, cgroup: str, mount: str, counter: str
) -> None:
    root = lay_out(tmp_path, cgroup, mount, {counter: "oom 7\noom_kill 2"})
    kills = OomCounter(root)
    assert not kills.rose()
    lay_out(tmp_path, cgroup, mount, {counter: "oom 8\noom_kill 3"})
    assert kills.rose()


_JOIN_AND_ASK = """
import os, pathlib, sys
pathlib.Path(sys.argv[1], "cgroup.procs").write_text(str(os.getpid()))
os.execv(sys.argv[2], sys.argv[2:]) if len(sys.argv) > 2 else None
from tfmemtop.engine.sources.cgroup import host_memory
found = host_memory()
print(found.total, found.owner.value, found.machine)
"""


@pytest.fixture
def group() -> Iterator[Path]:
    """Make a real cgroup of this machine with a limit of 1 GiB."""
    name = f"tfmemtop-test-{os.getpid()}"
    for parent, file in ((Path(V1), "memory.limit_in_bytes"), (Path(V2), "memory.max")):
        folder = parent / name
        try:
            folder.mkdir()
        except OSError:
            continue
        try:
            (folder / file).write_text(str(GIB))
        except OSError:
            folder.rmdir()
            continue
        yield folder
        folder.rmdir()
        return
    pytest.skip("this user cannot make a memory cgroup here")


@pytest.mark.programs
def test_a_real_limit(group: Path) -> None:
    asked = ran([sys.executable, "-c", _JOIN_AND_ASK, str(group)], check=True)
    size, owner, machine = asked.stdout.split()
    assert (int(size), int(machine)) == (GIB, machine_memory())
    whose = {"cgroup": "this control group", "container": "this container"}[owner]
    record = [PROGRAM, "record", "-o", "/dev/null", "--cpu-pool", "2G", "--", "true"]
    refused = ran([sys.executable, "-c", _JOIN_AND_ASK, str(group), *record])
    assert refused.returncode == 2
    assert refused.stderr == f"tfmemtop: --cpu-pool: 2G is more than {whose} has, 1.0 GiB\n"
