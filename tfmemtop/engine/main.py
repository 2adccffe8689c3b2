"""Runs the engine from its start to its end, in a process of its own or in that of a screen.

In a process of its own it reads one :class:`Launch` from stdin, writes its answer to a separate file descriptor, and
then goes on by itself. The script is started last, after everything that can fail.

A session that only watches starts nothing, and no part of it outlives its screen. So it needs no separate engine
process, no pseudo-terminal and no keeper. One Python process takes less memory than three. Everything else is the same:
this engine serves the same socket, other screens find it, and it can read a process from outside.
"""

import asyncio
import ctypes
import os
import pickle
import shutil
import signal
import sys
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import msgspec

from tfmemtop.engine.engine import Engine, session_info
from tfmemtop.engine.own_thread import OwnThread
from tfmemtop.engine.process.keeper import Keeper
from tfmemtop.engine.process.launch import Launch, Launched, StartError
from tfmemtop.engine.process.pseudo_terminal import PseudoTerminal, detach
from tfmemtop.engine.process.run import REFUSALS, allow_many_files, unstarted
from tfmemtop.engine.stream.complaints import Stderr, complain, write_to
from tfmemtop.engine.stream.folders import SessionFolder, open_session
from tfmemtop.engine.stream.kept_sessions import begin_kernel, forget_old, kept_elsewhere
from tfmemtop.events import NoticeKind
from tfmemtop.events.recording import Writer
from tfmemtop.home import output_folder

_PR_SET_CHILD_SUBREAPER = 36


def run(terminal: PseudoTerminal, keeper: Keeper, inherited: list[int], answers: int) -> int:
    """Run the engine and return its exit code: 1 after an unforeseen failure, else 0.

    If the engine or the script cannot be started, the answer contains the reason. The *inherited* file descriptors are
    passed on to the script. The answer is written to the file descriptor *answers*.
    """
    allow_many_files()
    # A SIGHUP that arrives before its handler is installed must not end this process.
    signal.signal(signal.SIGHUP, lambda *_: None)
    # Slurm may send these to every process of a task. They are meant for the script, in which they are not ignored.
    for number in (signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(number, signal.SIG_IGN)
    answer: Future[Launched] = Future()

    def send(answered: Future[Launched]) -> None:
        with suppress(OSError):  # the command that started this has ended; other screens can still attach
            os.write(answers, pickle.dumps(answered.result()))
        os.close(answers)

    answer.add_done_callback(send)
    try:
        launch: Launch = pickle.load(sys.stdin.buffer)
    except (OSError, EOFError, pickle.UnpicklingError) as error:
        answer.set_result(unstarted(error))
        return 1
    return serve(launch, lambda folder: _session(launch, folder, terminal, keeper, inherited, answer), answer)


async def _session(
    launch: Launch,
    folder: SessionFolder,
    terminal: PseudoTerminal,
    keeper: Keeper,
    inherited: list[int],
    answer: Future[Launched],
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
        if output_path is None and launch.has_terminal:
            engine.stream.notice("output_file", NoticeKind.OUTPUT_FILE_MISSING)
        os.chdir("/")  # so that no file system is kept busy; the script starts in the user's folder
        engine.begin()
        if first is not None:
            engine.watch.start(first)
        elif launch.attach is not None and not engine.watch.attach(launch.attach):
            raise StartError(f"there is no process {launch.attach}", 1)
        for descriptor in inherited:
            os.close(descriptor)
        given = first.environment if first is not None and launch.kernel is not None else None
        answer.set_result(
            Launched(id=folder.id, socket=str(folder.engine_socket), output_path=output_path, environment=given)
        )
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


def serve(
    launch: Launch, session: Callable[[SessionFolder], Coroutine[None, None, None]], answer: Future[Launched]
) -> int:
    """Run a whole *session* of *launch* in a folder of its own. Return the engine's exit code.

    The session gives its *answer* once the engine serves screens and the script runs. If it cannot be started, the
    answer contains the reason, and for a foreseen reason the exit code is 0.
    """
    try:
        with closing(open_session(lambda made: session_info(launch, made, output_for(launch, made)))) as folder:
            try:
                asyncio.run(session(folder))
            except Exception as error:
                if answer.done() or not isinstance(error, REFUSALS):
                    complain()
                raise
            finally:
                _keep_log(launch, folder)
    except Exception as error:
        if answer.done():
            return 1
        answer.set_result(unstarted(error))
        return 0 if isinstance(error, REFUSALS) else 1
    return 0


def output_for(launch: Launch, folder: SessionFolder) -> str | None:
    """Return the path of the file for the script's output.

    ``None`` if no script runs in the engine's terminal, or the folder for outputs cannot be made.
    """
    try:
        return str(output_folder() / f"{folder.id}.log") if launch.has_terminal else None
    except OSError:
        return None


def _keep_log(launch: Launch, folder: SessionFolder) -> None:
    """Copy the log of this engine, if it is not empty, beside the kept output. The session's folder is removed."""
    output_path = output_for(launch, folder)
    try:
        if output_path and folder.log.stat().st_size:
            shutil.copyfile(folder.log, Path(output_path).with_suffix(".engine.log"))
    except OSError:
        return  # there is no log, or the folder of kept outputs has no room for it


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


_ENDS_S = 5.0
"""How long the screen's process waits for the engine to end."""


class EngineInside:
    """An engine in a thread of this process, with an event loop of its own."""

    def __init__(self, launch: Launch) -> None:
        """The session of *launch* must end with its screen."""
        assert launch.ends_with_screen
        self._launch = launch
        self._answer: Future[Launched] = Future()
        # A daemon thread: the process does not wait for it when it ends.
        arguments = launch, self._session, self._answer
        self._thread = threading.Thread(target=serve, args=arguments, name="engine", daemon=True)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._engine: Engine | None = None
        self._left = threading.Event()
        self.stderr = Stderr()

    def start(self) -> Launched:
        """Start the engine. When this returns, the engine serves screens, or the answer contains why it cannot."""
        self._thread.start()
        return self._answer.result()

    def end(self) -> None:
        """End the engine. When this returns, its folder is removed and its recording is complete, if nothing hangs."""
        self._left.set()
        if self._loop is not None and self._engine is not None:
            try:
                self._loop.call_soon_threadsafe(self._engine.leave)
            except RuntimeError:
                pass  # it has ended
        if self._thread.ident is not None:
            self._thread.join(_ENDS_S)
        self.stderr.give_back()

    async def _session(self, folder: SessionFolder) -> None:
        write_to(folder.log)
        self.stderr.lead_to(folder.log)
        self._loop = asyncio.get_running_loop()
        self._loop.set_exception_handler(_unforeseen)
        async with Engine(self._launch, folder) as engine:
            engine.begin()
            self._engine = engine
            self._answer.set_result(Launched(id=folder.id, socket=str(folder.engine_socket)))
            if not self._left.is_set():
                begin_to_forget()
                await engine.done()


def _unforeseen(_: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log an exception that no part of the engine has caught. asyncio would write it to stderr, over the screen."""
    complain(f"{context.get('message')}\n", context.get("exception"))
