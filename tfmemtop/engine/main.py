"""The engine's course: one Launch on stdin, answers on a descriptor of their own, then by itself.

The order is the point: the script is started last, once everything that can fail has been done.
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

from tfmemtop.engine.core import Engine
from tfmemtop.engine.daemon import detach
from tfmemtop.engine.folders import SessionFolder, SessionInfo, forget_old_outputs, open_session, output_folder
from tfmemtop.engine.keeper import Keeper
from tfmemtop.engine.launch import Launch, Launched
from tfmemtop.engine.recorder import Recorder
from tfmemtop.engine.run import Runs, StartError, readable
from tfmemtop.engine.session import describe
from tfmemtop.engine.stream import Stream
from tfmemtop.engine.terminal import PseudoTerminal
from tfmemtop.events import Terminal
from tfmemtop.recording import RecordingError, Writer


def run(terminal: PseudoTerminal, keeper: Keeper, inherited: list[int], answers: int) -> int:
    """Be an engine. What keeps it or the script from starting is in its answer; another failure makes it 1.

    *inherited* descriptors are passed on to the script; answers are written to the descriptor *answers*.
    """
    # A SIGHUP before its handler is there must not end us.
    signal.signal(signal.SIGHUP, lambda *_: None)
    folder: SessionFolder | None = None
    try:
        launch = Launch.decode(sys.stdin.buffer.read())
        terminal.resize(launch.columns, launch.rows)
        folder = open_session(lambda made: _info(launch, made))
        return _serve(launch, folder, terminal, keeper, inherited, answers)
    except (StartError, ValueError, RecordingError, OSError) as error:
        if folder is not None:
            folder.remove()
        code = error.exit_code if isinstance(error, StartError) else 2
        _answer(answers, Launched(error=_said(error), exit_code=code))
        return 0


def _info(launch: Launch, folder: SessionFolder) -> SessionInfo:
    return SessionInfo(
        id=folder.id,
        pid=os.getpid(),
        started=time.time(),
        command=[readable(argument) for argument in launch.argv],
        socket=str(folder.engine_socket),
        output_path=_output_path(launch, folder),
    )


def _output_path(launch: Launch, folder: SessionFolder) -> str | None:
    """Where the script's output is to be kept; ``None`` where there is no place for it, or no script."""
    try:
        return str(output_folder() / f"{folder.id}.log") if launch.argv else None
    except OSError:
        return None


def _serve(
    launch: Launch,
    folder: SessionFolder,
    terminal: PseudoTerminal,
    keeper: Keeper,
    inherited: list[int],
    answers: int,
) -> int:
    stream = Stream()
    output_path = _output_path(launch, folder)
    stream.publish(describe(launch, folder.id, output_path))
    stream.publish(Terminal(t=0.0, columns=launch.columns, rows=launch.rows))
    runs = Runs(stream, launch, hook_socket=folder.hook_socket, terminal=terminal)
    if launch.argv:
        runs.prepare(launch.argv, launch.settings)
    writer = Writer(launch.record) if launch.record else None
    if output_path is not None:
        keeper.output_goes_to(output_path)
    elif launch.argv:
        stream.notice("output_file", "warning", "the script's output is kept in no file", "make room in your home")
    engine = Engine(
        stream,
        runs,
        hook_listener=folder.hooks,
        reader_listener=folder.readers,
        terminal=terminal,
        output_path=Path(output_path) if output_path else None,
        recorder=Recorder(stream, writer) if writer else None,
        probe=launch.probe,
    )
    os.chdir("/")  # no file system is to be kept busy; the script starts where the user is

    def start() -> None:
        answer = Launched(id=folder.id, socket=str(folder.engine_socket), output_path=output_path)
        _answer(answers, answer)
        if launch.argv:
            runs.start(launch.argv, launch.settings)
        for descriptor in inherited:
            os.close(descriptor)
        _answer(answers, msgspec.structs.replace(answer, started=True))
        os.close(answers)
        # From here on nobody waits, and what goes wrong is written to the log.
        detach(str(folder.log))
        try:
            forget_old_outputs()
        except OSError:
            traceback.print_exc()

    try:
        asyncio.run(engine.serve(start))
    except StartError:
        raise
    except Exception:
        traceback.print_exc()
        return 1
    finally:
        _keep_log(folder, output_path)
        folder.remove()
    return 0


def _keep_log(folder: SessionFolder, output_path: str | None) -> None:
    """What went wrong in here outlives the folder."""
    try:
        if output_path and folder.log.stat().st_size:
            shutil.copyfile(folder.log, Path(output_path).with_suffix(".engine.log"))
    except OSError:
        return  # there is no log, or no room for it where outputs are kept


def _answer(answers: int, launched: Launched) -> None:
    try:
        os.write(answers, msgspec.json.encode(launched) + b"\n")
    except OSError:
        return  # whoever started this has gone; the session is there to attach to


def _said(error: Exception) -> str:
    if isinstance(error, OSError) and error.filename:
        return f"{error.filename}: {error.strerror}"
    return str(error)
