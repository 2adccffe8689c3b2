"""The engine's course: one Launch on stdin, one Launched on stdout, then on its own.

The order is the point: the script is started before anything that it does not need is imported.
"""

import os
import shutil
import signal
import socket
import sys
import time
import traceback
from pathlib import Path

import msgspec

from tfmemtop.engine import launch as launching
from tfmemtop.engine import sockets
from tfmemtop.engine.daemon import become_subreaper, detach
from tfmemtop.engine.keeper import Keeper
from tfmemtop.engine.launch import Launch, Launched, SessionFolder, SessionInfo
from tfmemtop.engine.run import Runs, StartError
from tfmemtop.engine.session import describe
from tfmemtop.engine.stream import Stream
from tfmemtop.engine.terminal import PseudoTerminal
from tfmemtop.events import Terminal
from tfmemtop.recording import RecordingError, Writer


def main(terminal: PseudoTerminal, keeper: Keeper, inherited: list[int]) -> int:
    """Be an engine; the exit code of one that could not start is in its answer too.

    *inherited* descriptors are passed on to the script.
    """
    # A SIGHUP before its handler is there must not end us.
    signal.signal(signal.SIGHUP, lambda *_: None)
    try:
        launch = msgspec.json.decode(sys.stdin.buffer.readline(), type=Launch)
    except msgspec.MsgspecError as error:
        return _refuse(f"this is started by tfmemtop itself, with what to run on stdin: {error}", 2)
    terminal.resize(launch.columns, launch.rows)
    folder: SessionFolder | None = None
    try:
        writer = Writer(launch.record) if launch.record else None
        folder = launching.new_session()
        output_path = launching.output_folder() / f"{folder.id}.log"
        keeper.output_goes_to(str(output_path))
        return _serve(launch, folder, terminal, output_path, writer, inherited)
    except (StartError, ValueError, RecordingError, OSError) as error:
        if folder is not None:
            folder.remove()
        return _refuse(str(error), error.exit_code if isinstance(error, StartError) else 2)


def _serve(
    launch: Launch,
    folder: SessionFolder,
    terminal: PseudoTerminal,
    output_path: Path,
    writer: Writer | None,
    inherited: list[int],
) -> int:
    stream = Stream()
    session = describe(launch, folder.id, str(output_path))
    stream.publish(session)
    hook_listener = sockets.listen(folder.hook_socket, socket.SOCK_SEQPACKET)
    reader_listener = sockets.listen(folder.engine_socket, socket.SOCK_STREAM)
    become_subreaper()
    stream.publish(Terminal(t=0.0, columns=launch.columns, rows=launch.rows))
    runs = Runs(
        stream,
        cwd=launch.cwd,
        environment=launch.environment | launching.variables_beyond_json(),
        interval_s=launch.interval_s,
        hook_socket=folder.hook_socket,
        terminal=terminal,
    )
    if launch.argv:
        runs.start(launch.argv, launch.settings)
    for descriptor in inherited:
        os.close(descriptor)
    folder.describe(
        SessionInfo(
            id=folder.id,
            pid=os.getpid(),
            started=time.time(),
            command=launch.argv,
            cwd=launch.cwd,
            socket=str(folder.engine_socket),
            output_path=str(output_path),
        )
    )
    _answer(Launched(id=folder.id, socket=str(folder.engine_socket), output_path=str(output_path)))
    detach(str(folder.log))
    # From here on nobody waits, and what goes wrong is written to the log.
    try:
        launching.forget_old_outputs()
    except OSError:
        traceback.print_exc()
    import asyncio

    from tfmemtop.engine.core import Engine
    from tfmemtop.engine.recorder import Recorder

    engine = Engine(
        stream,
        runs,
        hook_listener=hook_listener,
        reader_listener=reader_listener,
        terminal=terminal,
        output_path=output_path,
        recorder=Recorder(stream, writer) if writer else None,
        probe=launch.probe,
    )
    try:
        asyncio.run(engine.serve())
    except Exception:
        traceback.print_exc()
        return 1
    finally:
        if folder.log.exists() and folder.log.stat().st_size:
            # What went wrong in here outlives the folder.
            shutil.copyfile(folder.log, output_path.with_suffix(".engine.log"))
        folder.remove()
    return 0


def _answer(launched: Launched) -> None:
    sys.stdout.buffer.write(msgspec.json.encode(launched) + b"\n")
    sys.stdout.buffer.flush()


def _refuse(text: str, exit_code: int) -> int:
    _answer(Launched(error=text, exit_code=exit_code))
    return exit_code
