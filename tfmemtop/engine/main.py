"""The engine from its start to its end.

It reads one Launch from stdin, answers on a descriptor of its own, and then goes on by itself. The script is started
last, after everything that can fail.
"""

import asyncio
import os
import shutil
import signal
import sys
import time
import traceback
from pathlib import Path

import msgspec

from tfmemtop.engine.engine import Engine
from tfmemtop.engine.process.command import readable
from tfmemtop.engine.process.daemon import detach
from tfmemtop.engine.process.descriptors import take_many
from tfmemtop.engine.process.exporter import open_exporter
from tfmemtop.engine.process.keeper import Keeper
from tfmemtop.engine.process.launch import Launch, Launched
from tfmemtop.engine.process.terminal import PseudoTerminal
from tfmemtop.engine.process.unstarted import StartError, Unstarted, Why
from tfmemtop.engine.session_event import describe, watched
from tfmemtop.engine.stream import kernel_starts
from tfmemtop.engine.stream.folders import (
    SessionFolder,
    SessionInfo,
    forget_old_outputs,
    open_session,
    output_folder,
)
from tfmemtop.engine.stream.kept_sessions import forget_old_recordings, kept_elsewhere, place_for
from tfmemtop.engine.stream.recorder import session_unrecorded
from tfmemtop.engine.stream.stream import Stream
from tfmemtop.engine.stream.thinner import Thinner
from tfmemtop.engine.watch import Watch
from tfmemtop.events import NoticeKind, Terminal
from tfmemtop.recording import RecordingError, Writer
from tfmemtop.words.unusable import unusable

_REFUSALS = (StartError, ValueError, RecordingError, OSError)


class Answers:
    """What is said to the process that starts the engine, on a descriptor of its own."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self.closed = False
        """Whether the start is over: the script runs."""

    def give(self, launched: Launched) -> None:
        """Say how far the start has come."""
        try:
            os.write(self._descriptor, launched.encode())
        except OSError:
            return  # the command that started this has gone; the session can still be attached to

    def close(self) -> None:
        """Say that there is no more."""
        os.close(self._descriptor)
        self.closed = True


def run(terminal: PseudoTerminal, keeper: Keeper, inherited: list[int], answers: int) -> int:
    """Run the engine. If it or the script cannot be started, the answer says why; any other failure makes this 1.

    *inherited* descriptors are passed on to the script; answers are written to the descriptor *answers*.
    """
    told = Answers(answers)
    take_many()
    # A SIGHUP before its handler is there must not end us.
    signal.signal(signal.SIGHUP, lambda *_: None)
    # Slurm may send these to every process of a task. They are the script's, which gets its own handling back.
    for number in (signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(number, signal.SIG_IGN)
    folder: SessionFolder | None = None
    try:
        launch = Launch.decode(sys.stdin.buffer.read())
        terminal.resize(launch.columns, launch.rows)
        folder = open_session(lambda made: _info(launch, made))
        return _serve(_numbered(launch, folder.id), folder, terminal, keeper, inherited, told)
    except _REFUSALS as error:
        if folder is not None:
            folder.remove()
        told.give(Launched(error=_unstarted(error)))
        return 0


def _info(launch: Launch, folder: SessionFolder) -> SessionInfo:
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
        output_path=_output_path(launch, folder),
    )


def _numbered(launch: Launch, session: str) -> Launch:
    """The *launch* of a kernel with the number of this start, and the sessions of those before it."""
    if launch.kernel is None:
        return launch
    try:
        start, earlier = kernel_starts.begin(launch.kernel.shared, session)
    except OSError:
        return launch  # there is no place for recordings either, which a notice says
    return msgspec.structs.replace(launch, kernel=msgspec.structs.replace(launch.kernel, start=start, earlier=earlier))


def _output_path(launch: Launch, folder: SessionFolder) -> str | None:
    """Where the script's output is kept; ``None`` if there is no place for it, or no script."""
    try:
        return str(output_folder() / f"{folder.id}.log") if _has_terminal(launch) else None
    except OSError:
        return None


