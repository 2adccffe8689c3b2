"""Events of the machine: its GPUs, and the processes on them and of the run; and TensorFlow's names of devices.

A process may belong to a container, a pod, a job, a notebook, or a unit of systemd: ``engine/sources/workloads.py``
reads it.
"""

from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from functools import lru_cache
from typing import Annotated, NamedTuple

import msgspec

from tfmemtop.bounds import Change, Epoch, Few, Index, Many, Name, Number, Positive, Size, Words
from tfmemtop.events.base import Curve, DescribedEnum, Event, Latest
from tfmemtop.units import format_short

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


def workload_facts(workload: Workload) -> Iterator[tuple[str, str]]:
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


def names_not_readable(files: Sequence[str]) -> str:
    """Return why names may be missing: this user may not read *files*."""
    return f"{', '.join(files)}; names of its container, pod, job or notebook may be missing. Root can read them."


class Device(Event, tag="device", frozen=True):
    """A GPU, as NVML names it."""

    keep = Latest("index")
    urgent = True

    index: Index
    uuid: Name
    name: Name
    total: Positive | None
    reserved: Size | None  # the driver keeps these bytes; they are never available
    mig: bool = False  # the GPU is divided into slices (MIG), or is such a slice
    unified: bool = False  # the GPU uses the host's memory


class DeviceProcess(msgspec.Struct, frozen=True, array_like=True):
    """One process's share of one GPU: bytes used, percent of SMs and of memory bandwidth."""

    pid: Number
    used: Size | None
    sm: Number | None = None
    bandwidth: Number | None = None


class SharesMissing(DescribedEnum):
    """Why it is not known how much of a GPU's memory each process uses."""

    NOT_TOLD = "not_told", "the driver does not report memory per process here"
    NAMES_NONE = "names_none", "the driver names no process for the memory in use"
    MIG = "mig", "the card is divided (MIG), and the driver reports memory per process to root only"
    WSL = "wsl", "under WSL the driver does not report memory per process"
    VGPU = "vgpu", "in a virtual machine with a vGPU the driver does not report memory per process"
    DRIVER_TOO_OLD = "driver_too_old", "this driver is too old to report memory per process"
    USER_FORBIDDEN = "user_forbidden", "the driver does not report memory per process to this user"
    NOT_TOLD_IN_CONTAINER = "not_told_in_container", "the driver does not report memory per process in this container"
    NUMBERED_OTHERWISE = (
        "numbered_otherwise",
        "the driver numbers processes differently from this container, so which of them are here is unknown",
    )


class WhyLacking(DescribedEnum):
    """Why figures of a GPU are not available."""

    NOT_REPORTED = "not_reported", "the driver does not report {} here"
    NOT_OF_A_PART = "not_of_a_part", "the driver does not report {} of a part of a card (MIG)"  # (MIG)
    NOT_FOR_USER = "not_for_user", "the driver does not report {} to this user"
    OLD_DRIVER = "old_driver", "this driver is too old to report {}"
    CARD_LOST = "card_lost", "the card is lost, so there is no {}"
    FAILED = "failed", "the driver failed to report {}"
    IMPOSSIBLE = "impossible", "the driver reports impossible figures, which are not shown: {}"


class Lacking(msgspec.Struct, frozen=True, array_like=True):
    """The ``figures`` that are not available for one reason; impossible ones with their value, as ``power 1e9``."""

    why: WhyLacking
    figures: Annotated[list[Name], Few]


class Traffic(msgspec.Struct, frozen=True):
    """Bytes a second that reach a GPU (in) or leave it (out), over PCIe and over all its NVLinks."""

    pcie_in: Size | None
    pcie_out: Size | None
    nvlink_in: Size | None
    nvlink_out: Size | None

    @property
    def texts(self) -> tuple[str, ...]:
        """What is known, for people: ``PCIe 1.2G/s in, 310.0M/s out``."""
        ways = {"PCIe": (self.pcie_in, self.pcie_out), "NVLink": (self.nvlink_in, self.nvlink_out)}
        return tuple(
            f"{name} {format_short(received)}/s in, {format_short(sent)}/s out"
            for name, (received, sent) in ways.items()
            if (received, sent) != (None, None)
        )


class DeviceReading(Event, tag="device_reading", frozen=True):
    """NVML's figures of a GPU at one moment."""

    keep = Curve("index", highest=("used",))
    droppable = True

    index: Index
    used: Size | None  # without `reserved`
    free: Size | None
    utilisation: Number | None  # percent of the time in which a kernel ran
    bandwidth: Number | None  # percent of the time in which memory was read or written
    power_w: Change | None
    temperature_c: Number | None
    processes: Annotated[list[DeviceProcess], Many]
    processes_missing: SharesMissing | None = None
    outside: Size | None = None  # bytes of `used` that processes outside this container have, where that is much
    lacking: Annotated[list[Lacking], Few] = msgspec.field(default_factory=list)  # other figures that are missing
    of_host: bool = False  # `used` and `free` are the host's: the GPU has no memory of its own
    fan: Number | None = None  # percent of the fan's highest speed; a card without a fan has none
    encoder: Number | None = None  # percent of the time in which video was encoded, and decoded
    decoder: Number | None = None
    traffic: Traffic | None = None

    @property
    def further(self) -> tuple[str, ...]:
        """What only some GPUs have, for people: ``fan 30%``, ``encoder 12%``, and the traffic."""
        found = [None if self.fan is None else f"fan {self.fan}%"]
        found += [f"encoder {self.encoder}%" if self.encoder else None]
        found += [f"decoder {self.decoder}%" if self.decoder else None]
        found += self.traffic.texts if self.traffic else ()
        return tuple(figure for figure in found if figure)

    def past(self, ours: Callable[[int], bool]) -> "DeviceReading":
        """Return the reading without processes that belong to no run: of those only the newest reading matters."""
        processes = [process for process in self.processes if ours(process.pid)]
        return self if len(processes) == len(self.processes) else msgspec.structs.replace(self, processes=processes)


