"""The container, pod, job and notebook of a process, from control groups as engines and batch systems name them.

The lines come from the reports and documents that the comments name. Where all lines of a file are alike, one is here.
"""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.contained import contained, first_process, running
from tests.patience import until
from tfmemtop.engine.sources.workloads import (
    of_control_group,
    read_workload,
    with_environment,
    with_watcher,
)
from tfmemtop.events.machine import Workload

A = "ff90ed5efd657539ce42198e0d61661d62f2a5d8de9439e2aeb046fb1ef4e0af"
B = "9e073649debeec6d511391c9ec7627ee67ce3a3fb508b0fa0437a97f8e58ba98"
UID = "019c1fe8-0d92-4aa0-b61c-4df58bdde71c"
UID_OF_UNITS = UID.replace("-", "_")

GROUPS = {
    # htop-dev/htop issue 1036
    "docker, v1": (
        f"12:rdma:/docker/{A}\n9:memory:/docker/{A}\n0::/docker/{A}\n",
        Workload(engine="docker", container=A),
    ),
    # ctrsploit/ctrsploit issue 280: the unified line has only the engine's own group
    "docker, hybrid": (
        f"12:net_cls,net_prio:/docker/{A}\n10:rdma:/\n0::/system.slice/containerd.service\n",
        Workload(engine="docker", container=A),
    ),
    # neuvector/neuvector share/system/cgroup_test.go
    "docker, systemd": (
        f"10:devices:/system.slice/docker-{A}.scope\n2:cpuacct,cpu:/system.slice/docker-{A}.scope\n",
        Workload(engine="docker", container=A),
    ),
    "an old docker": (f"10:net_prio:/{A}\n2:cpu:/{A}\n", Workload(container=A)),
    # cryptnono/cryptnono issue 47
    "containerd, v2": (
        f"0::/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod{UID_OF_UNITS}.slice/cri-containerd-{B}.scope\n",
        Workload(engine="containerd", container=B, pod_uid=UID),
    ),
    # open-telemetry/opentelemetry-java issue 4507, elastic/apm-agent-nodejs issue 3550
    "containerd without systemd's driver": (
        f"11:perf_event:/kubepods-besteffort-pod{UID_OF_UNITS}.slice:cri-containerd:{B}\n"
        f"10:blkio:/system.slice/containerd.service/kubepods-besteffort-pod{UID_OF_UNITS}.slice:cri-containerd:{B}\n",
        Workload(engine="containerd", container=B, pod_uid=UID),
    ),
    # grafana/beyla pull request 468: seen from a container beside it
    "a sidecar's view": (f"0::/../cri-containerd-{B}.scope\n", Workload(engine="containerd", container=B)),
    # containerd/nri pull request 227, grafana/beyla pull request 468: Kubernetes in Docker (kind)
    # kinvolk/traceloop pull request 34
    "kubelet without systemd": (
        f"1:name=systemd:/kubepods/besteffort/pod{UID}/{B}\n",
        Workload(container=B, pod_uid=UID),
    ),
    "cri-o": (
        f"0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{UID_OF_UNITS}.slice/crio-{B}.scope/container\n",
        Workload(engine="cri-o", container=B, pod_uid=UID),
    ),
    # cri-o/cri-o internal/config/cgmgr: the process that watches a container
    "cri-o's monitor": (
        f"0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{UID_OF_UNITS}.slice/crio-conmon-{B}.scope\n",
        Workload(pod_uid=UID),
    ),
    # containers/podman issue 507 and 6400, containers/crun issue 678
    "podman": (f"0::/machine.slice/libpod-{A}.scope/container\n", Workload(engine="podman", container=A)),
    "podman's monitor": (f"0::/machine.slice/libpod-conmon-{A}.scope\n", Workload()),
    # NordicHPC/sonar: compute nodes with version 2 and with version 1
    "slurm, v2": (
        "0::/system.slice/slurmstepd.scope/job_1392969/step_0/user/task_0\n",
        Workload(job="1392969", step="0"),
    ),
    "slurm, v1": (
        "10:devices:/slurm/uid_2101171/job_280678/step_interactive/task_0\n1:name=systemd:/system.slice/slurmd.service\n",
        Workload(job="280678", step="interactive"),
    ),
    "slurm's own daemon": ("0::/system.slice/slurmstepd.scope/system\n", Workload()),
    "a service": ("0::/system.slice/ollama.service\n", Workload(unit="ollama.service")),
    # slurm.schedmd.com/cgroup_v2.html, systemd/systemd
    "a login": ("0::/user.slice/user-1000.slice/session-3.scope\n", Workload()),
    "no control group at all": ("garbage\n:\n::\n", Workload()),
}