def _has_terminal(launch: Launch) -> bool:
    """Whether the script's terminal is the engine's. A kernel has its standard streams from Jupyter."""
    return bool(launch.argv) and launch.kernel is None


def _serve(
    launch: Launch,
    folder: SessionFolder,
    terminal: PseudoTerminal,
    keeper: Keeper,
    inherited: list[int],
    answers: Answers,
) -> int:
    output_path = _output_path(launch, folder)
    try:
        asyncio.run(_session(launch, folder, terminal, keeper, inherited, answers))
    except _REFUSALS:
        if not answers.closed:
            raise
        traceback.print_exc()
        return 1
    except Exception:
        traceback.print_exc()
        return 1
    finally:
        _keep_log(folder, output_path)
        folder.remove()
    return 0


async def _session(
    launch: Launch,
    folder: SessionFolder,
    terminal: PseudoTerminal,
    keeper: Keeper,
    inherited: list[int],
    answers: Answers,
) -> None:
    stream = Stream()
    output_path = _output_path(launch, folder)
    session = describe(launch, folder.id, output_path)
    stream.publish(session)
    stream.publish(Terminal(t=stream.now(), columns=launch.columns, rows=launch.rows))

    def keep() -> None:
        # The user did not name it, and a second process of the same session goes into the same recording.
        if launch.keep and not engine.watch.recorded:
            _keep(stream, folder.id, engine.watch)

    path = Path(output_path) if output_path else None
    exporter = open_exporter(stream, launch.export, session)
    async with Engine(stream, launch, folder, terminal, path, keep, exporter) as engine:
        first = await engine.watch.prepare(launch.argv, launch.settings) if launch.argv else None
        writer = Writer(launch.record) if launch.record else None
        if output_path is not None:
            keeper.output_goes_to(output_path)
        elif _has_terminal(launch):
            stream.notice("output_file", NoticeKind.OUTPUT_FILE_MISSING)
        os.chdir("/")  # no file system is to be kept busy; the script starts where the user is
        answer = Launched(id=folder.id, socket=str(folder.engine_socket), output_path=output_path)
        answers.give(answer)
        engine.begin()
        if first is not None:
            engine.watch.start(first)
        elif launch.attach is not None and not engine.watch.attach(launch.attach, inject=launch.inject):
            raise StartError(Unstarted(Why.NO_PROCESS, str(launch.attach)))
        for descriptor in inherited:
            os.close(descriptor)
        given = first.environment if first is not None and launch.kernel is not None else None
        answers.give(msgspec.structs.replace(answer, started=True, environment=given))
        answers.close()
        # From here on no command waits for an answer. Errors are written to the log.
        detach(str(folder.log))
        if writer is not None:
            engine.watch.record(writer)
            if launch.keep:
                kept_elsewhere(folder.id, writer.path)
        elif launch.keep and (launch.argv or launch.attach is not None):
            _keep(stream, folder.id, engine.watch)
        _forget_old()
        await engine.done()


def _keep(stream: Stream, session: str, watch: Watch) -> None:
    """Make the recording that is kept of every session, if there is a place for one."""
    try:
        watch.record(Writer(place_for(session)), Thinner())
    except (OSError, RecordingError) as error:
        session_unrecorded(stream, error)


def _forget_old() -> None:
    for forget in (forget_old_outputs, forget_old_recordings, kernel_starts.forget_old):
        try:
            forget()
        except OSError:
            traceback.print_exc()


def _keep_log(folder: SessionFolder, output_path: str | None) -> None:
    """Copy the log of this engine, if it holds anything, to where it outlives the folder."""
    try:
        if output_path and folder.log.stat().st_size:
            shutil.copyfile(folder.log, Path(output_path).with_suffix(".engine.log"))
    except OSError:
        return  # there is no log, or no room for it where outputs are kept


def _unstarted(error: Exception) -> Unstarted:
    if isinstance(error, StartError):
        return error.unstarted
    if isinstance(error, OSError) and error.filename:
        return Unstarted(Why.REFUSED, detail=f"{error.filename}: {error.strerror}")
    return Unstarted(Why.REFUSED, detail=unusable(error))
