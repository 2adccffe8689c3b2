"""What a user can choose for a run, and how each choice reaches the script.

There are two ways: environment variables that TensorFlow itself reads, and ``TFMEMTOP_SETTINGS``. The hook reads that
variable and applies it in the one place where TensorFlow makes its GPU options final. Both ways are needed: only the
variables reach TF1 sessions, and only the hook can combine growth with a limit.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

import msgspec

from tfmemtop.bounds import Few, Index, Size, Variables
from tfmemtop.frameworks import UsedFramework, carried_to, share
from tfmemtop.units import MIB

Growth = Literal["on", "off"]
AllocatorName = Literal["bfc", "cuda_malloc_async"]

INTERVAL_S = 0.1
"""Seconds between two readings of the hook, or from outside, unless the user chooses."""


_SECRET = ("TOKEN", "KEY", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL")


def names_a_secret(variable: str) -> bool:
    """Return whether an environment variable, by its name, contains a secret of the user's."""
    return any(word in variable.upper() for word in _SECRET)


def masked(variable: str, value: str) -> str:
    """Return *value* as it may be shown: three dots in place of a secret."""
    return "•••" if value and names_a_secret(variable) else value


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """One run's settings; ``None`` leaves the choice to the script.

    ``memory_limit`` and ``cpu_pool`` are bytes; only whole MiB have an effect, because TensorFlow counts limits in
    MiB. ``gpus`` are NVML indices in the order that TensorFlow uses for the GPUs; an empty tuple hides every GPU.
    With ``xla_report`` XLA writes down what its buffers contain. ``environment`` holds further variables, which replace
    the user's own. ``frameworks`` are those beside TensorFlow that receive the settings too: those that the run before
    used.
    """

    growth: Growth | None = None
    memory_limit: Size | None = None
    allocator: AllocatorName | None = None
    gpus: Annotated[tuple[Index, ...], Few] | None = None
    cpu_pool: Size | None = None
    xla_report: bool = False
    environment: Variables = {}
    frameworks: Annotated[tuple[UsedFramework, ...], Few] = ()

    def limit(self, *, has_gpus: bool) -> int | None:
        """Return the limit of TensorFlow's pools: of those of the GPUs, or without GPUs that of the CPU pool."""
        return self.memory_limit if has_gpus else self.memory_limit or self.cpu_pool


def carry(
    settings: Settings, gpu_uuids: Sequence[str], card: int | None = None, base: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Return the environment variables that apply *settings*. *gpu_uuids* are those of all GPUs in NVML's order.

    Without a GPU the memory limit and the BFC allocator act on TensorFlow's CPU pool. JAX and PyTorch take a limit as
    a share of *card*, the bytes of the smallest GPU that the run sees. *base* is the user's environment.

    Raises:
        ValueError: a setting names or needs a GPU that this machine lacks.
    """
    variables: dict[str, str] = {}
    if settings.growth is not None:
        # TensorFlow accepts exactly "true" or "false". It ignores any other value, and logs that.
        variables["TF_FORCE_GPU_ALLOW_GROWTH"] = "true" if settings.growth == "on" else "false"
    if settings.gpus is not None:
        for index in settings.gpus:
            if index >= len(gpu_uuids):
                raise ValueError(f"there is no GPU {index}: this machine has {len(gpu_uuids) or 'none'}")
        # By UUID, because the orders differ: NVML's follows the bus, and CUDA's default follows the speed.
        variables["CUDA_VISIBLE_DEVICES"] = ",".join(gpu_uuids[i] for i in settings.gpus) or "-1"
    cpu_pool = settings.cpu_pool
    if gpu_uuids:
        if settings.allocator == "cuda_malloc_async":
            variables["TF_GPU_ALLOCATOR"] = "cuda_malloc_async"
        elif settings.allocator == "bfc":
            variables["TF_GPU_ALLOCATOR"] = ""
    elif settings.allocator == "cuda_malloc_async":
        raise ValueError("cuda_malloc_async needs a GPU, and this machine has none")
    else:
        cpu_pool = cpu_pool if cpu_pool is not None else settings.memory_limit
        if settings.allocator == "bfc":
            variables["TF_CPU_ALLOCATOR_USE_BFC"] = "true"
    if cpu_pool is not None:
        variables["TF_CPU_ALLOCATOR_USE_BFC"] = "true"
        variables["TF_CPU_BFC_MEM_LIMIT_IN_MB"] = str(max(1, cpu_pool // MIB))
    in_process = {"growth": settings.growth, "memory_limit": settings.memory_limit if gpu_uuids else None}
    variables["TFMEMTOP_SETTINGS"] = msgspec.json.encode(in_process).decode()
    variables |= settings.environment
    given = {**(base or {}), **variables}
    limit = share(settings.memory_limit, card) if settings.memory_limit is not None and gpu_uuids and card else None
    for framework in settings.frameworks:
        variables |= carried_to(framework, settings.growth, limit, settings.allocator, given)
    return variables


def launch_environment(
    base: Mapping[str, str], settings: Settings, gpu_uuids: Sequence[str], card: int | None = None
) -> dict[str, str]:
    """Return *base*, which is the user's unchanged environment, with the variables of *settings* added.

    *gpu_uuids* and *card* are those of :func:`carry`.

    Raises:
        ValueError: a setting names or needs a GPU that this machine lacks.
    """
    return dict(base) | carry(settings, gpu_uuids, card, base)


KEPT_VARIABLES = ("TF_", "CUDA_", "XLA_", "NVIDIA_", "NCCL_", "TFMEMTOP_", "JAX_", "KERAS_", "PYTORCH_", "CUPY_")
"""A recording keeps only variables whose names begin so and do not suggest a secret: people pass recordings on."""


def without_secrets(variables: dict[str, str]) -> dict[str, str]:
    """Return those of *variables* that a recording keeps."""
    return {
        name: value for name, value in variables.items() if name.startswith(KEPT_VARIABLES) and not names_a_secret(name)
    }
