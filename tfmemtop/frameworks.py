"""JAX and PyTorch: the environment variables by which each takes the settings of a run. Pure.

PyTorch has no setting of growth, since its pool always grows. It takes a limit from 2.10 on; before, an unknown key in
its variable ended the process.
"""

import math
import re
from collections.abc import Mapping
from typing import Literal

import msgspec

from tfmemtop.bounds import Label

FrameworkName = Literal["jax", "torch"]
TITLES = {"tensorflow": "TensorFlow", "jax": "JAX", "torch": "PyTorch", "cupy": "CuPy", "rmm": "RMM"}

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


class Framework(msgspec.Struct, frozen=True):
    """A framework with a GPU pool of its own; ``version`` is empty if it is not known."""

    name: FrameworkName
    version: Label = ""

    @property
    def title(self) -> str:
        return TITLES[self.name]

    @property
    def takes_growth(self) -> bool:
        """Whether its environment decides if its pool grows."""
        return self.name == "jax"

    @property
    def takes_limit(self) -> bool:
        """Whether its environment can limit its pool."""
        return self.name == "jax" or _numbers(self.version) >= _LIMITED_FROM


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version)[:2])


def share(limit: int, card: int) -> str:
    """Return *limit* bytes as a share of *card* bytes, as the variables take it. It is rounded down."""
    return f"{math.floor(min(1.0, limit / card) * 10**_DIGITS) / 10**_DIGITS:.{_DIGITS}f}"


def carried_to(
    framework: Framework, growth: bool | None, limit: str | None, asynchronous: bool | None, given: Mapping[str, str]
) -> dict[str, str]:
    """Return the variables that pass settings to *framework*; ``None`` leaves a setting to the script.

    *limit* is as :func:`share` returns it. *asynchronous* is whether CUDA's own pool is the allocator. *given* is the
    environment: what else stands in a variable of PyTorch's stays there.
    """
    if framework.name == "torch":
        ours = {}
        if limit is not None and framework.takes_limit:
            ours[TORCH_FRACTION] = limit
        if asynchronous is not None:
            ours[TORCH_BACKEND] = "cudaMallocAsync" if asynchronous else "native"
        return {TORCH: _merged(given.get(TORCH) or given.get(NEW_TORCH, ""), ours)} if ours else {}
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
