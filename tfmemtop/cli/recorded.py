"""Reads the recordings that are named on the command line."""

from collections.abc import Iterator
from pathlib import Path

from tfmemtop.cli import Refusal, usage
from tfmemtop.cli.known_sessions import recording_of
from tfmemtop.cli.saying import say
from tfmemtop.events import Event, Run
from tfmemtop.events.recording import Recording, RecordingError, read
from tfmemtop.events.recording.errors import lines_left_out, recording_text
from tfmemtop.events.recording.outline import STRETCH_S
from tfmemtop.findings.run_review import LOOK_S
from tfmemtop.state import State, apply

_LONG_S = 3600.0
_WHOLE_S = 300.0
"""From a recording that is longer than an hour, reports use an outline, and all readings of the last five minutes."""


def numbered(name: str | None) -> tuple[str, int | None]:
    """Return the file and the run's number in a name such as ``run.jsonl:2``; the number is ``None`` if there is none.

    If a file has exactly that name, the name means this file. A session's name stands for its recording. Without a
    *name* it is the last session.

    Raises:
        Refusal: the names of several sessions begin so, or no session is recorded.
    """
    path, colon, number = (name or "").rpartition(":")
    if name and colon and path and number.isascii() and number.isdigit() and not Path(name).exists():
        return str(recording_of(path)), int(number)
    return str(recording_of(name)), None


def told(recording: Recording, number: int | None = None) -> Iterator[Event]:
    """Return the events for a report on run *number*, or on the last run: all events, or an outline of a long session.

    Raises:
        RecordingError: the file can no longer be read.
    """
    if not _is_long(recording):
        return recording.events()
    runs = {event.run: event.t for event in recording.tail(Run) if isinstance(event, Run)}
    end = runs.get(number + 1, recording.duration()) if number is not None else recording.duration()
    return recording.outline(end - _WHOLE_S, end)


def spacing_s(recording: Recording) -> float:
    """Return the seconds between two moments that a report examines: with an outline, those between its readings."""
    return STRETCH_S if _is_long(recording) else LOOK_S


def _is_long(recording: Recording) -> bool:
    return recording.duration() > _LONG_S


def fold(path: str, number: int | None = None) -> State:
    """Return the state at the end of the recording *path*, or of its run *number*. Report damaged lines on stderr.

    Raises:
        Refusal: the recording cannot be read.
    """
    state = State()
    try:
        recording = read(Path(path))
        for event in told(recording, number):
            if number is not None and isinstance(event, Run) and event.run > number:
                break
            apply(state, event)
    except RecordingError as error:
        raise Refusal(recording_text(error)) from error
    if recording.damaged:
        say(lines_left_out(recording.path, damaged=recording.damaged, unknown=recording.unknown))
    return state


def no_run(path: str, number: int | None) -> Refusal:
    """Return the refusal for a recording *path* that contains no run, or no run with that *number*."""
    return Refusal(usage.no_run(path, number))
