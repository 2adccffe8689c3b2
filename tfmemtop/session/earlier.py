"""The earlier starts of a Jupyter kernel: runs of their own sessions, whose recordings are kept."""

from pathlib import Path

from tfmemtop.recording import RecordingError, read
from tfmemtop.state import State, apply
from tfmemtop.state.model import RunState

_LONG_S = 3600.0


def run_in(path: Path) -> RunState | None:
    """The last run of a recording of a session that is over; ``None`` if it cannot be read, or has none.

    Of a recording of more than an hour the lowest and the highest readings of every ten seconds are looked at.
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
        run.ended = state.now  # the next start came, so it has; its end was not recorded
    return run
