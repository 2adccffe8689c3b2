"""The reason why a search stopped before its end, as a value. Pure."""

from dataclasses import dataclass
from enum import Enum

from tfmemtop.events import Notice, StillHeld


class Why(Enum):
    """What stopped the search."""

    INTERRUPTED = "interrupted"
    OTHER_RUN = "other_run"  # the user started another run
    RUN_ENDED = "run_ended"  # the user ended the run of a try
    MEMORY_HELD = "memory_held"  # the last try's memory did not become free
    NOT_STARTED = "not_started"  # the script could not be started; ``notice`` has the reason
    ENGINE_GONE = "engine_gone"


@dataclass(frozen=True, slots=True)
class Stopped:
    """The reason. ``held`` is the memory that did not become free, ``notice`` reports that no script was started."""

    why: Why
    held: StillHeld | None = None
    notice: Notice | None = None
