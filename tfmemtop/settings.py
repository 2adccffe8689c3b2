"""What a user can choose for a run, and how each choice is carried into the script.

Two carriers: environment variables that TensorFlow itself reads, and ``TFMEMTOP_SETTINGS``, which
the agent reads and applies in the one place where TensorFlow makes its GPU options final. Both are
needed: the variables reach TF1 sessions, only the agent can combine growth with a limit.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

import msgspec

from tfmemtop.bounds import Few, Index, Size, Variables
from tfmemtop.units import MIB

Growth = Literal["on", "off"]
AllocatorName = Literal["bfc", "cuda_malloc_async"]


_SECRET = ("TOKEN", "KEY", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL")


def names_a_secret(variable: str) -> bool:
    """Whether a variable of the environment, by its name, holds what is nobody else's."""
    return any(word in variable.upper() for word in _SECRET)


def masked(variable: str, value: str) -> str:
    """*value* as it may be shown."""
    return "•••" if value and names_a_secret(variable) else value


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """One run's settings; ``None`` leaves the choice to the script.

    ``memory_limit`` and ``cpu_pool`` are bytes, a multiple of 1 MiB in effect, since TensorFlow
    counts limits in MiB. ``gpus`` are NVML indices, in the order TensorFlow shall see them; empty
    hides every GPU. With ``xla_report`` XLA writes down what lies in its buffers. ``environment`` holds further
    variables, set over the user's own.
    """

    growth: Growth | None = None
    memory_limit: Size | None = None
    allocator: AllocatorName | None = None
    gpus: Annotated[tuple[Index, ...], Few] | None = None
    cpu_pool: Size | None = None
    xla_report: bool = False
    environment: Variables = {}


class NoSuchGpu(ValueError):
    """A setting names a GPU that is not there. ``words/unusable.py`` says it to the user.

    *index* is the GPU's in NVML's order, ``None`` if any would do, as for ``cuda_malloc_async``; *count* are there.
    """

    def __init__(self, index: int | None, count: int) -> None:
        super().__init__(index, count)
        self.index = index
        self.count = count


def carry(settings: Settings, gpu_uuids: Sequence[str]) -> dict[str, str]:
    """Environment variables that carry *settings*, given the UUIDs of all GPUs in NVML's order.

    Without a GPU the memory limit and the BFC allocator act on TensorFlow's CPU pool.

    Raises:
        NoSuchGpu: a setting names or needs a GPU that this machine lacks.
    """
    variables: dict[str, str] = {}
    if settings.growth is not None:
        # TensorFlow takes exactly "true" or "false"; anything else it logs and ignores.
        variables["TF_FORCE_GPU_ALLOW_GROWTH"] = "true" if settings.growth == "on" else "false"
    if settings.gpus is not None:
        for index in settings.gpus:
            if index >= len(gpu_uuids):
                raise NoSuchGpu(index, len(gpu_uuids))
        # By UUID: CUDA orders by speed unless told otherwise, NVML by bus.
        variables["CUDA_VISIBLE_DEVICES"] = ",".join(gpu_uuids[i] for i in settings.gpus) or "-1"
    cpu_pool = settings.cpu_pool
    if gpu_uuids:
        if settings.allocator == "cuda_malloc_async":
            variables["TF_GPU_ALLOCATOR"] = "cuda_malloc_async"
        elif settings.allocator == "bfc":
            variables["TF_GPU_ALLOCATOR"] = ""
    elif settings.allocator == "cuda_malloc_async":
        raise NoSuchGpu(None, 0)
    else:
        cpu_pool = cpu_pool if cpu_pool is not None else settings.memory_limit
        if settings.allocator == "bfc":
            variables["TF_CPU_ALLOCATOR_USE_BFC"] = "true"
    if cpu_pool is not None:
        variables["TF_CPU_ALLOCATOR_USE_BFC"] = "true"
        variables["TF_CPU_BFC_MEM_LIMIT_IN_MB"] = str(max(1, cpu_pool // MIB))
    in_process = {"growth": settings.growth, "memory_limit": settings.memory_limit if gpu_uuids else None}
    variables["TFMEMTOP_SETTINGS"] = msgspec.json.encode(in_process).decode()
    return variables | settings.environment


def launch_environment(base: Mapping[str, str], settings: Settings, gpu_uuids: Sequence[str]) -> dict[str, str]:
    """*base* (the user's pristine environment) with *settings* over it.

    Raises:
        NoSuchGpu: as :func:`carry`.
    """
    return dict(base) | carry(settings, gpu_uuids)
