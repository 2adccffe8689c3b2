"""The sessions and recordings that the user can name on the command line, and what is read of them."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tfmemtop.cli import Refusal
from tfmemtop.cli.output import say
from tfmemtop.engine.stream.folders import SessionInfo, sessions
from tfmemtop.engine.stream.kept_sessions import is_written, kept_recordings
from tfmemtop.events import Event, Run
from tfmemtop.events.recording import Recording, RecordingError, read
from tfmemtop.events.recording.lines import lines_left_out
from tfmemtop.events.recording.outline import STRETCH_S
from tfmemtop.findings.review import LOOK_S
from tfmemtop.state import State, apply
from tfmemtop.state.figures import TOLD_BY, SessionFigures, SessionOutcome, outcome
from tfmemtop.state.model import RunState

_LONG_S = 3600.0
_WHOLE_S = 300.0
"""From a recording that is longer than an hour, reports use an outline, and all readings of the last five minutes."""


def running_sessions() -> list[SessionInfo]:
    """Return the sessions that a screen can attach to, oldest first.

    Raises:
        Refusal: the folder of the sessions cannot be searched.
    """
    try:
        return sessions()
    except OSError as error:
        raise Refusal(f"cannot look for sessions: {error}") from error


def recordings() -> list[tuple[str, Recording]]:
    """Return the kept recordings that can be read, newest first, each with the name of its session."""
    found = []
    for name, path in kept_recordings().items():
        try:
            recording = read(path)
        except RecordingError:
            continue  # its session has just begun, or the recording has just been removed
        if recording.session.id == name:  # otherwise another session has been recorded to the same file
            found.append((name, recording))
    return sorted(found, key=lambda each: each[1].session.started, reverse=True)


def is_running(path: Path, session: str) -> bool:
    """Return whether *session* goes on: its recording *path* is being written, or a screen can attach to it.

    Raises:
        Refusal: the folder of the sessions cannot be searched.
    """
    return is_written(path) or any(each.id == session for each in running_sessions())


def newest_sessions(most: int | None = None) -> tuple[list[SessionFigures], int]:
    """Return the *most* newest sessions, newest first, and the number of further ones. ``None``: all sessions."""
    attachable = {session.id: session for session in running_sessions()}
    kept = recordings()
    names = {name for name, _ in kept}
    entries: list[tuple[float, Recording | SessionInfo]] = [(each.session.started, each) for _, each in kept]
    entries += [(session.started, session) for session in attachable.values() if session.id not in names]
    entries.sort(key=lambda entry: entry[0], reverse=True)
    shown = [entry for _, entry in entries[:most]]
    figures = [
        _of(each, each.session.id in attachable) if isinstance(each, Recording) else _without(each) for each in shown
    ]
    return figures, len(entries) - len(shown)


def _of(recording: Recording, attachable: bool) -> SessionFigures:
    session, path = recording.session, recording.path
    try:
        last = outcome(recording.tail(*TOLD_BY))
        duration = recording.duration() if last.ended is None else last.ended
    except RecordingError:
        last, duration = SessionOutcome(), 0.0
    return SessionFigures(
        name=session.id,
        command=tuple(session.command),
        started=session.started,
        duration_s=duration,
        going=attachable or is_written(path),
        last=last,
        path=str(path.resolve()),
        size=path.stat().st_size,
        placement=session.placement,
    )


def _without(session: SessionInfo) -> SessionFigures:
    since = max(0.0, time.time() - session.started)
    last = SessionOutcome(kernel=session.kernel is not None, notebook=session.notebook)
    return SessionFigures(session.id, tuple(session.command), session.started, since, True, last)


def recording_path(name: str | None) -> Path:
    """Return the recording that *name* means: a file, or the recording of a session.

    *name* may be the beginning of a session's name. Without a *name*, it is the recording of the last session. If
    nothing fits, *name* is returned as a path.

    Raises:
        Refusal: no *name* is given and no session is recorded, or the names of several sessions begin with *name*.
    """
    if name is None:
        newest = next(iter(recordings()), None)
        if newest is None:
            raise Refusal("no session has been recorded yet; start one: tfmemtop -- COMMAND…")
        return newest[1].path
    if Path(name).exists() or not name.isalnum():
        return Path(name)
    kept = kept_recordings()
    found = [kept[name]] if name in kept else [path for each, path in kept.items() if each.startswith(name)]
    if len(found) > 1:
        raise Refusal(f"{len(found)} sessions begin with {name!r}; tfmemtop ls lists them")
    return found[0] if found else Path(name)


def path_and_run(name: str | None) -> tuple[str, int | None]:
    """Return the file and the run's number in a name such as ``run.jsonl:2``; the number is ``None`` if there is none.

    If a file has exactly that name, the name means this file. A session's name stands for its recording. Without a
    *name* it is the last session.

    Raises:
        Refusal: the names of several sessions begin so, or no session is recorded.
    """
    path, colon, number = (name or "").rpartition(":")
    if name and colon and path and number.isascii() and number.isdigit() and not Path(name).exists():
        return str(recording_path(path)), int(number)
    return str(recording_path(name)), None


def report_events(recording: Recording, number: int | None = None) -> Iterator[Event]:
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


def fold_recording(path: str, number: int | None = None) -> State:
    """Return the state at the end of the recording *path*, or of its run *number*. Report damaged lines on stderr.

    Raises:
        Refusal: the recording cannot be read.
    """
    state = State()
    recording = read(Path(path))
    for event in report_events(recording, number):
        if number is not None and isinstance(event, Run) and event.run > number:
            break
        apply(state, event)
    if recording.damaged:
        say(lines_left_out(recording.path, damaged=recording.damaged, unknown=recording.unknown))
    return state


class RecordedRun(NamedTuple):
    """A run in the recording *path*: number *number*, or the last if that is ``None``. *state* is that at its end."""

    path: str
    number: int | None
    state: State
    run: RunState


def recorded_run(name: str | None) -> RecordedRun:
    """Return the run that *name* means.

    Raises:
        Refusal: the recording cannot be read, or it has no such run.
    """
    path, number = path_and_run(name)
    state = fold_recording(path, number)
    if state.run is None or number not in (None, state.run.run):
        raise no_run(path, number)
    return RecordedRun(path, number, state, state.run)


def no_run(path: str, number: int | None) -> Refusal:
    """Return the refusal for a recording *path* that contains no run, or no run with that *number*."""
    return Refusal(f"{path} holds no run" + ("" if number is None else f" {number}"))
