"""The live engine: a watch, and a server through which screens follow it and steer it.

It runs a script in a terminal, watches a Jupyter kernel, reads a process from outside, or only watches the machine.
What differs between these is in the :class:`Launch`. ``tfmemtop record`` has an engine too, in its own process.

:mod:`tfmemtop.engine.watch` has the sources of all readings. The :class:`Relauncher` ends a run and starts the next.
An engine that has a process of its own ends some time after nobody needs it any more.
"""

import asyncio
import os
import signal
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from functools import partial

from tfmemtop import events
from tfmemtop.engine.process.keeper import Keeper
from tfmemtop.engine.process.launch import Kernel, Launch, StartError, readable
from tfmemtop.engine.process.pseudo_terminal import PseudoTerminal
from tfmemtop.engine.process.run import Prepared, unstarted
from tfmemtop.engine.sources.processes import has_tensorflow, read_environment, session_of
from tfmemtop.engine.stream.complaints import complain
from tfmemtop.engine.stream.folders import SessionFolder, SessionInfo
from tfmemtop.engine.stream.kept_sessions import choose_for_kernel, open_recording
from tfmemtop.engine.stream.recorder import Thinner
from tfmemtop.engine.stream.server import Reader, Server
from tfmemtop.engine.watch import Watch, watched_command
from tfmemtop.settings import Settings

LINGER_S = 2.0
"""How long an engine waits for another reader once it is no longer needed."""
UNSEEN_S = 3600.0
"""How long an engine waits for a reader if the run ended while no screen was connected."""
UNREAD_S = 10.0
"""How long an engine that only watches waits for its first reader."""


def session_info(
    launch: Launch, folder: SessionFolder, output_path: str | None = None, *, recorded: bool = False
) -> SessionInfo:
    """Return the description by which other processes find the session in *folder*. This process has its engine."""
    kernel = launch.kernel
    return SessionInfo(
        id=folder.id,
        pid=os.getpid(),
        started=time.time(),
        command=watched_command(launch),
        recorded=recorded,
        reads=launch.attach,
        kernel=kernel.pid if kernel else None,
        connection=readable(kernel.connection) if kernel else None,
        notebook=readable(kernel.notebook) if kernel and kernel.notebook else None,
        socket=str(folder.engine_socket),
        output_path=output_path,
    )


class Relauncher:
    """Carries out the commands to end a run and to start the next. A newer command replaces one that is under way.

    *changed* is called whenever one has been carried out. Create it in the running loop.
    """

    def __init__(self, watch: Watch, changed: Callable[[], None]) -> None:
        self._watch = watch
        self._changed = changed
        self._loop = asyncio.get_running_loop()
        self._preparing: asyncio.Task[None] | None = None
        self._ending: asyncio.Task[None] | None = None
        self._next: Prepared | None = None
        self._for_good = False

    @property
    def busy(self) -> bool:
        """Whether a run is being prepared or ended."""
        return self._preparing is not None or self._ending is not None

    @property
    def over(self) -> bool:
        """Whether the end of the last run was commanded, and has come."""
        return self._for_good and self._ending is None

    def relaunch(self, command: events.Relaunch) -> None:
        """Prepare the run of *command*, end the present one, start it. If it cannot start, the present one stays."""
        self._forget_next()
        self._preparing = self._loop.create_task(self._prepare(command))

    def stop(self, grace_s: float, *, for_good: bool) -> None:
        """End the present run, whose processes get *grace_s* seconds for that. *for_good*: no other run follows."""
        self._for_good = self._for_good or for_good
        self._forget_next()
        self._end(grace_s)

    def _forget_next(self) -> None:
        self._next = None
        if self._preparing is not None:
            self._preparing.cancel()
            self._preparing = None

    async def _prepare(self, command: events.Relaunch) -> None:
        try:
            self._next = await self._watch.prepare(command.argv, command.settings)
        except Exception as error:
            if not isinstance(error, StartError | ValueError):
                complain()
            self._refuse(error)
        else:
            self._watch.stream.withdraw("relaunch")
            self._end(command.grace_s)
        self._preparing = None
        self._changed()

    def _end(self, grace_s: float) -> None:
        if self._ending is not None:
            self._watch.ending.hasten(grace_s)
        else:
            self._ending = self._loop.create_task(self._end_and_go_on(grace_s))

    async def _end_and_go_on(self, grace_s: float) -> None:
        try:
            if self._watch.runs.number:
                await self._watch.ending.end(grace_s)
            run, self._next = self._next, None
            if run is not None and not self._for_good:
                self._watch.start(run)
        except StartError as error:
            self._refuse(error)
        except Exception as error:
            complain()
            detail = f"{type(error).__name__}: {error}"
            self._watch.stream.notice("ending", events.NoticeKind.ENDING_FAILED, events.Level.ERROR, detail)
        finally:
            self._ending = None
            self._changed()

    def _refuse(self, error: Exception) -> None:
        self._watch.stream.notice(
            "relaunch", events.NoticeKind.NOT_RELAUNCHED, events.Level.ERROR, unstarted(error).error or ""
        )