@pytest.mark.parametrize("name", GROUPS)
def test_what_a_control_group_says(name: str) -> None:
    text, found = GROUPS[name]
    assert of_control_group(text) == found


POD = Workload(engine="containerd", container=B, pod_uid=UID)
DOCKER = Workload(engine="docker", container=A)
SHIM = "/usr/bin/containerd-shim-runc-v2 -namespace {} -id {} -address /run/containerd/containerd.sock"
CONMON = "/usr/bin/conmon --api-version 1 -c {} -u x -r /usr/bin/runc -b /var/lib/containers/x -n {} --exit-dir /run/x"
KUBELETS = "k8s_kube-scheduler_kube-scheduler-d_kube-system_767081f8d4a1e549747c8b66d4842b25_1"
IN_KUBERNETES = {"name": "kube-scheduler", "pod": "kube-scheduler-d", "namespace": "kube-system"}

WATCHERS: dict[str, tuple[Workload, str, dict[str, str | None]]] = {
    # Podman 4.3, Docker 20.10 and containerd 1.6 with their groups in the file system
    "podman": (Workload(engine="podman", container=A), CONMON.format(A, "trainer"), {"name": "trainer"}),
    "podman in a group of the user": (
        Workload(unit="x.service"),
        CONMON.format(A, "trainer"),
        {"engine": "podman", "container": A, "name": "trainer", "unit": None},
    ),
    # cri-o/cri-o issue 6189
    "cri-o": (Workload(container=B, pod_uid=UID), CONMON.format(B, KUBELETS), {"engine": "cri-o", **IN_KUBERNETES}),
    "docker in a group of the user's": (Workload(container=A), SHIM.format("moby", A), {"engine": "docker"}),
    "ctr": (Workload(), SHIM.format("default", "trainer"), {"engine": "containerd", "name": "trainer"}),
    "nerdctl": (Workload(), SHIM.format("default", A), {"engine": "containerd", "container": A}),
    "a pod, whose shim has the id of another container": (POD, SHIM.format("k8s.io", A), {}),
}


@pytest.mark.parametrize("name", WATCHERS)
def test_what_the_watcher_of_a_container_says(name: str) -> None:
    group, watcher, added = WATCHERS[name]
    ancestors = [[], ["sh", "-c", "train.sh"], watcher.split()]
    assert with_watcher(group, ancestors) == replace(group, **added)


JOB = Workload(job="812", step="0")

ENVIRONMENTS = {
    # Kubernetes gives a pod's containers the pod's name as their host name.
    "a pod": (POD, {"KUBERNETES_SERVICE_HOST": "10.96.0.1"}, "train-0", {"pod": "train-0"}, "train-0"),
    "a pod in the machine's network that is told its name": (
        POD,
        {"POD_NAME": "train-0", "POD_NAMESPACE": "ml"},
        "node1",
        {"pod": "train-0", "namespace": "ml"},
        "train-0",
    ),
    "a pod whose control group is hidden": (
        Workload(),
        {"KUBERNETES_SERVICE_HOST": "10.96.0.1"},
        "train-0",
        {"pod": "train-0"},
        "train-0",
    ),
    "a container with a name": (DOCKER, {}, "trainer", {"name": "trainer"}, "trainer"),
    "a step": (
        JOB,
        {"SLURM_JOB_ID": "812", "SLURM_STEP_ID": "0", "SLURM_JOB_NAME": "mnist"},
        "node1",
        {"job_name": "mnist"},
        "job 812.0",
    ),
    "a job of an array": (
        JOB,
        {"SLURM_JOB_ID": "812", "SLURM_ARRAY_JOB_ID": "800", "SLURM_ARRAY_TASK_ID": "3"},
        "node1",
        {"job": "800_3"},
        "job 800_3.0",
    ),
    "the variables of another job": (JOB, {"SLURM_JOB_ID": "7", "SLURM_JOB_NAME": "x"}, "node1", {}, "job 812.0"),
    "a job without a control group": (
        Workload(),
        {"PBS_JOBID": "55.server", "PBS_JOBNAME": "fit"},
        "node1",
        {"job": "55.server", "job_name": "fit"},
        "job 55.server",
    ),
    "apptainer in a job": (
        JOB,
        {"APPTAINER_NAME": "tensorflow.sif", "SLURM_JOB_ID": "812"},
        "node1",
        {"engine": "apptainer", "name": "tensorflow.sif"},
        "tensorflow.sif/job 812.0",
    ),
}


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_what_the_environment_adds(name: str) -> None:
    group, environment, host, added, short = ENVIRONMENTS[name]
    found = with_environment(group, environment | {"HOSTNAME": host}, "node1")
    assert {field: getattr(found, field) for field in added} == added
    assert found.short == short


