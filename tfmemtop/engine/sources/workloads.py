"""Finds the container, pod, job, notebook or unit of a process in files, without asking any daemon.

The control group of a process has the ids, and the command line of the process that watches its container has them
too, and often the name: every user may read these. Other names come from the environment of the process and from files
of the engines, which often only root, or the user of the process, may read.
"""

import os
import re
import socket
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path, PurePath
from typing import NamedTuple, TypeVar

import msgspec
from msgspec.structs import asdict, replace

from tfmemtop.engine.sources.processes import ancestors, read_command, read_environment
from tfmemtop.events.machine import Workload
from tfmemtop.home import user_folder
from tfmemtop.notebooks import connection_file, notebook
from tfmemtop.placement import bounded_name, job_of

_ID = r"[0-9a-f]{64}"
_UID = r"[0-9a-f]{8}(?:[-_][0-9a-f]{4}){3}[-_][0-9a-f]{12}|[0-9a-f]{32}"  # the second is that of a static pod
_CONTAINER = re.compile(rf"(?:.*?:)?(?:(?P<prefix>[a-z-]+)[-:])?(?P<id>{_ID})(?:\.scope)?")
_POD = re.compile(rf"(?:.*-)?pod({_UID})(?:\.slice.*)?")
_JOB = re.compile(r"slurm[^/]*(?:/[^/]+)*?/job_(\d+)(?:/step_(\w+))?")
_UNIT = re.compile(r".*/(?!user@)([^/]+\.service)")
_ESCAPED = re.compile(r"\\x([0-9a-f]{2})")
_ENGINES = {
    "docker": "docker",
    "cri-containerd": "containerd",
    "nerdctl": "containerd",
    "crio": "cri-o",
    "libpod": "podman",
    "libpod-payload": "podman",
}
_HELPERS = "conmon"  # such as libpod-conmon-ID.scope: a process of the engine, outside the container
_JOB_NAMES = ("SLURM_JOB_NAME", "PBS_JOBNAME", "LSB_JOBNAME")
_IMAGES = ("APPTAINER_NAME", "SINGULARITY_NAME")
_MACHINES = "uts:[4026531838]"  # PROC_UTS_INIT_INO of the kernel's include/linux/proc_ns.h
_HOSTS = "# Kubernetes-managed hosts file."  # the first line in a pod with a network of its own
_KUBELETS = re.compile(r"/?k8s_([^_]+)_([^_]+)_([^_]+)_[^_]+_\d+")  # container, pod, namespace, uid, attempt

_LONGEST = 1 << 22  # characters of a file; of a longer one nothing is decoded

T = TypeVar("T")


def of_control_group(text: str) -> Workload:
    """Return what ``/proc/PID/cgroup`` says, whose content is *text*. Of nested containers the innermost counts."""
    paths = dict.fromkeys(line.split(":", 2)[2] for line in text.splitlines() if line.count(":") >= 2)
    found = Workload()
    for path in paths:
        if not found.contained:
            found = _container(path)
    for path in paths:
        if found.job is None and (job := _JOB.search(path)):
            found = replace(found, job=job[1], step=job[2])
    if not found.contained and not found.job:
        unit = next((match[1] for path in paths if (match := _UNIT.match(path))), None)
        found = replace(found, unit=unit and _unescaped(unit))
    return found


def _container(path: str) -> Workload:
    segments = path.split("/")
    pods = [pod[1].replace("_", "-") for segment in segments if (pod := _POD.fullmatch(segment))]
    uid = pods[-1] if pods else None
    for at in range(len(segments) - 1, -1, -1):
        match = _CONTAINER.fullmatch(segments[at])
        if match and not (match["prefix"] or "").endswith(_HELPERS):
            engine = _ENGINES.get(match["prefix"] or "")
            if engine is None and not uid:
                outer = set(segments[:at])
                engine = "docker" if "docker" in outer else "podman" if "libpod_parent" in outer else None
            return Workload(engine=engine, container=match["id"], pod_uid=uid)
    return Workload(pod_uid=uid)


def _unescaped(name: str) -> str:
    """Return the *name* of a unit without systemd's escapes: ``\\x2d`` is a hyphen."""
    return _ESCAPED.sub(lambda match: chr(int(match[1], 16)), name)


def with_watcher(found: Workload, ancestors: Iterable[Sequence[str]]) -> Workload:
    """Return *found* with what the command line of the process that watches its container says.

    Podman and CRI-O start ``conmon`` for each container; containerd, and Docker by it, a shim for each container or
    pod. It is the nearest such among the *ancestors*, whose command lines these are.
    """
    for command in ancestors:
        options = dict([*pairwise(command)][::-1])  # the first of the same name
        program = PurePath(next(iter(command), "")).name
        if program == "conmon" and (container := options.get("-c")):
            known = found.engine if found.container == container else None
            named = _named_by(options.get("-n"), replace(found, container=container, unit=None))
            return replace(named, engine=known or ("cri-o" if named.pod else "podman"))
        if program.startswith("containerd-shim") and (container := options.get("-id")):
            engine = found.engine or ("docker" if options.get("-namespace") == "moby" else "containerd")
            found = replace(found, engine=engine, unit=None)
            if found.container or re.fullmatch(_ID, container):
                return replace(found, container=found.container or container)
            return replace(found, name=container)  # chosen by the user
    return found


