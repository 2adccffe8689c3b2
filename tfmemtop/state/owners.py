"""Whose memory is: what it is for, by which name, and whether that was recorded."""

from dataclasses import dataclass
from enum import Enum

from tfmemtop import events


class Kind(Enum):
    """What memory is for."""

    VARIABLES = "variables"
    GRADIENTS = "gradients"
    OPTIMIZER = "optimizer"  # its slots and its temporaries
    ACTIVATIONS = "activations"
    LOSS = "loss"
    INPUT = "input"
    WORKSPACE = "workspace"
    TENSORS = "tensors"  # eager ones that Python holds
    XLA = "xla"
    ROUNDING = "rounding"  # of the chunk in which an opened XLA buffer lies, beyond that buffer
    BEFORE = "before"  # allocated before the window
    UNKNOWN = "unknown"


class Guess(Enum):
    """What a name rests on that was not recorded."""

    STEP = "step"  # the step before, which has allocated as much, or so many times less
    SIZE = "size"  # a layer of the step has read as much


@dataclass(frozen=True, slots=True)
class Owner:
    """Whose an allocation is; the fields are those of :class:`tfmemtop.state.holders.Part`."""

    kind: Kind
    layer: str
    operation: str
    shape: tuple[int, ...] | None
    dtype: str
    region: str
    kept: bool = False
    python_name: str = ""
    line: events.OperationLine | None = None
    cluster: int | None = None  # the module whose temporary buffer it is
    guess: Guess | None = None
