"""What a process belongs to: a container, a pod, a job, a notebook, a unit of systemd. Pure.

``engine/sources/workloads.py`` reads it.
"""

from collections.abc import Iterator, Sequence

import msgspec

from tfmemtop.bounds import Name

SHORT_ID = 12
"""The characters of a container's id that its engine shows."""


class Workload(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a process belongs to. Fields that are not known are ``None``.

    ``engine`` runs the container, such as ``docker``; ``container`` is the id that it gave it. ``name`` is the
    container's name, or else the host name that it was given. ``unit`` is a service of systemd, for a process that
    belongs to nothing else.
    """

    engine: Name | None = None
    container: Name | None = None
    name: Name | None = None
    pod: Name | None = None
    pod_uid: Name | None = None
    namespace: Name | None = None
    job: Name | None = None
    job_name: Name | None = None
    step: Name | None = None
    notebook: Name | None = None
    unit: Name | None = None

    @property
    def contained(self) -> bool:
        """Whether the process is in a container."""
        return bool(self.engine or self.container or self.pod or self.pod_uid)

    @property
    def short(self) -> str:
        """The most telling names in few characters: ``train-0``, ``job 812.0``, ``train-0/mnist.ipynb``."""
        container = self.pod or self.name or (self.container or "")[:SHORT_ID]
        if self.pod is None and self.pod_uid:
            container = f"pod {self.pod_uid[:8]}"
        job = f"job {self.job}" + (f".{self.step}" if self.step else "") if self.job else ""
        return "/".join(filter(None, (container, job, self.notebook))) or self.unit or ""

    @property
    def words(self) -> str:
        """All names and ids, for a search."""
        return " ".join(value for value in msgspec.structs.astuple(self) if value)


def described(workload: Workload) -> Iterator[tuple[str, str]]:
    """Yield a label and a text for each thing that the process belongs to: ``("pod", "train-0, namespace ml")``."""
    one = workload
    if one.contained:
        identified = one.container and one.container[:SHORT_ID]
        yield "container", ", ".join(filter(None, (one.name, identified, one.engine))) or "not known"
    if one.pod or one.pod_uid:
        namespace = f"namespace {one.namespace}" if one.namespace else None
        uid = f"uid {one.pod_uid}" if one.pod_uid else None
        yield "pod", ", ".join(filter(None, (one.pod, namespace, uid)))
    if one.job:
        step = f"step {one.step}" if one.step else None
        yield "job", ", ".join(filter(None, (one.job, step, one.job_name)))
    if one.notebook:
        yield "notebook", one.notebook
    if one.unit:
        yield "unit", one.unit


def not_readable(files: Sequence[str]) -> str:
    """Return why names may be missing: this user may not read *files*."""
    return f"{', '.join(files)}; names of its container, pod, job or notebook may be missing. Root can read them."
