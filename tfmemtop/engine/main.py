"""Runs the engine from its start to its end.

It reads one :class:`Launch` from stdin, writes its answers to a separate file descriptor, and then goes on by itself.
The script is started last, after everything that can fail.
"""

import ctypes
import os
import pickle
import signal
import sys
from contextlib import suppress

import msgspec

from tfmemtop.engine.engine import Engine
from tfmemtop.engine.opening import begin_to_forget, has_terminal, output_for, serve, unstarted
from tfmemtop.engine.process.keeper import Keeper
from tfmemtop.engine.process.launch import Launch, Launched
from tfmemtop.engine.process.run import allow_many_files
from tfmemtop.engine.process.terminal import PseudoTerminal, detach
from tfmemtop.engine.stream.folders import SessionFolder
from tfmemtop.engine.stream.kept_sessions import begin_kernel, kept_elsewhere
from tfmemtop.events import NoticeKind
from tfmemtop.events.recording import Writer
from tfmemtop.events.unstarted import StartError, Unstarted, Why

_PR_SET_CHILD_SUBREAPER = 36


class PipedAnswers:
    """Sends answers to the process that starts the engine, through a separate file descriptor."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self.closed = False

    def give(self, launched: Launched) -> None:
        """Send *launched*. An answer that the script runs, or that it does not, is the last one."""
        with suppress(OSError):  # the command that started this has ended; other screens can still attach
            os.write(self._descriptor, pickle.dumps(launched))
        if launched.started or launched.error is not None:
            os.close(self._descriptor)
            self.closed = True


def run(terminal: PseudoTerminal, keeper: Keeper, inherited: list[int], answers: int) -> int:
    """Run the engine and return its exit code: 1 after an unforeseen failure, else 0.

    If the engine or the script cannot be started, the answer contains the reason. The *inherited* file descriptors are
    passed on to the script. Answers are written to the file descriptor *answers*.
    """
    allow_many_files()
    # A SIGHUP that arrives before its handler is installed must not end this process.
    signal.signal(signal.SIGHUP, lambda *_: None)
    # Slurm may send these to every process of a task. They are meant for the script, in which they are not ignored.
    for number in (signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(number, signal.SIG_IGN)
    told = PipedAnswers(answers)
    try:
        launch: Launch = pickle.load(sys.stdin.buffer)
    except (OSError, EOFError, pickle.UnpicklingError) as error:
        told.give(Launched(error=unstarted(error)))
        return 1
    return serve(launch, lambda folder: _session(launch, folder, terminal, keeper, inherited, told), told)


async def _session(
    launch: Launch,
    folder: SessionFolder,
    terminal: PseudoTerminal,
    keeper: Keeper,
    inherited: list[int],
    answers: PipedAnswers,
) -> None:
    terminal.resize(launch.columns, launch.rows)
    if launch.task and launch.first:
        collect_orphans()
    launch = _numbered(launch, folder.id)
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
        elif launch.attach is not None and not engine.watch.attach(launch.attach):
            raise StartError(Unstarted(Why.NO_PROCESS, str(launch.attach)))
        for descriptor in inherited:
            os.close(descriptor)
        given = first.environment if first is not None and launch.kernel is not None else None
        answers.give(msgspec.structs.replace(answer, started=True, environment=given))
        # From here on no command waits for an answer. Errors are written to the log.
        detach(str(folder.log))
        if writer is not None:
            engine.watch.record(lambda: writer)
            if launch.keep:
                kept_elsewhere(folder.id, writer.path)
        elif launch.argv or launch.attach is not None:
            engine.keep()
        begin_to_forget()
        await engine.done()


def _numbered(launch: Launch, session: str) -> Launch:
    """Return *launch*; for a kernel, with the number of this start and the sessions of the earlier starts."""
    if launch.kernel is None:
        return launch
    try:
        start, earlier = begin_kernel(launch.kernel.shared, session)
    except OSError:
        return launch  # recordings cannot be written there either, which a notice reports
    return msgspec.structs.replace(launch, kernel=msgspec.structs.replace(launch.kernel, start=start, earlier=earlier))


def collect_orphans() -> None:
    """Become the parent of each descendant whose own parent ends, in place of the first process of the container.

    That first process may be the screen. It does not wait for processes that it did not start, so each orphan would
    stay a zombie.
    """
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
