"""The earlier starts of a Jupyter kernel. Each start is a run in a session of its own, whose recording is kept."""

from pathlib import Path

from tfmemtop.events.recording import RecordingError, read
from tfmemtop.state import State, apply
from tfmemtop.state.model import RunState

_LONG_S = 3600.0


def run_in(path: Path) -> RunState | None:
    """Return the last run in the recording of a session that is over.

    The result is ``None`` if the recording cannot be read or contains no run. From a recording of more than an hour,
    only the lowest and the highest readings of every ten seconds are used.
    """
    state = State()
    try:
        recording = read(path)
        end = recording.duration()
        for event in recording.outline(end, end) if end > _LONG_S else recording.events():
            apply(state, event)
    except RecordingError:
        return None
    run = state.run
    if run is not None and run.ended is None:
        run.ended = state.now  # the kernel was started again, so this run has ended; its end was not recorded
    return run