def _named_by(name: str | None, found: Workload) -> Workload:
    """Return *found* with its engine's *name* of the container. Kubernetes puts pod and namespace into it."""
    if kubelets := _KUBELETS.fullmatch(name or ""):
        return replace(found, name=kubelets[1], pod=kubelets[2], namespace=kubelets[3])
    return replace(found, name=name)


def with_environment(found: Workload, environment: Mapping[str, str], own_host: str) -> Workload:
    """Return *found* with what the *environment* of the process says.

    *own_host* is the host name of this machine. A container that has the same one, since it uses the machine's network,
    is not named by it. The file ``/etc/hostname`` of a container is not read: it could be a link, which would be
    followed outside the container.
    """
    host = environment.get("HOSTNAME", "")
    host = "" if host == own_host else host
    job, step, job_name = found.job, found.step, None
    if job in (None, environment.get("SLURM_JOB_ID")):  # else these are the variables of another job
        job = job_of(environment) or job
        step = step or environment.get("SLURM_STEP_ID")
        job_name = next((environment[name] for name in _JOB_NAMES if environment.get(name)), None) if job else None
    engine, name, pod, namespace = found.engine, found.name, found.pod, found.namespace
    if found.pod_uid or "KUBERNETES_SERVICE_HOST" in environment:
        pod = pod or environment.get("POD_NAME") or host or None  # many give their containers these variables
        namespace = namespace or environment.get("POD_NAMESPACE")
    elif found.container and not name and not found.container.startswith(host):
        name = host
    image = next((environment[name] for name in _IMAGES if environment.get(name)), None)
    if image and not found.contained:
        engine, name = "apptainer", image
    return replace(found, job=job, step=step, job_name=job_name, engine=engine, name=name, pod=pod, namespace=namespace)


def inner_pids(status: str) -> tuple[int, ...]:
    """Return a process's numbers within its containers, the outermost first, from the content of ``/proc/PID/status``.

    Empty where it has no other number than here.
    """
    numbers = next((line.split()[1:] for line in status.splitlines() if line.startswith("NSpid:")), [])
    return tuple(map(int, numbers[1:]))


class Belonging(NamedTuple):
    """What a process belongs to, its numbers there, and the files that this user may not read."""

    workload: Workload | None
    inner_pids: tuple[int, ...]
    unread: tuple[str, ...]


def read_workload(pid: int, command: Sequence[str], root: Path = Path("/")) -> Belonging:
    """Return what process *pid* belongs to, whose command line is *command*.

    The files are read below *root*, except for the environment and the command lines of its ancestors.
    """
    folder = root / "proc" / str(pid)
    unread: list[str] = []
    found = of_control_group(_text(folder / "cgroup", unread))
    numbers = inner_pids(_text(folder / "status", unread))
    environment: dict[str, str] = {}
    try:
        environment = read_environment(pid)
        if os.readlink(f"/proc/{pid}/ns/uts") == _MACHINES:  # noqa: PTH115 (a link that points to no path)
            environment.pop("HOSTNAME", None)  # the machine's
    except PermissionError:
        unread.append(f"/proc/{pid}/environ")
    except OSError:
        pass  # it has ended
    above = ancestors(pid) if found.contained or numbers or connection_file(command) is not None else []
    commands = [read_command(ancestor) for ancestor in above]
    found = with_watcher(found, commands)
    missing: list[str] = []
    if newest := next(_engine_names(found, root, missing), None):
        found = _named_by(newest, found)
    elif not found.name:
        unread += missing
    in_pod = _text(root / "etc/hosts", []).startswith(_HOSTS)  # then the host name here is the pod's
    found = with_environment(found, environment, "" if in_pod else socket.gethostname())
    kernels_parent = commands[0] if commands and connection_file(command) is not None else []
    found = replace(found, notebook=notebook(environment, kernels_parent))
    found = Workload(**{name: bounded_name(value) for name, value in asdict(found).items()})
    return Belonging(found if found != Workload() else None, numbers, tuple(unread))


class _OfDocker(msgspec.Struct, rename="pascal"):
    name: str


class _OfPodman(msgspec.Struct):
    id: str
    names: list[str] | None = None


def _engine_names(found: Workload, root: Path, unread: list[str]) -> Iterator[str]:
    """Yield the name of the container by the files of Docker, or those of Podman for this user or for root."""
    if found.engine == "docker":
        path = root / "var/lib/docker/containers" / str(found.container) / "config.v2.json"
        if (kept := _decoded(path, _OfDocker, unread)) is not None:
            yield kept.name.lstrip("/")
    if found.engine == "podman":
        for folder in (user_folder("XDG_DATA_HOME", ".local/share"), root / "var/lib"):
            path = folder / "containers/storage/overlay-containers/containers.json"
            for one in _decoded(path, list[_OfPodman], unread) or ():
                yield from one.names or () if one.id == found.container else ()


def _decoded(path: Path, kind: type[T], unread: list[str]) -> T | None:
    """Return the content of *path*; ``None`` if there is none, it is being written, or it has another form."""
    try:
        return msgspec.json.decode(_text(path, unread), type=kind)
    except msgspec.MsgspecError:
        return None


def _text(path: Path, unread: list[str]) -> str:
    """Return the content of *path*, empty where there is none. A file that may not be read is noted in *unread*."""
    try:
        with path.open(errors="replace") as file:
            return file.read(_LONGEST)
    except PermissionError:
        unread.append(str(path))
    except OSError:
        pass
    return ""
