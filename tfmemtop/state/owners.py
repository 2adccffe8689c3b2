"""Owners of memory: what the memory is for, and the owner's names."""

from dataclasses import dataclass
from enum import Enum

from tfmemtop import events


class Kind(Enum):
    """The purpose of memory."""

    VARIABLES = "variables"
    GRADIENTS = "gradients"
    OPTIMIZER = "optimizer"  # the optimizer's slots and temporaries
    ACTIVATIONS = "activations"
    LOSS = "loss"
    INPUT = "input"
    WORKSPACE = "workspace"
    TENSORS = "tensors"  # eager tensors that Python holds
    XLA = "xla"
    ROUNDING = "rounding"  # the rest of a chunk beyond the XLA buffer in it, where the buffer's values are shown
    BEFORE = "before"  # allocated before the window
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Owner:
    """The owner of an allocation; the fields are those of :class:`tfmemtop.state.holders.Part`."""

    kind: Kind
    layer: str
    operation: str
    shape: tuple[int, ...] | None
    dtype: str
    region: str
    kept: bool = False
    python_name: str = ""
    line: events.OperationLine | None = None
    cluster: int | None = None  # the XLA module, if the allocation is its temporary buffer