class Engine:
    """One session, from its first run until the last reader has left.

    An asynchronous context manager. It watches while it is entered, and serves readers from :meth:`begin` on.
    """

    def __init__(
        self,
        launch: Launch,
        folder: SessionFolder,
        output_path: str | None = None,
        terminal: PseudoTerminal | None = None,
        keeper: Keeper | None = None,
        *,
        helper: int = 0,
    ) -> None:
        """The script's output is kept in the file *output_path*.

        Without a *terminal* and a *keeper*, the engine is a guest in the process of a screen, or of ``tfmemtop record``
        with its *helper*. It then leaves signals to that process. In a screen's process it starts no script, and runs
        until :meth:`leave` or a command of a screen ends it.

        Raises:
            StartError: the metrics cannot be exported as requested.
        """
        self._launch = launch
        self._folder = folder
        self._terminal = terminal
        self._recorded = helper != 0
        self._loop = asyncio.get_running_loop()
        self.watch = Watch(launch, folder, output_path=output_path, terminal=terminal, keeper=keeper, helper=helper)
        self.stream = self.watch.stream
        if terminal is not None:
            self.stream.publish(events.Terminal(t=self.stream.now(), columns=launch.columns, rows=launch.rows))
        self._server = Server(
            self.stream, folder.readers, take=self._heed, left=self.watch.maps.forget, changed=self._consider
        )
        self._relauncher = Relauncher(self.watch, self._consider)
        self._over = asyncio.Event()
        self._linger: asyncio.TimerHandle | None = None
        self._seen_end = False  # whether a screen was connected when the newest run ended, or since then
        self._choosing: asyncio.Task[None] | None = None
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> "Engine":
        async with AsyncExitStack() as stack:
            # Readers are disconnected last: a reader whose connection has ended finds a complete recording.
            stack.push_async_callback(self._server.close)
            await stack.enter_async_context(self.watch)
            self._stack = stack.pop_all()
        if self._terminal is not None:
            # Handlers, not SIG_IGN: a child process inherits ignored signals.
            for number in (signal.SIGHUP, signal.SIGINT):
                self._loop.add_signal_handler(number, lambda: None)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    def begin(self) -> None:
        """Start to serve readers and to handle SIGTERM, which ends the run and then the engine.

        A kernel belongs to Jupyter: there, SIGTERM ends only the engine. In a Slurm step, Slurm sends SIGTERM to all
        processes of the step. The script receives it too and may need some time, so the engine ignores it.
        """
        if self._terminal is None:
            pass  # the screen's process handles signals
        elif self._launch.kernel:
            self._loop.add_signal_handler(signal.SIGTERM, self.leave)
        elif self._launch.task:
            self._loop.add_signal_handler(signal.SIGTERM, lambda: None)
        else:
            self._loop.add_signal_handler(signal.SIGTERM, self._obey, events.Stop(quit=True))
        self.stream.listen(self._follow)
        self._server.begin()

    def keep(self) -> None:
        """Start the recording that is kept of each session, unless the user does without it, or it has begun.

        A second process that the same session reads goes into the same recording.
        """
        if self._launch.keep and not self.watch.recorded:
            self.watch.record(partial(open_recording, self._folder.id), Thinner())

    def leave(self) -> None:
        """End the engine now. A process that is read from outside goes on."""
        self._over.set()

    async def done(self) -> None:
        """Wait until the engine is no longer needed."""
        self._consider()
        await self._over.wait()

    def _follow(self, event: events.Event) -> None:
        if isinstance(event, events.Run):
            self._seen_end = False
        elif isinstance(event, events.RunEnd | events.ProcessReadings):
            self._consider()

    def _consider(self) -> None:
        """End the engine if a command requested it; or after a while, if no run goes on and no reader is connected."""
        if self._relauncher.over:
            self.leave()
        if self._terminal is None:
            return  # a guest is ended by the screen's process
        running = self.watch.runs.running
        if self._server.readers and not running:
            self._seen_end = True
        if self._server.readers or self._relauncher.busy or running or self._left_behind():
            if self._linger is not None:
                self._linger.cancel()
                self._linger = None
        elif self._linger is None:
            self._linger = self._loop.call_later(self._wait_s(), self.leave)

    def _wait_s(self) -> float:
        if self._launch.kernel:
            # The session remains in its recording. When Jupyter ends the kernel, no process of tfmemtop may be left.
            return LINGER_S
        if self.watch.runs.number and not self._seen_end:
            return UNSEEN_S
        return LINGER_S if self._server.ever else UNREAD_S

    def _left_behind(self) -> bool:
        """Return whether a process that the script left behind is in our process session.

        At the end of the engine, it would receive SIGHUP.
        """
        ours = os.getsid(0)
        return any(session_of(pid) == ours for pid in self.watch.readings.of_runs())

    def _heed(self, reader: Reader, command: events.Command) -> None:
        if self._over.is_set():
            pass  # what would obey has been closed, or soon is
        elif isinstance(command, events.MapWanted):
            self.watch.maps.want(reader, command)
        elif (
            isinstance(command, events.Stop) and self._terminal is None and (self._recorded or self._server.readers > 1)
        ):
            self._server.dismiss(reader)  # there is no run that it may stop: only this screen is disconnected
        elif not (self._recorded and isinstance(command, events.Relaunch | events.Signal)):
            self._obey(command)

    def _obey(self, command: events.Command) -> None:
        match command:
            case events.Input():
                self.watch.type(command.text)
            case events.Resize():
                self._resize(command.columns, command.rows)
            case events.Signal():
                self._signal(command.pids, command.signal)
            case events.ReadEnvironment():
                self._read_environment(command.pid)
            case events.Attach():
                if not command.if_tensorflow or has_tensorflow(command.pid):
                    self._attach(command.pid)
            case events.CensusNow():
                self.watch.hooks.send(command.pid, {"do": "census", "tensors": command.tensors})
            case events.HoldersNow():
                self.watch.hooks.send(command.pid, {"do": "holders"})
            case events.ForNextStart() if self._launch.kernel:
                self._choosing = self._loop.create_task(self._choose(self._launch.kernel, command.settings))
            case events.Relaunch() if self._launch.kernel:
                self.stream.notice("relaunch", events.NoticeKind.KERNEL_IS_JUPYTERS, events.Level.ERROR)
            case events.Relaunch():
                self._relauncher.relaunch(command)
            case events.Stop():
                self._relauncher.stop(command.grace_s, for_good=command.quit)
            case _:
                pass  # a command for a kernel, and this is none

    def _attach(self, pid: int) -> None:
        if self._launch.argv:
            self.stream.notice("attach", events.NoticeKind.ATTACH_BESIDE_SCRIPT, events.Level.WARNING, about=pid)
        elif self.watch.attach(pid):
            self.stream.withdraw("attach")
            self.keep()
        else:
            self.stream.notice("attach", events.NoticeKind.ATTACH_NO_PROCESS, events.Level.WARNING, about=pid)

    async def _choose(self, kernel: Kernel, settings: Settings) -> None:
        """Store *settings* for the kernel's next start, if they fit this machine."""
        try:
            await self.watch.prepare(self._launch.argv, settings)
            choose_for_kernel(kernel.shared, settings)
        except (StartError, ValueError, OSError) as error:
            self.stream.notice(
                "relaunch", events.NoticeKind.NOT_CHOSEN, events.Level.ERROR, unstarted(error).error or ""
            )
        else:
            self.stream.withdraw("relaunch")
            self.stream.publish(events.Upcoming(t=self.stream.now(), settings=settings))

    def _resize(self, columns: int, rows: int) -> None:
        columns, rows = min(max(columns, 1), 9999), min(max(rows, 1), 9999)
        if self._terminal is not None and (columns, rows) != (self._terminal.columns, self._terminal.rows):
            self._terminal.resize(columns, rows)
            self.stream.publish(events.Terminal(t=self.stream.now(), columns=columns, rows=rows))

    def _signal(self, pids: list[int], number: int) -> None:
        troubles = []
        for pid in pids:
            try:
                self.watch.readings.signal(pid, number)
            except (OSError, ValueError) as error:
                troubles.append(f"{pid}: {getattr(error, 'strerror', None) or error}")
        if troubles:
            self.stream.notice("signal", events.NoticeKind.SIGNAL_FAILED, events.Level.ERROR, "; ".join(troubles))
        else:
            self.stream.withdraw("signal")

    def _read_environment(self, pid: int) -> None:
        try:
            found = events.Environment(t=self.stream.now(), pid=pid, variables=read_environment(pid))
        except OSError as error:
            found = events.Environment(t=self.stream.now(), pid=pid, variables={}, error=error.strerror or str(error))
        self.stream.publish(found)
