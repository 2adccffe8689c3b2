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


PREALLOCATE = "XLA_PYTHON_CLIENT_PREALLOCATE"
JAX_ALLOCATOR = "XLA_PYTHON_CLIENT_ALLOCATOR"
JAX_FRACTION, NEW_JAX_FRACTION = "XLA_PYTHON_CLIENT_MEM_FRACTION", "XLA_CLIENT_MEM_FRACTION"
"""The old name is understood by all versions, the new one by newer ones. With both, JAX does without the GPU."""

TORCH = "PYTORCH_CUDA_ALLOC_CONF"
NEW_TORCH = "PYTORCH_ALLOC_CONF"
"""The old name is read by all versions, for these keys before the new one."""

TORCH_FRACTION, TORCH_BACKEND = "per_process_memory_fraction", "backend"
_BETWEEN = re.compile(r",(?![^\[]*\])")  # not the commas of a list in brackets
_LIMITED_FROM = 2, 10
_DIGITS = 6


class UsedFramework(msgspec.Struct, frozen=True):
    """A framework that a run used a GPU with; ``version`` is empty if it is not known."""

    name: FrameworkName
    version: Label = ""

    @property
    def takes_growth(self) -> bool:
        """Whether its environment decides if its pool grows."""
        return self.name is FrameworkName.JAX

    @property
    def takes_allocator(self) -> bool:
        """Whether its environment chooses its allocator."""
        return self.name in (FrameworkName.JAX, FrameworkName.PYTORCH)

    @property
    def takes_limit(self) -> bool:
        """Whether its environment can limit its pool."""
        newer = self.name is FrameworkName.PYTORCH and _numbers(self.version) >= _LIMITED_FROM
        return newer or self.name is FrameworkName.JAX


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version)[:2])


def share(limit: int, card: int) -> str:
    """Return *limit* bytes as a share of *card* bytes, as the variables take it. It is rounded down."""
    return f"{math.floor(min(1.0, limit / card) * 10**_DIGITS) / 10**_DIGITS:.{_DIGITS}f}"


def carried_to(
    framework: UsedFramework,
    growth: bool | None,
    limit: str | None,
    asynchronous: bool | None,
    given: Mapping[str, str],
) -> dict[str, str]:
    """Return the variables that pass settings to *framework*; ``None`` leaves a setting to the script.

    *limit* is as :func:`share` returns it. *asynchronous* is whether CUDA's own pool is the allocator. *given* is the
    environment: what else stands in a variable of PyTorch's stays there.
    """
    if framework.name is FrameworkName.PYTORCH:
        ours = {}
        if limit is not None and framework.takes_limit:
            ours[TORCH_FRACTION] = limit
        if asynchronous is not None:
            ours[TORCH_BACKEND] = "cudaMallocAsync" if asynchronous else "native"
        return {TORCH: _merged(given.get(TORCH) or given.get(NEW_TORCH, ""), ours)} if ours else {}
    if framework.name is not FrameworkName.JAX:
        return {}
    found = {}
    if growth is not None:
        found[PREALLOCATE] = "false" if growth else "true"
    if limit is not None:
        found[NEW_JAX_FRACTION if given.get(NEW_JAX_FRACTION) else JAX_FRACTION] = limit
    if asynchronous is not None:
        found[JAX_ALLOCATOR] = "cuda_async" if asynchronous else "bfc"
    return found


def _merged(users: str, ours: Mapping[str, str]) -> str:
    kept = [part.strip() for part in _BETWEEN.split(users) if part.strip() and part.split(":")[0].strip() not in ours]
    return ",".join([*kept, *(f"{name}:{value}" for name, value in ours.items())])
