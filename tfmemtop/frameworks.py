"""The frameworks beside TensorFlow, and the environment variables by which they take the settings of a run. Pure.

PyTorch has no setting of growth, since its pool always grows. It takes a limit from 2.10 on; before, an unknown key in
its variable ended the process.
"""

import math
import re
from collections.abc import Mapping
from enum import Enum

import msgspec

from tfmemtop.bounds import Label


class FrameworkName(Enum):
    """A framework beside TensorFlow that uses GPU memory."""

    JAX = "jax"
    PYTORCH = "pytorch"
    CUPY = "cupy"
    RMM = "rmm"

    @property
    def title(self) -> str:
        """The name as its makers write it."""
        return _TITLES[self]


_TITLES = {
    FrameworkName.JAX: "JAX",
    FrameworkName.PYTORCH: "PyTorch",
    FrameworkName.CUPY: "CuPy",
    FrameworkName.RMM: "RMM",
}


PREALLOCATE, JAX_ALLOCATOR = "XLA_PYTHON_CLIENT_PREALLOCATE", "XLA_PYTHON_CLIENT_ALLOCATOR"
JAX_FRACTION, NEW_JAX_FRACTION = "XLA_PYTHON_CLIENT_MEM_FRACTION", "XLA_CLIENT_MEM_FRACTION"
"""The old name is understood by all versions, the new one by newer ones. With both, JAX does without the GPU."""

TORCH, NEW_TORCH = "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"
"""The old name is read by all versions, for the options below before the new one."""

FRAMEWORKS_VARIABLES = "XLA_", "PYTORCH_"
"""The beginnings of these names."""

_PREALLOCATES = {"on": "false", "off": "true"}
_JAX_ALLOCATORS = {"bfc": "bfc", "cuda_malloc_async": "cuda_async"}
_TORCH_ALLOCATORS = {"bfc": "native", "cuda_malloc_async": "cudaMallocAsync"}
"""The values for those of :class:`tfmemtop.settings.Settings`."""

_BETWEEN = re.compile(r",(?![^\[]*\])")  # not the commas of a list in brackets
_LIMITED_FROM = 2, 10
_DIGITS = 6


class UsedFramework(msgspec.Struct, frozen=True):
    """A framework that a run used a GPU with; ``version`` is empty if it is not known."""

    name: FrameworkName
    version: Label = ""

    @property
    def takes(self) -> frozenset[str]:
        """The settings that it takes from its environment: ``growth``, ``limit``, ``allocator``."""
        if self.name is FrameworkName.JAX:
            return frozenset(("growth", "limit", "allocator"))
        if self.name is FrameworkName.PYTORCH:
            return frozenset(("limit", "allocator") if _numbers(self.version) >= _LIMITED_FROM else ("allocator",))
        return frozenset()


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version)[:2])


def share(limit: int, card: int) -> str:
    """Return *limit* bytes as a share of *card* bytes, as the variables take it. It is rounded down."""
    return f"{math.floor(min(1.0, limit / card) * 10**_DIGITS) / 10**_DIGITS:.{_DIGITS}f}"


def carried_to(
    framework: UsedFramework, growth: str | None, limit: str | None, allocator: str | None, given: Mapping[str, str]
) -> dict[str, str]:
    """Return the variables that pass settings to *framework*; ``None`` leaves a setting to the script.

    *limit* is as :func:`share` returns it. *given* is the environment: what else stands in a variable of PyTorch's
    stays there.
    """
    if framework.name is FrameworkName.JAX:
        fraction = NEW_JAX_FRACTION if given.get(NEW_JAX_FRACTION) else JAX_FRACTION
        preallocates, name = _PREALLOCATES.get(growth or ""), _JAX_ALLOCATORS.get(allocator or "")
        return _chosen({PREALLOCATE: preallocates, fraction: limit, JAX_ALLOCATOR: name})
    if framework.name is FrameworkName.PYTORCH:
        taken = limit if "limit" in framework.takes else None
        backend = _TORCH_ALLOCATORS.get(allocator or "")
        ours = _chosen({"per_process_memory_fraction": taken, "backend": backend})
        return {TORCH: _merged(given.get(TORCH) or given.get(NEW_TORCH, ""), ours)} if ours else {}
    return {}


def _chosen(values: Mapping[str, str | None]) -> dict[str, str]:
    return {name: value for name, value in values.items() if value is not None}


def _merged(users: str, ours: Mapping[str, str]) -> str:
    kept = [part.strip() for part in _BETWEEN.split(users) if part.strip() and part.split(":")[0].strip() not in ours]
    return ",".join([*kept, *(f"{name}:{value}" for name, value in ours.items())])
