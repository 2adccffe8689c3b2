"""The outcome of a session, for the list of sessions. The end of the session's events is enough for it. Pure."""

from collections.abc import Iterable

import msgspec

from tfmemtop import events
from tfmemtop.events.device_names import is_pinned
from tfmemtop.events.runs import Ending
from tfmemtop.placement import Placement

TOLD_BY = (events.Run, events.RunEnd, events.Allocator, events.Outside)
"""The events that :func:`outcome` needs."""


class SessionOutcome(msgspec.Struct, frozen=True):
    """The last run of a session: its number and how it ended.

    ``peak_in_use`` is the highest of all runs on one device, in bytes, where known. ``kernel`` is true for a Jupyter
    kernel. Each start of a kernel is a session of its own. ``notebook`` is the file of its notebook, where known.
    """

    run: int | None = None
    ending: Ending | None = None
    peak_in_use: int | None = None
    kernel: bool = False
    notebook: str | None = None
    left: bool = False  # tfmemtop had not started it and no longer reads it, and it went on


class SessionFigures(msgspec.Struct, frozen=True):
    """A session. ``path``, and ``size`` in bytes, are those of its recording, ``None`` if there is none.

    Times are in seconds, ``started`` since 1970. A session is ``going`` as long as it can be attached to, or its
    recording is written.
    """

    name: str
    command: tuple[str, ...]
    started: float
    duration_s: float
    going: bool
    last: SessionOutcome
    path: str | None = None
    size: int | None = None
    placement: Placement | None = None

    @property
    def running(self) -> bool:
        """Whether its script has not ended."""
        return self.going and self.last.ending is None


def outcome(stream: Iterable[events.Event]) -> SessionOutcome:
    """Return the outcome of the session in *stream*. Only its events of the classes in :data:`TOLD_BY` are needed."""
    run: int | None = None
    ending: Ending | None = None
    peak: int | None = None
    left = False
    kernel, notebook = False, None
    for event in stream:
        match event:
            case events.Run():
                run, ending, left = event.run, None, False
                kernel, notebook = event.kernel is not None, event.notebook
            case events.RunEnd():
                run, ending = event.run, event.ending
            case events.Outside():
                left = event.state is events.OutsideState.LEFT
            case events.Allocator() if not is_pinned(event.device):
                peak = max((size for size in (peak, event.in_use, event.peak) if size is not None), default=None)
            case _:
                pass
    return SessionOutcome(run, ending, peak, kernel, notebook, left)
