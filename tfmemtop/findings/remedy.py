"""The remedy of a finding, as a value. Its key on the screen and its option are in words/remedies.py."""

from dataclasses import dataclass
from enum import Enum, auto

from tfmemtop.events import Notice


class Action(Enum):
    """Something that the user can do: for the next run, on the screen, or in the script."""

    GROWTH_ON = auto()
    SET_GROWTH = auto()  # on or off, as the user likes
    SET_LIMIT = auto()
    RAISE_LIMIT = auto()
    SHARE_LIMIT = auto()  # one limit for all logical devices of a card
    LEAVE_ROOM = auto()  # limits that together are less than the card
    ENLARGE_CPU_POOL = auto()
    FIND_LIMIT = auto()
    USE_CUDA_ALLOCATOR = auto()
    CHOOSE_GPUS = auto()
    USE_OTHER_GPU = auto()
    HIDE_UNUSED_GPUS = auto()
    HIDE_OTHER_GPUS = auto()  # those for which growth was not set
    XLA_REPORT = auto()
    REDUCE_BATCH = auto()
    RUN_AGAIN = auto()
    RUN_WHEN_FREE = auto()
    CHANGE_SETTINGS = auto()
    QUIT = auto()

    SHOW_POOL = auto()
    SHOW_PROCESS = auto()

    FEED_FASTER = auto()
    KEEP_NUMBERS = auto()  # the tensors that were kept are scalars
    KEEP_ARRAYS = auto()
    SEPARATE_PROCESS = auto()
    FIX_SHAPES = auto()
    FIX_ARGUMENTS = auto()
    COMPILE_ONCE = auto()

    AS_NOTICE_SAYS = auto()


@dataclass(frozen=True, slots=True)
class Remedy:
    """An action; with ``AS_NOTICE_SAYS``, ``notice`` is the notice that contains it."""

    action: Action
    notice: Notice | None = None


def raise_limit(*, on_cpu: bool) -> Remedy:
    """Return the remedy of a higher limit. On the CPU, that is a larger pool."""
    return Remedy(Action.ENLARGE_CPU_POOL if on_cpu else Action.RAISE_LIMIT)


BEHIND_THE_IMPORT = "# right after the import, before anything else:"

GROWTH = (
    "import tensorflow as tf",
    BEHIND_THE_IMPORT,
    'for gpu in tf.config.list_physical_devices("GPU"):',
    "    tf.config.experimental.set_memory_growth(gpu, True)",
)
