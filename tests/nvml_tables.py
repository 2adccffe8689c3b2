"""NVML's answers on machines that the tests do not have, and a replacement of ``pynvml`` that returns them.

A table contains for each function its answer, or the code of the error that it raises. A function that is not in a
card's table is not supported there, as is the case for most functions on most cards. The figures come from real
machines where such a machine was recorded (an H100, also from another process namespace). All others come from
NVIDIA's documents and from the reports that the comments name.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, NamedTuple

import pynvml

GIB, MIB = 1 << 30, 1 << 20
NOT_AVAILABLE = (1 << 64) - 1


class Fails(NamedTuple):
    """The answer of a call that raises the error with this code."""

    code: int


class InTurn(list[Any]):
    """Answers for successive calls. After the last one, the last one is repeated."""


Answers = dict[str, Any]


@dataclass
class Table:
    """One machine: answers of the library itself, of its cards, and of the slices of each card (by its index)."""

    cards: list[Answers] = field(default_factory=list)
    system: Answers = field(default_factory=dict)
    slices: dict[int, list[Answers]] = field(default_factory=dict)
    host: tuple[int, int] = (64 * GIB, 48 * GIB)
    wsl: bool = False


NOT_SUPPORTED = Fails(pynvml.NVML_ERROR_NOT_SUPPORTED)
NO_PERMISSION = Fails(pynvml.NVML_ERROR_NO_PERMISSION)
TOO_OLD = Fails(pynvml.NVML_ERROR_FUNCTION_NOT_FOUND)
LOST = Fails(pynvml.NVML_ERROR_GPU_IS_LOST)


def row(pid: int, used: int | None, instance: int = 0xFFFFFFFF) -> SimpleNamespace:
    return SimpleNamespace(pid=pid, usedGpuMemory=used, gpuInstanceId=instance, computeInstanceId=instance)


def sample(pid: int, sm: int, mem: int, at: int = 1) -> SimpleNamespace:
    return SimpleNamespace(pid=pid, timeStamp=at, smUtil=sm, memUtil=mem)


def memory(total: int, reserved: int, used: int) -> SimpleNamespace:
    return SimpleNamespace(total=total, reserved=reserved, used=used, free=total - reserved - used)


def card(**changes: Any) -> Answers:
    """Return a healthy card of 80 GiB with process 441 on it: the recorded answers of an H100, driver 580.159.04."""
    answers: Answers = {
        "UUID": "GPU-98407675-fc4e-1fad-9584-8aab40452ad7",
        "Name": "NVIDIA H100 80GB HBM3",
        "MigMode": [0, 0],
        "MemoryInfo": memory(85520809984, 0, 2225930240),  # version 1 counts the driver's own memory as used
        "MemoryInfo_v2": memory(85520809984, 503316480, 1722613760),
        "ComputeRunningProcesses_v3": [row(441, 1713373184)],
        "GraphicsRunningProcesses_v3": [],
        "ProcessUtilization": [sample(441, 93, 93)],
        "UtilizationRates": SimpleNamespace(gpu=93, memory=60),
        "PowerUsage": 378886,
        "Temperature": 42,
        "VirtualizationMode": 0,
    }
    return answers | changes


def _slice(number: int, size: int, used: int, rows: Any) -> Answers:
    return {
        "UUID": f"MIG-{number:08x}-0000-0000-0000-000000000000",
        "Name": "NVIDIA H100 80GB HBM3 MIG 1g.10gb",
        "GpuInstanceId": number,
        "MemoryInfo": memory(size, 0, used),
        "MemoryInfo_v2": memory(size, 0, used),
        "ComputeRunningProcesses_v3": rows,
        "GraphicsRunningProcesses_v3": [],
    }


_MIG = card(
    MigMode=[1, 1],
    MaxMigDeviceCount=7,
    ProcessUtilization=NOT_SUPPORTED,
    UtilizationRates=NOT_SUPPORTED,
    ComputeRunningProcesses_v3=[row(441, 2 * GIB, 7), row(442, 3 * GIB, 9)],
)

TABLES: dict[str, Table] = {
    "H100": Table([card()]),
    # As nvidia-smi shows in most containers with older drivers: processes are listed, but their memory is N/A.
    # Those drivers lack the newest call.
    "no shares": Table(
        [
            card(
                ComputeRunningProcesses_v3=TOO_OLD,
                ComputeRunningProcesses_v2=[row(441, None)],
                ProcessUtilization=NOT_SUPPORTED,
            )
        ]
    ),
    # Recorded on that H100 from a separate process namespace, while process 441 computes outside it.
    "from inside, 580": Table([card(ComputeRunningProcesses_v3=[])]),
    # Recorded in the same way, with a process in the namespace itself, where it is process 2.
    "beside others, 580": Table(
        [
            card(
                MemoryInfo_v2=memory(85520809984, 503316480, 3441819648),
                ComputeRunningProcesses_v3=[row(2, 1713373184)],
                ProcessUtilization=[sample(2, 21, 21), sample(441, 79, 78)],
            )
        ]
    ),
    # Project-HAMi/HAMi-core issue 112, driver 560.35.03: the container's pid, no memory, samples with the host's pid.
    "from inside, 560": Table(
        [card(ComputeRunningProcesses_v3=[row(324, 0)], ProcessUtilization=[sample(645400, 13, 2)])]
    ),
    # NVIDIA/nvidia-docker issue 1483: the host's pids, for all processes of the host.
    "the host's numbers": Table(
        [
            card(
                MemoryInfo_v2=memory(85520809984, 503316480, 33 * GIB),
                ComputeRunningProcesses_v3=[row(4001, 30 * GIB), row(4002, 3 * GIB)],
                ProcessUtilization=[sample(4001, 60, 20)],
            )
        ]
    ),
    "one of the host's numbers": Table([card(ComputeRunningProcesses_v3=[row(4001, 1713373184)])]),
    # NVML's documentation of MIG: figures by instance through the instance's own handle, utilisation not supported.
    "MIG": Table(
        [_MIG],
        slices={
            0: [
                _slice(7, 10 * GIB, 2 * GIB, [row(441, 2 * GIB, 7)]),
                _slice(9, 10 * GIB, 3 * GIB, [row(442, 3 * GIB, 9)]),
            ]
        },
    ),
    "MIG, not root": Table(
        [_MIG | {"ComputeRunningProcesses_v3": NO_PERMISSION, "GraphicsRunningProcesses_v3": NO_PERMISSION}],
        slices={0: [_slice(7, 10 * GIB, 2 * GIB, NO_PERMISSION) | {"GraphicsRunningProcesses_v3": NO_PERMISSION}]},
    ),
    # NVIDIA's list of what NVML lacks under WSL 2.
    "WSL": Table(
        [
            card(
                MemoryInfo_v2=memory(24 * GIB, 300 * MIB, 2 * GIB),
                ComputeRunningProcesses_v3=NOT_SUPPORTED,
                GraphicsRunningProcesses_v3=NOT_SUPPORTED,
                ProcessUtilization=NOT_SUPPORTED,
                MigMode=NOT_SUPPORTED,
            )
        ],
        wsl=True,
    ),
    # XuehaiPan/nvitop pull request 208: NVIDIA GB10, driver 580.173.02.
    "GB10": Table(
        [
            card(
                UUID="GPU-2dee1e25",
                Name="NVIDIA GB10",
                MemoryInfo=NOT_SUPPORTED,
                MemoryInfo_v2=NOT_SUPPORTED,
                MigMode=NOT_SUPPORTED,
                ComputeRunningProcesses_v3=[row(441, 4 * GIB)],
                UtilizationRates=SimpleNamespace(gpu=0, memory=0),
                PowerUsage=11170,
                Temperature=35,
            )
        ],
        host=(127600748 * 1024, 118566368 * 1024),
    ),
    # A guest, as NVIDIA's vGPU documentation describes it.
    "vGPU": Table(
        [
            card(
                Name="NVIDIA A40-8Q",
                MemoryInfo_v2=memory(8 * GIB, 600 * MIB, 2 * GIB),
                VirtualizationMode=pynvml.NVML_GPU_VIRTUALIZATION_MODE_VGPU,
                ComputeRunningProcesses_v3=[],
                ProcessUtilization=NOT_SUPPORTED,
                PowerUsage=NOT_SUPPORTED,
                Temperature=NOT_SUPPORTED,
            )
        ]
    ),
    "lost in the middle": Table(
        [
            {name: InTurn([answer, answer, LOST]) for name, answer in card().items()} | {"MemoryInfo": LOST},
            card(UUID="GPU-2", ComputeRunningProcesses_v3=[]),
        ]
    ),
    "another library than the kernel's module": Table(
        system={"nvmlInit": Fails(pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH)}
    ),
    "no permission": Table(system={"nvmlInit": NO_PERMISSION}),
    "a very old driver": Table(
        [
            card(
                MemoryInfo_v2=TOO_OLD,
                MemoryInfo=memory(12 * GIB, 0, 5 * GIB),
                MigMode=TOO_OLD,
                ComputeRunningProcesses_v3=TOO_OLD,
                ComputeRunningProcesses_v2=TOO_OLD,
                ComputeRunningProcesses=TOO_OLD,
                GraphicsRunningProcesses_v3=TOO_OLD,
                GraphicsRunningProcesses_v2=TOO_OLD,
                GraphicsRunningProcesses=TOO_OLD,
                ProcessUtilization=TOO_OLD,
                VirtualizationMode=TOO_OLD,
            )
        ],
    ),
    # A container with the driver's library and without a GPU (NVIDIA_VISIBLE_DEVICES=none).
    "no cards": Table(),
    "nonsense": Table(
        [
            card(
                MemoryInfo_v2=SimpleNamespace(total=80 * GIB, reserved=-1, used=NOT_AVAILABLE, free=90 * GIB),
                ComputeRunningProcesses_v3=[
                    row(441, 900 * GIB),
                    row(0, GIB),
                    row(1 << 31, GIB),
                    row(442, NOT_AVAILABLE),
                    row(443, -5),
                ],
                ProcessUtilization=[sample(441, 900, 1 << 31)],
                UtilizationRates=SimpleNamespace(gpu=4294967295, memory=-3),
                PowerUsage=4294967295,
                Temperature=65535,
            )
        ]
    ),
}


def play(table: Table) -> Any:
    """Return an object that behaves like ``pynvml`` on the machine of *table*."""
    turns: dict[tuple[str, str], Iterator[Any]] = {}

    def answer(handle: str, name: str) -> Any:
        answers: Answers = table.system
        if handle:
            at, _, part = handle.partition(":")
            answers = table.slices[int(at)][int(part)] if part else table.cards[int(at)]
        found = answers.get(name, NOT_SUPPORTED)
        if isinstance(found, InTurn):
            turn = turns.setdefault((handle, name), iter(found))
            found = next(turn, found[-1])
        if isinstance(found, Fails):
            raise pynvml.NVMLError(found.code)
        return found

    def of_handle(name: str) -> Callable[..., Any]:
        return lambda handle, *_, **__: answer(handle, name)

    def memory_info(handle: str, version: Any = None) -> Any:
        return answer(handle, "MemoryInfo_v2" if version else "MemoryInfo")

    def slice_handle(handle: str, index: int) -> str:
        if index >= len(table.slices.get(int(handle), [])):
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_FOUND)
        return f"{handle}:{index}"

    library = SimpleNamespace(
        **{name: getattr(pynvml, name) for name in dir(pynvml) if name.startswith("NVML_")},
        nvmlMemory_v2=pynvml.nvmlMemory_v2,
        NVMLError=pynvml.NVMLError,
    )
    for name in dir(pynvml):
        if name.startswith("nvmlDeviceGet"):
            setattr(library, name, of_handle(name.removeprefix("nvmlDeviceGet")))
    library.nvmlInit = lambda: answer("", "nvmlInit") if "nvmlInit" in table.system else None
    library.nvmlShutdown = lambda: None
    library.nvmlSystemGetDriverVersion = lambda: table.system.get("driver", "580.159.04")
    library.nvmlDeviceGetCount = lambda: len(table.cards)
    library.nvmlDeviceGetHandleByIndex = str
    library.nvmlDeviceGetMemoryInfo = memory_info
    library.nvmlDeviceGetMigDeviceHandleByIndex = slice_handle
    return library