def laid_out(root: Path, group: str, files: dict[str, str]) -> Path:
    """Return *root* with the files of this process and of an engine. The environment is this process's own."""
    folder = root / "proc" / str(os.getpid())
    for path, text in {folder / "cgroup": group, folder / "status": f"NSpid:\t{os.getpid()}\t7\n"}.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


@pytest.mark.parametrize(
    ("group", "file", "kept"),
    [
        ("docker, systemd", f"var/lib/docker/containers/{A}/config.v2.json", {"ID": A, "Name": "/romantic_wilson"}),
        ("docker, v1", f"var/lib/docker/containers/{A}/config.v2.json", {"Name": "/k8s_x_romantic-wilson_ml_81f8_0"}),
        (
            "podman",
            "var/lib/containers/storage/overlay-containers/containers.json",
            [{"id": B, "names": ["other"]}, {"id": A, "names": ["romantic_wilson"]}],
        ),
    ],
)
def test_the_engine_names_a_container(group: str, file: str, kept: object, tmp_path: Path) -> None:
    root = laid_out(tmp_path, GROUPS[group][0], {file: json.dumps(kept)})
    found = read_workload(os.getpid(), ["python"], root).workload
    assert found is not None and found.short.replace("-", "_") == "romantic_wilson"


@pytest.mark.parametrize("kept", ["", "{", '{"Id": "x"}'])
def test_an_engine_whose_file_has_another_form_names_nothing(kept: str, tmp_path: Path) -> None:
    root = laid_out(tmp_path, GROUPS["docker, v1"][0], {f"var/lib/docker/containers/{A}/config.v2.json": kept})
    found = read_workload(os.getpid(), ["python"], root).workload
    assert found is not None and found.short == A[:12]


@pytest.mark.programs
def test_a_process_in_namespaces_of_its_own_has_its_number_there_and_its_pods_name() -> None:
    variables = {"KUBERNETES_SERVICE_HOST": "10.96.0.1", "HOSTNAME": "train-0", "JPY_SESSION_NAME": "/w/mnist.ipynb"}
    with running("sleep", "600", variables=variables) as (_, first):
        found, numbers, unread = read_workload(first.pid, ["sleep"])
    assert found is not None and found.short.endswith("train-0/mnist.ipynb")
    assert (numbers[-1], unread) == (1, ())


@pytest.mark.programs
@pytest.mark.parametrize(("network", "pod"), [("", socket.gethostname()), (" (host network)", None)])
def test_in_a_pod_the_name_of_this_machine_is_the_pods(network: str, pod: str | None, tmp_path: Path) -> None:
    """The control group is hidden, as it is there in version 2. The file is kubelet's."""
    files = {"etc/hosts": f"# Kubernetes-managed hosts file{network}.\n127.0.0.1\tlocalhost\n"}
    variables = {"KUBERNETES_SERVICE_HOST": "10.96.0.1", "HOSTNAME": socket.gethostname()}
    with running("sleep", "600", variables=variables) as (_, first):
        found = read_workload(first.pid, ["sleep"], laid_out(tmp_path, "", files)).workload
    assert (found and found.pod) == pod


WATCHER = """
import subprocess, sys
child = subprocess.Popen(sys.argv[5:])
sys.stdin.read()
child.kill()
"""


@pytest.mark.programs
def test_a_process_below_the_watcher_of_its_container_has_its_name(tmp_path: Path) -> None:
    (tmp_path / "watcher.py").write_text(WATCHER)
    (tmp_path / "conmon").symlink_to(sys.executable)
    words = ["./conmon", "watcher.py", "-c", A, "-n", "trainer", *contained("sh", "-c", "sleep 600 & wait")]
    with subprocess.Popen(words, cwd=tmp_path, stdin=subprocess.PIPE) as process:
        first = first_process(process.pid)
        until(lambda: bool(first.children()))
        (below,) = first.children()
        found = read_workload(below.pid, ["sleep"]).workload
    assert found is not None and (found.engine, found.container, found.name) == ("podman", A, "trainer")


@pytest.mark.skipif(os.getuid() == 0, reason="root may read everything")
def test_what_this_user_may_not_read_is_named() -> None:
    assert read_workload(1, ["init"]).unread == ("/proc/1/environ",)