class Absence(DescribedEnum):
    """Why the hook is not in a process that uses TensorFlow."""

    ISOLATED = (
        "isolated",
        "Python was started with -I, which ignores PYTHONPATH",
        "Start Python without -I; -P or -s also keep out files of the script's folder.",
    )
    IGNORES_ENVIRONMENT = (
        "ignores_environment",
        "Python was started with -E, which ignores PYTHONPATH",
        "Start Python without -E, so that it reads PYTHONPATH.",
    )
    NO_SITE = (
        "no_site",
        "Python was started with -S, which skips sitecustomize",
        "Start Python without -S, so that it loads the site module.",
    )
    OTHER_PROGRAM = (
        "other_program",
        "it runs in {program}, which loads no sitecustomize",
        "Start the script with a Python interpreter of its own instead of a bundle.",
    )
    ENVIRONMENT_CLEANED = (
        "environment_cleaned",
        "its environment was cleaned: PYTHONPATH does not lead to the hook",
        "Start the process with the PYTHONPATH and the TFMEMTOP_ variables of its parent, which env -i removes.",
    )
    UNREADABLE = (
        "unreadable",
        "the process belongs to another user and cannot be read",
        "Start tfmemtop as the user that the process belongs to.",
    )
    OTHER_SESSION = (
        "other_session",
        "another session of tfmemtop watches it: {session}",
        "See it there: tfmemtop attach {session}.",
    )
    UNEXPLAINED = (
        "unexplained",
        "the hook did not report, and the reason cannot be seen from outside",
        "Start the process in an ordinary Python, with the PYTHONPATH that tfmemtop gives it.",
    )


class HookAbsence(msgspec.Struct, frozen=True):
    """Why the hook is not in a process. ``program`` or ``session`` is the name of the cause, if the reason has one."""

    reason: Absence
    program: Name = ""
    session: Name = ""

    @property
    def text(self) -> str:
        """The reason as one clause without a full stop."""
        return self.reason.text.format(program=self.program or "another program", session=self.session)

    @property
    def remedy(self) -> str:
        """What helps, as one sentence."""
        return self.reason.remedy.format(session=self.session)


class Process(Event, tag="process", frozen=True):
    """A process that was found for the first time, on a GPU or among those of the run."""

    keep = Latest("pid")

    pid: Number
    ppid: Number
    user: Name
    command: Words
    started: Epoch  # seconds since the epoch
    run: Number | None  # the run that the process belongs to
    hook_absence: HookAbsence | None = None  # set once it is known that the hook could not be loaded into it
    workload: Workload | None = None  # the container, job and so on that it belongs to
    inner_pids: Annotated[tuple[Number, ...], Few] = ()  # its numbers within its containers, the outermost first
    unread: Annotated[tuple[Name, ...], Few] = ()  # files about it that this user may not read


class ProcessReading(msgspec.Struct, frozen=True, array_like=True):
    """CPU percent (100 = one core) and resident bytes of a process."""

    pid: Number
    cpu: Change | None
    rss: Size | None


class ProcessReadings(Event, tag="process_readings", frozen=True):
    """The readings of all processes that run now. A process that is missing here has ended."""

    keep = Latest()
    droppable = True

    processes: Annotated[list[ProcessReading], Many]
    host_used: Size | None = None  # bytes of the session's `host_memory` that are not available
    host_cpu: Change | None = None  # percent of all cores


class DeviceKind(Enum):
    """The memory that a pool takes its bytes from."""

    GPU = "GPU"
    CPU = "CPU"
    PINNED = "HOST"
    """Host memory that GPUs can reach: TensorFlow has a pool of it beside its devices."""
    OTHER = ""


class DeviceName(NamedTuple):
    """A logical device of TensorFlow; ``number`` is ``None`` where the name has no number."""

    kind: DeviceKind
    number: int | None


_KINDS = {kind.value: kind for kind in DeviceKind}


@lru_cache(maxsize=1024)
def parse_device(name: str) -> DeviceName:
    """Parse *name*, as the hook spells it. The kind is ``OTHER`` if it is not known here."""
    kind, _, index = name.partition(":")
    return DeviceName(_KINDS.get(kind, DeviceKind.OTHER), int(index) if index.isdecimal() and len(index) < 10 else None)


def kind_of(name: str) -> DeviceKind:
    """Return the kind of the device *name*."""
    return parse_device(name).kind


@lru_cache(maxsize=1024)
def is_gpu(name: str) -> bool:
    """Return whether *name* is the name of a GPU."""
    return kind_of(name) is DeviceKind.GPU


@lru_cache(maxsize=1024)
def is_cpu(name: str) -> bool:
    """Return whether *name* is the name of a CPU device."""
    return kind_of(name) is DeviceKind.CPU


@lru_cache(maxsize=1024)
def is_pinned(name: str) -> bool:
    """Return whether *name* is the name of the pool of pinned host memory."""
    return kind_of(name) is DeviceKind.PINNED
