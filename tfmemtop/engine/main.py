"""Runs the engine from its start to its end.

It reads one :class:`Launch` from stdin, writes its answers to a separate file descriptor, and then goes on by itself.
The script is started last, after everything that can fail.
"""

import asyncio
import ctypes
import os
import shutil
import signal
import sys
from pathlib import Path

import msgspec

from tfmemtop.engine.engine import Engine
from tfmemtop.engine.opening import (
    REFUSALS,
    forget_old,
    has_terminal,
    info,
    output_for,
    unstarted,
)
from tfmemtop.engine.process.daemon import detach
from tfmemtop.engine.process.keeper import Keeper
from tfmemtop.engine.process.launch import Launch, Launched
from tfmemtop.engine.process.run import allow_many_files
from tfmemtop.engine.process.terminal import PseudoTerminal
from tfmemtop.engine.stream import kernel_starts
from tfmemtop.engine.stream.complaints import complain
from tfmemtop.engine.stream.folders import (
    SessionFolder,
    open_session,
)
from tfmemtop.engine.stream.kept_sessions import kept_elsewhere
from tfmemtop.events import NoticeKind
from tfmemtop.events.recording import Writer
from tfmemtop.events.unstarted import StartError, Unstarted, Why

_PR_SET_CHILD_SUBREAPER = 36


class Answers:
    """Sends answers to the process that starts the engine, through a separate file descriptor."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self.closed = False
        """Whether the start is complete, so that the script runs."""

    def give(self, launched: Launched) -> None:
        """Send *launched*, which reports how far the start has come."""
        try:
            os.write(self._descriptor, launched.encode())
        except OSError:
            return  # the command that started this has ended; other screens can still attach to the session

    def close(self) -> None:
        """Close the file descriptor: there are no further answers."""
        os.close(self._descriptor)
        self.closed = True


def run(terminal: PseudoTerminal, keeper: Keeper, inherited: list[int], answers: int) -> int:
    """Run the engine and return its exit code.

    If the engine or the script cannot be started, the answer contains the reason, and the exit code is 0. After any
    other failure it is 1. The *inherited* file descriptors are passed on to the script. Answers are written to the file
    descriptor *answers*.
    """
    told = Answers(answers)
    allow_many_files()
    # A SIGHUP that arrives before its handler is installed must not end this process.
    signal.signal(signal.SIGHUP, lambda *_: None)
    # Slurm may send these to every process of a task. They are meant for the script, in which they are not ignored.
    for number in (signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(number, signal.SIG_IGN)
    folder: SessionFolder | None = None
    try:
        launch = Launch.decode(sys.stdin.buffer.read())
        terminal.resize(launch.columns, launch.rows)
        if launch.task and launch.first:
            collect_orphans()
        folder = open_session(lambda made: info(launch, made))
        return _serve(_numbered(launch, folder.id), folder, terminal, keeper, inherited, told)
    except REFUSALS as error:
        if folder is not None:
            folder.remove()
        told.give(Launched(error=unstarted(error)))
        return 0


def _numbered(launch: Launch, session: str) -> Launch:
    """Return *launch*; for a kernel, with the number of this start and the sessions of the earlier starts."""
    if launch.kernel is None:
        return launch
    try:
        start, earlier = kernel_starts.begin(launch.kernel.shared, session)
    except OSError:
        return launch  # recordings cannot be written there either, which a notice reports
    return msgspec.structs.replace(launch, kernel=msgspec.structs.replace(launch.kernel, start=start, earlier=earlier))


def _serve(
    launch: Launch,
    folder: SessionFolder,
    terminal: PseudoTerminal,
    keeper: Keeper,
    inherited: list[int],
    answers: Answers,
) -> int:
    output_path = output_for(launch, folder)
    try:
        asyncio.run(_session(launch, folder, terminal, keeper, inherited, answers))
    except REFUSALS:
        if not answers.closed:
            raise
        complain()
        return 1
    except Exception:
        complain()
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
    output_path = output_for(launch, folder)
    async with Engine(launch, folder, output_path, terminal, keeper) as engine:
        first = await engine.watch.prepare(launch.argv, launch.settings) if launch.argv else None
        writer = Writer(launch.record) if launch.record else None
        keeper.output_goes_to(output_path or os.devnull)
        if output_path is None and has_terminal(launch):
            engine.stream.notice("output_file", NoticeKind.OUTPUT_FILE_MISSING)
        os.chdir("/")  # so that no file system is kept busy; the script starts in the user's folder
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
            engine.watch.record(lambda: writer)
            if launch.keep:
                kept_elsewhere(folder.id, writer.path)
        elif launch.argv or launch.attach is not None:
            engine.keep()
        forget_old()
        await engine.done()


def _keep_log(folder: SessionFolder, output_path: str | None) -> None:
    """Copy the log of this engine, if it is not empty, beside the kept output. The session's folder is removed."""
    try:
        if output_path and folder.log.stat().st_size:
            shutil.copyfile(folder.log, Path(output_path).with_suffix(".engine.log"))
    except OSError:
        return  # there is no log, or the folder of kept outputs has no room for it


def collect_orphans() -> None:
    """Become the parent of each descendant whose own parent ends, in place of the first process of the container.

    That first process may be the screen. It does not wait for processes that it did not start, so each orphan would
    stay a zombie.
    """
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
