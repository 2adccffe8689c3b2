"""What the beginning of a session takes, in whichever process its engine is."""

import os
import time

from tfmemtop.engine.process.command import readable
from tfmemtop.engine.process.launch import Launch
from tfmemtop.engine.process.unstarted import StartError, Unstarted, Why
from tfmemtop.engine.session_event import watched
from tfmemtop.engine.stream import kernel_starts
from tfmemtop.engine.stream.complaints import complain
from tfmemtop.engine.stream.folders import SessionFolder, SessionInfo, forget_old_outputs, output_folder
from tfmemtop.engine.stream.kept_sessions import forget_old_recordings, place_for
from tfmemtop.engine.stream.recorder import session_unrecorded
from tfmemtop.engine.stream.stream import Stream
from tfmemtop.engine.stream.thinner import Thinner
from tfmemtop.engine.watch import Watch
from tfmemtop.recording import RecordingError, Writer
from tfmemtop.words.unusable import unusable

REFUSALS = (StartError, ValueError, RecordingError, OSError)
"""What stands in the way of a start, as far as it can be foreseen; :func:`unstarted` says it."""


def info(launch: Launch, folder: SessionFolder) -> SessionInfo:
    """How others find the session in *folder*; its engine is in this process."""
    return SessionInfo(
        id=folder.id,
        pid=os.getpid(),
        started=time.time(),
        command=watched(launch),
        reads=launch.attach,
        injects=launch.inject,
        kernel=launch.kernel.pid if launch.kernel else None,
        connection=readable(launch.kernel.connection) if launch.kernel else None,
        notebook=readable(launch.kernel.notebook) if launch.kernel and launch.kernel.notebook else None,
        socket=str(folder.engine_socket),
        output_path=output_for(launch, folder),
    )


def output_for(launch: Launch, folder: SessionFolder) -> str | None:
    """Where the script's output is kept; ``None`` if there is no place for it, or no script."""
    try:
        return str(output_folder() / f"{folder.id}.log") if has_terminal(launch) else None
    except OSError:
        return None


def has_terminal(launch: Launch) -> bool:
    """Whether the script's terminal is the engine's. A kernel has its standard streams from Jupyter."""
    return bool(launch.argv) and launch.kernel is None


def keep_recording(stream: Stream, session: str, watch: Watch) -> None:
    """Make the recording that is kept of every session, if there is a place for one."""
    try:
        watch.record(Writer(place_for(session)), Thinner())
    except (OSError, RecordingError) as error:
        session_unrecorded(stream, error)


def forget_old() -> None:
    """Remove what was kept of sessions long ago."""
    for forget in (forget_old_outputs, forget_old_recordings, kernel_starts.forget_old):
        try:
            forget()
        except OSError:
            complain()


def unstarted(error: Exception) -> Unstarted:
    """One of the :data:`REFUSALS` as a fact."""
    if isinstance(error, StartError):
        return error.unstarted
    if isinstance(error, OSError) and error.filename:
        return Unstarted(Why.REFUSED, detail=f"{error.filename}: {error.strerror}")
    return Unstarted(Why.REFUSED, detail=unusable(error))
