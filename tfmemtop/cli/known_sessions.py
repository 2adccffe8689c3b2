"""The sessions that the user can name on the command line: those that go on, and those with a kept recording."""

import time
from pathlib import Path

from tfmemtop.cli import Refusal, usage
from tfmemtop.engine.stream.folders import SessionInfo, sessions
from tfmemtop.engine.stream.kept_sessions import is_written, kept_recordings
from tfmemtop.events.recording import Recording, RecordingError, read
from tfmemtop.state.outcome import TOLD_BY, SessionFigures, SessionOutcome, outcome


def going() -> list[SessionInfo]:
    """Return the sessions that a screen can attach to, oldest first.

    Raises:
        Refusal: the folder of the sessions cannot be searched.
    """
    try:
        return sessions()
    except OSError as error:
        raise Refusal(usage.unsearchable(error)) from error


def recorded() -> list[tuple[str, Recording]]:
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


def alive(path: Path, session: str) -> bool:
    """Return whether *session* goes on: its recording *path* is being written, or a screen can attach to it.

    Raises:
        Refusal: the folder of the sessions cannot be searched.
    """
    return is_written(path) or any(each.id == session for each in going())


def known(most: int | None = None) -> tuple[list[SessionFigures], int]:
    """Return the *most* newest sessions, newest first, and the number of further ones. ``None``: all sessions."""
    alive = {session.id: session for session in going()}
    kept = recorded()
    names = {name for name, _ in kept}
    entries: list[tuple[float, Recording | SessionInfo]] = [(each.session.started, each) for _, each in kept]
    entries += [(session.started, session) for session in alive.values() if session.id not in names]
    entries.sort(key=lambda entry: entry[0], reverse=True)
    shown = [entry for _, entry in entries[:most]]
    told = [_of(each, each.session.id in alive) if isinstance(each, Recording) else _without(each) for each in shown]
    return told, len(entries) - len(shown)


def _of(recording: Recording, attachable: bool) -> SessionFigures:
    session, path = recording.session, recording.path
    try:
        last, duration = outcome(recording.tail(*TOLD_BY)), recording.duration()
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


def recording_of(name: str | None) -> Path:
    """Return the recording that *name* means: a file, or the recording of a session.

    *name* may be the beginning of a session's name. Without a *name*, it is the recording of the last session. If
    nothing fits, *name* is returned as a path.

    Raises:
        Refusal: no *name* is given and no session is recorded, or the names of several sessions begin with *name*.
    """
    if name is None:
        newest = next(iter(recorded()), None)
        if newest is None:
            raise Refusal(usage.NONE_RECORDED)
        return newest[1].path
    if Path(name).exists() or not name.isalnum():
        return Path(name)
    kept = kept_recordings()
    found = [kept[name]] if name in kept else [path for each, path in kept.items() if each.startswith(name)]
    if len(found) > 1:
        raise Refusal(usage.begin_alike(len(found), name))
    return found[0] if found else Path(name)
