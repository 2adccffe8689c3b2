"""``python -m tfmemtop.engine``: one Launch on stdin, one Launched on stdout, then on its own.

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
from tfmemtop.engine.launch import Launch, Launched, SessionFolder, SessionInfo
from tfmemtop.engine.run import Runs, StartError
from tfmemtop.engine.session import describe
from tfmemtop.engine.stream import Stream
from tfmemtop.engine.terminal import PseudoTerminal
from tfmemtop.events import Terminal
from tfmemtop.recording import RecordingError, Writer


def main() -> int:
    """Be an engine; the exit code of one that could not start is in its answer too."""
    inherited = _inherited()
    # A SIGHUP before its handler is there must not end us.
    signal.signal(signal.SIGHUP, lambda *_: None)
    try:
        launch = msgspec.json.decode(sys.stdin.buffer.readline(), type=Launch)
    except msgspec.MsgspecError as error:
        return _refuse(f"this is started by tfmemtop itself, with what to run on stdin: {error}", 2)
    folder: SessionFolder | None = None
    try:
        writer = Writer(launch.record) if launch.record else None
        folder = launching.new_session()
        output_path = launching.output_folder() / f"{folder.id}.log"
        return _serve(launch, folder, output_path, writer, inherited)
    except (StartError, ValueError, RecordingError, OSError) as error:
        if folder is not None:
            folder.remove()
        return _refuse(str(error), error.exit_code if isinstance(error, StartError) else 2)


def _serve(
    launch: Launch, folder: SessionFolder, output_path: Path, writer: Writer | None, inherited: list[int]
) -> int:
    stream = Stream()
    session = describe(launch, folder.id, str(output_path))
    stream.publish(session)
    hook_listener = sockets.listen(folder.hook_socket, socket.SOCK_SEQPACKET)
    reader_listener = sockets.listen(folder.engine_socket, socket.SOCK_STREAM)
    launching.become_subreaper()
    terminal = PseudoTerminal(launch.columns, launch.rows)
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
    _detach(folder.log)
    # From here on nobody waits.
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


def _detach(log: Path) -> None:
    """Let go of the caller's stdio; what goes wrong from now on is written to the session's log."""
    nowhere = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    written = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    for descriptor, target in ((0, nowhere), (1, nowhere), (2, written)):
        os.dup2(target, descriptor)
    os.close(nowhere)
    os.close(written)


def _inherited() -> list[int]:
    """What the user's shell opened for the script: ours are not inheritable."""
    names = map(int, os.listdir("/proc/self/fd"))  # noqa: PTH208 (numbers, not paths)
    return [number for number in names if number > 2 and _is_inheritable(number)]


def _is_inheritable(descriptor: int) -> bool:
    try:
        return os.get_inheritable(descriptor)
    except OSError:
        return False  # that of the listing itself, closed again


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    # Without waiting for a thread that may hang in a driver.
    os._exit(code)
