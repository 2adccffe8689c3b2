"""The reason why a search stopped before its end, as a value. Pure."""

from dataclasses import dataclass
from enum import Enum

from tfmemtop.events import Held


class Why(Enum):
    """What stopped the search."""

    INTERRUPTED = "interrupted"
    OTHER_RUN = "other_run"  # the user started another run
    RUN_ENDED = "run_ended"  # the user ended the run of a try
    MEMORY_HELD = "memory_held"  # the last try's memory did not become free
    NOT_STARTED = "not_started"  # the script could not be started; ``detail`` has the reason
    ENGINE_GONE = "engine_gone"


@dataclass(frozen=True, slots=True)
class Stopped:
    """The reason. ``detail`` is why the script was not started, ``held`` is the memory that did not become free."""

    why: Why
    detail: str = ""
    held: Held | None = None
