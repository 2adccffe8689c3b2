"""Steps at the beginning of a session: for an engine, in a process of its own or in a screen's, and for ``record``."""

import asyncio
import os
import pwd
import shutil
import socket
import time
from collections.abc import Callable, Coroutine
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import tfmemtop
from tfmemtop.engine.own_thread import OwnThread
from tfmemtop.engine.process.launch import Launch, Launched, readable
from tfmemtop.engine.sources.cgroup import host_memory
from tfmemtop.engine.sources.processes import read_command, read_environment
from tfmemtop.engine.stream.complaints import complain
from tfmemtop.engine.stream.folders import SessionFolder, SessionInfo, open_session
from tfmemtop.engine.stream.kept_sessions import forget_old
from tfmemtop.engine.stream.stream import Stream
from tfmemtop.events import FORMAT, Session
from tfmemtop.events.recording import RecordingError
from tfmemtop.events.unstarted import StartError, Unstarted, Why
from tfmemtop.failure import facts_of
from tfmemtop.findings.start_errors import unusable
from tfmemtop.home import output_folder
from tfmemtop.placement import placement

if TYPE_CHECKING:
    from tfmemtop.engine.exporter import Exporter

_REFUSALS = (StartError, ValueError, RecordingError, OSError)
"""The exceptions of a start that fails for a foreseen reason."""


class Answers(Protocol):
    """Takes the answers for the process, or the thread, that starts an engine."""

    @property
    def closed(self) -> bool:
        """Whether the start is complete, so that the engine serves screens and the script runs."""

    def give(self, launched: Launched) -> None:
        """Take *launched*, which reports how far the start has come."""


def serve(launch: Launch, session: Callable[[SessionFolder], Coroutine[None, None, None]], answers: Answers) -> int:
    """Run a whole *session* of *launch* in a folder of its own. Return the engine's exit code.

    If the session cannot be started, the answer contains the reason, and for a foreseen reason the exit code is 0.
    """
    try:
        with closing(open_session(lambda made: _info(launch, made))) as folder:
            try:
                asyncio.run(session(folder))
            except Exception as error:
                if answers.closed or not isinstance(error, _REFUSALS):
                    complain()
                raise
            finally:
                _keep_log(launch, folder)
    except Exception as error:
        if answers.closed:
            return 1
        answers.give(Launched(error=unstarted(error)))
        return 0 if isinstance(error, _REFUSALS) else 1
    return 0


def _info(launch: Launch, folder: SessionFolder) -> SessionInfo:
    """Return the description by which other processes find the session in *folder*. This process has its engine."""
    return SessionInfo(
        id=folder.id,
        pid=os.getpid(),
        started=time.time(),
        command=watched(launch),
        reads=launch.attach,
        kernel=launch.kernel.pid if launch.kernel else None,
        connection=readable(launch.kernel.connection) if launch.kernel else None,
        notebook=readable(launch.kernel.notebook) if launch.kernel and launch.kernel.notebook else None,
        socket=str(folder.engine_socket),
        output_path=output_for(launch, folder),
    )


def output_for(launch: Launch, folder: SessionFolder) -> str | None:
    """Return the path of the file for the script's output.

    ``None`` if no script runs in the engine's terminal, or the folder for outputs cannot be made.
    """
    try:
        return str(output_folder() / f"{folder.id}.log") if has_terminal(launch) else None
    except OSError:
        return None


def has_terminal(launch: Launch) -> bool:
    """Return whether a script runs in the engine's terminal. A kernel has its standard streams from Jupyter."""
    return bool(launch.argv) and launch.kernel is None


def _keep_log(launch: Launch, folder: SessionFolder) -> None:
    """Copy the log of this engine, if it is not empty, beside the kept output. The session's folder is removed."""
    output_path = output_for(launch, folder)
    try:
        if output_path and folder.log.stat().st_size:
            shutil.copyfile(folder.log, Path(output_path).with_suffix(".engine.log"))
    except OSError:
        return  # there is no log, or the folder of kept outputs has no room for it


def open_stream(launch: Launch, folder: SessionFolder, output_path: str | None) -> "tuple[Stream, Exporter | None]":
    """Return the stream of a session, which begins with its description, and the exporter of its metrics, if any.

    Raises:
        StartError: the metrics cannot be exported as requested.
    """
    stream = Stream()
    session = describe(launch, folder.id, output_path)
    stream.publish(session)
    if launch.export is None:
        return stream, None
    from tfmemtop.engine.exporter import open_exporter  # here, since most sessions do not need it

    return stream, open_exporter(stream, launch.export, session)


def begin_to_forget() -> None:
    """Remove outputs, recordings and lists of kernel starts that are old. Log what cannot be removed.

    This is done in a thread, since the file system may not answer.
    """
    OwnThread("old files").submit(_forget)


def _forget() -> None:
    try:
        forget_old()
    except OSError:
        complain()


def unstarted(error: Exception) -> Unstarted:
    """Return why the start failed with *error*."""
    if isinstance(error, StartError):
        return error.unstarted
    if isinstance(error, _REFUSALS):
        return Unstarted(Why.REFUSED, detail=unusable(error))
    return Unstarted(Why.ENGINE_FAILED, detail=facts_of(error))


def describe(launch: Launch, id: str, output_path: str | None) -> Session:
    """Return the event that begins a session: its command, its user, its machine. Its time is 0 by definition."""
    memory = host_memory()
    host = socket.gethostname()
    return Session(
        t=0.0,
        format=FORMAT,
        version=tfmemtop.__version__,
        id=id,
        started=time.time(),
        host=host,
        user=_user(),
        host_memory=memory.total,
        host_memory_of=memory.owner,
        cores=os.cpu_count() or 1,
        interval_s=launch.interval_s,
        holders_interval_s=launch.holders_interval_s,
        command=watched(launch),
        output_path=output_path,
        placement=placement(_environment(launch), host),
    )


def watched(launch: Launch) -> list[str]:
    """Return the command line that is watched: the script's, or that of the process that is read from outside."""
    if launch.attach is not None:
        return read_command(launch.attach)
    return [readable(argument) for argument in launch.argv]


def _environment(launch: Launch) -> dict[str, str]:
    if launch.attach is None:
        return launch.environment
    try:
        return read_environment(launch.attach)
    except OSError:
        return {}  # the process has ended, or belongs to another user: its placement is not known


def _user() -> str:
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())
